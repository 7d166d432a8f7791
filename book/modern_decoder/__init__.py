"""The chapter on the modern decoder."""
