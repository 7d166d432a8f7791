"""Which pages the site has, read from _toc.yml before anything is built; and how to wait for one."""

import time
from collections.abc import Callable
from pathlib import Path

import yaml
from chapters import EXERCISES, by_docname, chapters

ROOT = Path(__file__).resolve().parents[2]

# Opens every fold, also those that come in with another, and lifts veils; figures to touch stay closed.
OPEN_ALL = """() => {
  for (const show of document.querySelectorAll('.veil-cover button')) show.click();
  for (let closed; (closed = document.querySelectorAll('details:not([open], [data-try])')).length;)
    for (const fold of closed) {
      window.tformerClosed?.fill(fold);
      fold.open = true;
    }
}"""


# A link that goes to words of the page as the browser's own search does, where no key is pressed.
GO_TO_WORDS = """words => {
  const go = Object.assign(document.createElement('a'), {
    id: 'go', textContent: 'go', href: `#:~:text=${encodeURIComponent(words)}` });
  go.style.cssText = 'position: fixed; inset: 50% auto auto 0; z-index: 9999';
  document.body.append(go);
}"""


def toc_pages() -> list[str]:
    """The pages of _toc.yml, in order, as paths in the site."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    below = [[entry, *entry.get("sections", [])] for entry in entries]
    return [f"{file}.html" for file in (toc["root"], *(one["file"] for each in below for one in each))]


def chapter_pages() -> list[str]:
    """Those of them that open a chapter."""
    return [f"{chapter.docname}.html" for chapter in chapters()]


def notebook_pages() -> list[str]:
    """All pages of chapters: with their laboratories and their exercises."""
    return [f"{docname}.html" for docname in by_docname()]


def exercise_pages() -> list[str]:
    """The pages of exercises."""
    return [f"book/{chapter.name}/{EXERCISES}.html" for chapter in chapters() if chapter.exercises]


def eventually(page, true: Callable[[], bool], within: float = 20.0) -> None:
    """Waits until `true()` holds and goes on to for a third of a second; fails when that takes too long.

    A fixed time would be too short for a busy machine, and would let pass what holds for a moment only.
    """
    end, since = time.monotonic() + within, None
    while since is None or time.monotonic() < since + 0.3:
        if not true():
            since = None
            assert time.monotonic() < end, f"it did not become true within {within:.0f} s"
        elif since is None:
            since = time.monotonic()
        page.wait_for_timeout(50)
