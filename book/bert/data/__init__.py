"""What the chapter on BERT reads."""
