"""The chapter on attention."""
