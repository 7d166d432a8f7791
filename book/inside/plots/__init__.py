"""The plots of the chapter on inside a transformer."""
