"""Models of the chapter on long sequences alone."""
