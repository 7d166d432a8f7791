"""Which pages the site has, read from _toc.yml before anything is built."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def toc_pages() -> list[str]:
    """The pages of _toc.yml, in order, as paths in the site."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
    files = [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]
    return [f"{file}.html" for file in files]


def chapter_pages() -> list[str]:
    """Those of them that carry a number."""
    return [page for page in toc_pages() if Path(page).name[:2].isdigit()]
