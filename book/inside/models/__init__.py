"""Models of the chapter on inside a transformer alone."""
