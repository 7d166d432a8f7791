"""Models of the chapter on sequence modelling alone."""
