"""What the chapter on inside a transformer reads."""
