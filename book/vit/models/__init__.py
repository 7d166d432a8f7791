"""Models of the chapter on the vision transformer alone."""
