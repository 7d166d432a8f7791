"""The chapter on the vision transformer."""
