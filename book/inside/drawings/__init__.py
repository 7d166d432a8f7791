"""The drawings of the chapter on inside a transformer."""
