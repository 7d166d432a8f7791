"""The chapter on sequence modelling."""
