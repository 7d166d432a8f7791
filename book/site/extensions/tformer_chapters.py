"""The role `{chapter}`: a link to a chapter, or a place in it, by the number that the contents give it.

    {chapter}`ch-gpt`                        Chapter 8
    {chapter}`Chapters %s <ch-gpt>`          Chapters 8

So no page says a number that another page's place in `_toc.yml` could make wrong.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole
from sphinx.util.logging import getLogger
from tformer_site import chapter_number

FORM = re.compile(r"(?:(?P<text>.*)\s<)?(?P<label>[\w-]+)>?", re.DOTALL)
log = getLogger(__name__)


class ChapterNode(nodes.Inline, nodes.Element):
    """A chapter's number, until all labels are known."""


class ChapterRole(SphinxRole):
    """Stands for the number with its link."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A node that `resolve` replaces; an error if it is of neither form."""
        found = FORM.fullmatch(self.text.strip())
        text = found["text"] or "Chapter %s" if found else ""
        if text.count("%s") != 1:
            return [], [self.inliner.reporter.error(f"chapter: {self.text!r} has no %s", line=self.lineno)]
        node = ChapterNode("", label=found["label"], text=text)
        self.set_source_info(node)
        return [node], []


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the numbers in."""
    labels = app.env.get_domain("std").anonlabels
    for node in list(doctree.findall(ChapterNode)):
        there, anchor = labels.get(node["label"], ("", ""))[:2]
        number = chapter_number(there)
        if number is None:
            log.warning("chapter: no label %r in a chapter", node["label"], location=node)
            node.replace_self(nodes.Text(node["text"]))
            continue
        address = app.builder.get_relative_uri(docname, there)
        # on a page that holds the whole book the anchor alone is the address
        uri = f"#{anchor}" if address.startswith("#") else f"{address}#{anchor}"
        words = nodes.inline("", node["text"] % number, classes=["std", "std-ref"])
        node.replace_self(nodes.reference("", "", words, internal=True, refuri=uri))


def setup(app: Sphinx) -> dict:
    """Registers the role."""
    app.add_node(ChapterNode)
    app.add_role("chapter", ChapterRole())
    app.connect("doctree-resolved", resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
