"""The notebooks under test: the pytest plugin that runs them, and the rules of style that they keep."""
