"""Models of the chapter on ImageGPT and sound alone."""
