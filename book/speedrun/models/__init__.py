"""Models of the chapter on the speedrun alone."""
