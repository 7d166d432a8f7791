"""Loads the plugin that runs the notebooks, wherever pytest is pointed to, and puts what takes long first.

pytest-xdist hands out whole files. With the long ones first, two workers are done at about the same time.
"""

import pytest

pytest_plugins = ("tests.notebooks.plugin",)

LONG = ("tests/site/test_pages.py", "book/", "tests/notebooks/", "tests/test_fuzz.py", "tests/site/")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts by file; the order within a file stays."""

    def place(item: pytest.Item) -> int:
        found = [i for i, start in enumerate(LONG) if item.nodeid.startswith(start)]
        return found[0] if found else len(LONG)

    items.sort(key=place)
