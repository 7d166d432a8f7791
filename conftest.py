"""Loads the plugin that runs the notebooks, wherever pytest is pointed to, and puts what takes long first.

pytest-xdist hands out whole files. With the long ones first, all workers are done at about the same time.
"""

import os

import pytest

pytest_plugins = ("tests.notebooks.plugin",)

LONG = (
    "tests/site/test_pages.py",  # builds the site, while others run notebooks
    "book/",
    "tests/site/test_live.py",
    "tests/book/kit/exercises/",
    "tests/site/",
    "tests/untyped/",
    "tests/scale/test_distributed.py",
    "tests/book/speedrun/",
    "tests/runs/",
    "tests/fuzz/",
    "tests/notebooks/",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts by file; the order within a file stays."""

    def place(item: pytest.Item) -> int:
        found = [i for i, start in enumerate(LONG) if item.nodeid.startswith(start)]
        return found[0] if found else len(LONG)

    items.sort(key=place)


def pytest_xdist_auto_num_workers() -> int | None:
    """What `-n auto` means, where no variable says otherwise."""
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    from workers import workers  # in tools/, which is no place of pytest's where other settings are in force

    return workers()
