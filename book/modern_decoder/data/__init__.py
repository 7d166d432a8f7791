"""What the chapter on the modern decoder reads."""
