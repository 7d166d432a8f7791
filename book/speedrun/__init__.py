"""The chapter on the speedrun."""
