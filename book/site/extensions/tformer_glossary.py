"""The glossary by letters: a heading before the first term of each, and a row of links to them at the top.

The row stays at the window's upper edge while one reads, so that each letter is a tap away. Only letters
under which there is a term are in it. Terms stand in the order in which they are written; one that stands
where it does not belong fails the build, since its letter would come twice.
"""

from itertools import groupby

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

log = getLogger(__name__)


def letter(term: str) -> str:
    """The letter under which a term is looked for; "#" for a number or a sign."""
    first = term[:1].upper()
    return first if "A" <= first <= "Z" else "#"


def anchor(name: str) -> str:
    """The id of a letter's heading."""
    return f"letter-{'other' if name == '#' else name.lower()}"


def first_term(item: nodes.Node) -> str:
    """The first of the terms that an entry explains."""
    return next(item.findall(nodes.term)).astext()


def row(letters: list[str]) -> nodes.raw:
    """The links to the letters."""
    links = "".join(f'<li><a href="#{anchor(name)}">{name}</a></li>' for name in letters)
    text = f'<nav class="tformer-letters" aria-label="Letters" data-pagefind-ignore><ul>{links}</ul></nav>'
    return nodes.raw("", text, format="html")


def heading(name: str) -> nodes.raw:
    """The heading of a letter; it is no section, for the row is its table of contents."""
    return nodes.raw("", f'<h2 class="tformer-letter" id="{anchor(name)}">{name}</h2>', format="html")


def by_letters(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Divides a page's glossary."""
    if app.builder.format != "html":
        return
    for glossary in list(doctree.findall(addnodes.glossary)):
        whole = next(glossary.findall(nodes.definition_list))
        entries = groupby(whole.children, lambda item: letter(first_term(item)))
        runs = [(name, list(those)) for name, those in entries]
        letters = [name for name, _ in runs]
        for name in {name for name in letters if letters.count(name) > 1}:
            log.warning("glossary: the terms under %s do not stand together", name, location=glossary)
        parts: list[nodes.Node] = [row(letters)]
        for name, items in runs:
            part = whole.copy()
            part.extend(items)
            parts += [heading(name), part]
        place = glossary.index(whole)
        glossary[place : place + 1] = parts


def setup(app: Sphinx) -> dict:
    """Connects the handler and adds the row's style."""
    app.connect("doctree-resolved", by_letters)
    app.add_css_file("glossary.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
