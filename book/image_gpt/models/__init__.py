"""Models of the chapter on ImageGPT, noise and sound alone."""
