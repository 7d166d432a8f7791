"""What the chapter on the vision transformer reads."""
