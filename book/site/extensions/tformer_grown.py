"""Puts the script that Part I grows, grown.py, beside the pages, for download."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from grown import collect

ROOT = Path(__file__).resolve().parents[3]
PLACE = Path("_static") / "grown.py"


def write(app: Sphinx, error: Exception | None) -> None:
    """The script, collected from the notebooks as they are."""
    if error is None and app.builder.format == "html":
        place = Path(app.outdir) / PLACE
        place.parent.mkdir(exist_ok=True)
        place.write_text(collect(), "utf8")


def setup(app: Sphinx) -> dict:
    """Runs after the pages are written."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
