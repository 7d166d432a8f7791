"""The chapter on inside a transformer."""
