"""The chapter on long sequences."""
