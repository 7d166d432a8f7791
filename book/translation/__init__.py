"""The chapter on translation."""
