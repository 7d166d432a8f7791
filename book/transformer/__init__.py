"""The chapter on the transformer."""
