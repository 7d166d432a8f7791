"""The chapter A walking chapter."""
