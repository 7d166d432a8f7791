"""Old addresses of chapters still lead to them: `was` in chapter.yml names the file that a page once had.

The small page at the old address passes on what stands behind the `#`.
"""

from pathlib import Path

from chapters import chapters
from sphinx.application import Sphinx

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title><meta name="robots" content="noindex">
<link rel="canonical" href="{to}"><script>location.replace("{to}" + location.search + location.hash)</script>
<noscript><meta http-equiv="refresh" content="0; url={to}"></noscript></head>
<body><p>This page has moved: <a href="{to}">go there</a>.</p></body></html>
"""


def write(app: Sphinx, error: Exception | None) -> None:
    """A page at each old address."""
    if error is None and app.builder.format == "html":
        for chapter in chapters(Path(app.srcdir)):
            if chapter.was:
                to = f"{chapter.name}/{chapter.page}.html"
                Path(app.outdir, "book", f"{chapter.was}.html").write_text(PAGE.format(to=to), "utf8")


def setup(app: Sphinx) -> dict:
    """Writes them when all else is there."""
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
