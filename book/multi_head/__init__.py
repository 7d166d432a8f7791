"""The chapter on multi-head self-attention."""
