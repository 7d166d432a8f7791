"""The chapter on training at scale."""
