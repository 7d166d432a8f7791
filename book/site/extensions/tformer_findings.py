"""The role `{finding}`: a number of one page, told and linked to on another.

    {finding}`modern.race_time`      0.191
    {finding}`modern.race_time .0%`  19%

The number is read from the outputs of the notebooks, as the table of all claims is, so
that no page repeats what another computes.
"""

import json
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from chapters import by_docname
from notebook_claims import claims_in


class FindingNode(nodes.Inline, nodes.Element):
    """A number with the place where it is held, until the page's address is known."""


def find(env: BuildEnvironment, name: str) -> tuple[str, float]:
    """The chapter that makes the claim of this name, and its number.

    Raises:
        KeyError: if no chapter does.
    """
    for docname in filter(env.found_docs.__contains__, by_docname()):
        notebook = Path(env.doc2path(docname))
        for claim in claims_in(json.loads(notebook.read_text("utf8"))["cells"]):
            if claim["name"] == name:
                env.note_dependency(str(notebook))
                return docname, claim["value"]
    raise KeyError(name)


class Finding(SphinxRole):
    """A claim's number, in three digits or in the format that follows its name."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The number, linked to its claim; an error if there is no such claim."""
        name, _, written = self.text.partition(" ")
        try:
            docname, value = find(self.env, name)
            text = format(value, written or ".3g")
        except (KeyError, ValueError) as error:
            said = f"no claim {name!r}" if isinstance(error, KeyError) else str(error)
            return [], [self.inliner.reporter.error(f"finding: {said}", line=self.lineno)]
        return [FindingNode("", docname=docname, name=name, text=text)], []


def link_findings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts links in their places."""
    for node in list(doctree.findall(FindingNode)):
        uri = app.builder.get_relative_uri(docname, node["docname"])
        uri = f"{uri}#claim-{node['name']}"
        node.replace_self(nodes.reference("", node["text"], refuri=uri, internal=True))


def setup(app: Sphinx) -> dict:
    """Registers the role."""
    app.add_node(FindingNode)
    app.add_role("finding", Finding())
    app.connect("doctree-resolved", link_findings)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
