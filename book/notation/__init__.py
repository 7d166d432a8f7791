"""The chapter on notation."""
