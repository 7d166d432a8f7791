"""Builds the site from the committed outputs, every warning an error; prints where it lies."""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from search_index import SearchIndexError, write_index

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
STAMP = ROOT / "_build" / "site.stamp"  # as new as the last build that succeeded; holds its sources' names
RECORDS = "search-records.json"  # beside the doctrees; book/site/extensions/tformer_search.py writes it
SOURCES = (
    "_config.yml",
    "_toc.yml",
    "references.bib",
    "requirements-site.txt",
    "pyproject.toml",  # what the notebooks install
    "book",
    "tformer_lib",
)


def sources() -> list[Path]:
    """The files of which the site is made."""
    found = [path for source in SOURCES for path in (ROOT / source, *(ROOT / source).rglob("*"))]
    made = re.compile(r"/(?:__pycache__|\.ipynb_checkpoints|\.ruff_cache|build|[\w-]+\.egg-info)/")
    kept = (path for path in found if not made.search(path.relative_to(ROOT).as_posix()))
    return sorted(path for path in kept if path.is_file())


def names() -> str:
    """Their names, a line each."""
    return "".join(f"{path.relative_to(ROOT)}\n" for path in sources())


def is_fresh() -> bool:
    """Whether the site was built of these files after any of them was last changed."""
    if not STAMP.exists() or not (SITE / "index.html").exists():
        return False
    built = STAMP.stat().st_mtime
    return STAMP.read_text("utf8") == names() and all(path.stat().st_mtime <= built for path in sources())


def build() -> None:
    """Runs Jupyter Book as `make book` does; exits with its code if it warns or fails."""
    started, made_of = time.time(), names()
    STAMP.unlink(missing_ok=True)
    for leftover in (SITE, SITE.parent / ".doctrees"):  # pages name each other's numbers and titles
        shutil.rmtree(leftover, ignore_errors=True)
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [str(jupyter_book), "build", str(ROOT), "-W", "-n", "-q", "--keep-going"]
    code = subprocess.run(command, cwd=ROOT).returncode
    if code:
        sys.exit(code)
    first = SITE / "index.html"  # leads to the first page; without an icon a browser asks for /favicon.ico
    first.write_text('<link rel="icon" href="_static/favicon.svg" />\n' + first.read_text("utf8"), "utf8")
    try:
        write_index(SITE.parent / ".doctrees" / RECORDS, SITE)
    except SearchIndexError as error:
        sys.exit(f"The site has no search: {error}")
    STAMP.write_text(made_of, "utf8")
    print(f"Built in {time.time() - started:.0f} s without a warning. The site: {SITE.as_uri()}/index.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--if-stale", action="store_true", help="do nothing when no source has changed")
    if not (parser.parse_args().if_stale and is_fresh()):
        build()
