"""Questions of a few seconds on a page: answers to choose from, and the reasons behind a fold.

`tools/questions.py` says where they are kept, and what a page writes to show one. Without scripts, and on
paper, the answers are a list, and the fold has the reasons; `questions.js` makes buttons of the answers,
puts each reason under its own, keeps in the browser what was chosen, and veils what
follows a {predict} until then.
"""

import sys
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from chapters import by_docname, chapters
from questions import TITLES, Question, files, questions


def title(kind: str, question: Question, docname: str) -> str:
    """What stands over a question: of an earlier chapter, that chapter's number too."""
    here = by_docname().get(docname)
    if kind != "recall" or (here is not None and here.name == question.chapter):
        return TITLES[kind]
    number = next(chapter.number for chapter in chapters() if chapter.name == question.chapter)
    return f"From Chapter {number}"


class Asks(SphinxDirective):
    """A question, by its label."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The question, its answers, and what is behind the fold."""
        for file in files():
            self.env.note_dependency(str(file))
        question = questions().get(self.arguments[0])
        if question is None:
            raise self.error(f"no questions.yml has a question {self.arguments[0]}")
        box = nodes.container("", classes=["question", f"question-{self.name}"], ids=[f"q-{question.label}"])
        kind = title(self.name, question, self.env.docname)
        box += nodes.paragraph("", kind, classes=["question-kind"])
        box += self.parsed(question.ask)
        order = question.answers(self.env.docname if self.name == "recall" else "")
        answers = nodes.bullet_list("", classes=["question-answers"])
        for answer in order:
            right = answer == question.right
            answers += nodes.list_item("", *self.parsed(answer), classes=["right"] * right)
        box += answers
        box += nodes.raw("", "<details data-answers><summary>Answer</summary>", format="html")
        reasons = {question.right: f"**{question.right}** {question.because}"}
        reasons |= {answer: f"*{answer}* {why}" for answer, why in question.wrong.items()}
        for answer, text in reasons.items():
            (reason,) = self.parsed(text)
            reason["classes"].append(f"why-{order.index(answer)}")
            box += reason
        box += nodes.raw("", "</details>", format="html")
        return [box]

    def parsed(self, text: str) -> list[nodes.Node]:
        """Markdown as nodes."""
        inside = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), source=self.env.docname), 0, inside)
        return inside.children


def setup(app: Sphinx) -> dict:
    """Adds the directives, the script and the style."""
    for kind in TITLES:
        app.add_directive(kind, Asks)
    app.add_css_file("questions.css")
    app.add_js_file("questions.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
