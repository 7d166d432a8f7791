"""What is closed is not in the document: a closed fold's content stands in a <noscript>.

A page has more in its folds than in view. With scripts a browser reads a <noscript> as
one text: no nodes, no layout, no pictures to fetch. `closed.js` makes nodes of it when
the fold is opened, or when something in it is asked for. Without scripts it is a part
of the page like any other, which a fold shows when it is opened. A <template> would do
the same for the first reader and leave nothing to the second; a second copy of the
page for him would double the site.

Only the outermost folds are taken: the first </noscript> ends the text. `closed.js`
does the same for those within, when it reads it. Figures to touch stay, since they hold
a sentence, and so do the reasons of questions, which have no fold where scripts run.
"""

import re

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

OPEN, CLOSE = '<noscript class="tformer-closed">', "</noscript>"
TAG = re.compile(r"<(?P<start>details)\b(?P<attributes>[^>]*)>|</details>|</summary>")
STAYS = re.compile(r"\b(?:open|data-try|data-answers)\b")


def closed(body: str, where: str = "") -> str:
    """The HTML of a page with what its closed folds hold in <noscript>."""
    made, done = [], 0
    folds: list[bool] = []  # those that we are in, from the outside: whether each is taken
    begins = None  # of the content of the one that is taken
    for tag in TAG.finditer(body):
        if tag["start"]:
            folds.append(not any(folds) and not STAYS.search(re.sub(r'"[^"]*"', "", tag["attributes"])))
        elif not folds:
            raise ExtensionError(f"{where}: {tag[0]} outside of a fold")
        elif tag[0] == "</summary>":
            if folds[-1] and begins is None:
                begins = tag.end()
        elif folds.pop():
            if begins is None:
                raise ExtensionError(f"{where}: a fold without a title")
            content = body[begins : tag.start()]
            if "<noscript" in content:
                raise ExtensionError(f"{where}: a <noscript> in a closed fold")
            made += [body[done:begins], OPEN, content, CLOSE]
            done, begins = tag.start(), None
    if folds:
        raise ExtensionError(f"{where}: a fold that does not end")
    return "".join([*made, body[done:]])


def close(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Changes a page, when nothing else will."""
    if app.builder.format == "html" and context.get("body"):
        context["body"] = closed(context["body"], pagename)


def setup(app: Sphinx) -> dict:
    """Adds the script before all that work with a page's content: also Sphinx's own."""
    app.connect("html-page-context", close, priority=950)
    app.add_js_file("closed.js", loading_method="defer", priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
