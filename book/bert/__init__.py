"""The chapter on BERT."""
