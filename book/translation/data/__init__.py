"""What the chapter on translation reads."""
