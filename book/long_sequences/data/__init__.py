"""What the chapter on long sequences reads."""
