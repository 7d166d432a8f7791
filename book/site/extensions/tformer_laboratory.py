"""The section Laboratory: an experiment is closed under its title and what it found.

A page stays as long as its core. The title stands outside the fold, so that the
contents lead to it, and so does the first paragraph, which says what was found.
The rest opens for a link that leads inside, and on paper.
"""

from docutils import nodes
from sphinx.application import Sphinx

TITLE = "Laboratory"


def fold_experiments(app: Sphinx, doctree: nodes.document) -> None:
    """Puts what follows the first paragraph of each subsection into a fold."""
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title)
        if title is None or title.astext() != TITLE:
            continue
        for experiment in section.children:
            if isinstance(experiment, nodes.section):
                start = '<details class="tformer-experiment">'
                start += "<summary>The experiment</summary>"
                after = experiment.index(experiment.next_node(nodes.title)) + 1
                if isinstance(experiment.children[after], nodes.paragraph):
                    after += 1
                experiment.insert(after, nodes.raw("", start, format="html"))
                experiment.append(nodes.raw("", "</details>", format="html"))


def setup(app: Sphinx) -> dict:
    """Registers the handler."""
    app.connect("doctree-read", fold_experiments)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
