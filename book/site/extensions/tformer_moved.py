"""Old addresses still lead to what stood there.

`was` in chapter.yml names the file that a chapter's page once had. The small page at that address passes on
what stands behind the `#`. A chapter's laboratory and its exercises were once sections of its page:
`elsewhere.js` beside it says which page has which anchors, and which figures to touch, now. A page reads it
(`reading.js`) when it is asked for an anchor that it does not have.
"""

import json
import re
from pathlib import Path

from chapters import chapters
from sphinx.application import Sphinx

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title><meta name="robots" content="noindex">
<link rel="icon" href="../_static/favicon.svg">
<link rel="canonical" href="{to}"><script>location.replace("{to}" + location.search + location.hash)</script>
<noscript><meta http-equiv="refresh" content="0; url={to}"></noscript></head>
<body><p>This page has moved: <a href="{to}">go there</a>.</p></body></html>
"""

ANCHOR = re.compile(r'<(?!a\b)[a-z][\w-]*\b[^>]*?\bid="([^"]+)"')
FIGURE = re.compile(r'\bdata-try="([^"]+)"')
THEIRS = re.compile(r"pst-|sbt-|tformer-|__|searchbox")  # of the theme: all pages have them


def elsewhere(folder: Path, page: str, companions: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """The anchors and the figures to touch that a chapter's page lacks, each with the page that has it."""
    here = (folder / f"{page}.html").read_text("utf8")
    found: dict[str, dict[str, str]] = {"anchors": {}, "figures": {}}
    for name, pattern in (("anchors", ANCHOR), ("figures", FIGURE)):
        known = set(pattern.findall(here))
        for companion in companions:
            text = (folder / f"{companion}.html").read_text("utf8")
            article = text[text.find("<article") : text.rfind("</article>")]
            for anchor in pattern.findall(article):
                if anchor not in known and not THEIRS.match(anchor):
                    found[name].setdefault(anchor, companion)
    return found


def write(app: Sphinx, error: Exception | None) -> None:
    """A page at each old address, and beside each chapter what its other pages have."""
    if error is None and app.builder.name == "html":
        for chapter in chapters(Path(app.srcdir)):
            folder = Path(app.outdir, "book", chapter.name)
            if chapter.companions and (folder / f"{chapter.page}.html").exists():
                found = elsewhere(folder, chapter.page, chapter.companions)
                text = json.dumps(found, separators=(",", ":"))
                (folder / "elsewhere.js").write_text(f"tformerElsewhere({text});\n", "utf8")
            if chapter.was:
                to = f"{chapter.name}/{chapter.page}.html"
                Path(app.outdir, "book", f"{chapter.was}.html").write_text(PAGE.format(to=to), "utf8")


def setup(app: Sphinx) -> dict:
    """Writes them when all else is there."""
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
