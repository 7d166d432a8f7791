"""Models of the chapter on positional embeddings alone."""
