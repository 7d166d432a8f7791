"""Models of the chapter on BERT alone."""
