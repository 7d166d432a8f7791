"""Loads the plugin that runs the notebooks, wherever pytest is pointed to."""

pytest_plugins = ("tests.notebooks.plugin",)
