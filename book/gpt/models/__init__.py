"""Models of the chapter on GPT alone."""
