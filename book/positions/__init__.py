"""The chapter on positional embeddings."""
