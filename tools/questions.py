"""Questions of a few seconds: before an answer is shown, after a section, or again in a later chapter.

A chapter's `questions.yml` holds them, so that page, notebook and cards show the same:

    attention-narrow:
      ask: What does a very small bandwidth make of the answers between six and nine?
      right: They jump, at half past seven.
      because: The weights are divided by their sum, so the nearest key takes nearly all, however far.
      wrong:
        They slide from 8° to 12°.: A wide bandwidth does that.
        There are none, as in a dictionary.: A dictionary has nothing to divide by.
      held: attention.narrow  # the claim that holds the right answer, the cell that shows it, or an equation

`ask`, the answers and the reasons are Markdown as in the chapters. Where a question stands, and whether it
asks for a guess, for what was read, or for what an earlier chapter taught, its page says:

    :::{predict} attention-narrow
    :::

with {predict}, {self-test} or {recall}.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import yaml
from chapters import chapters

FILE = "questions.yml"
TITLES = {"predict": "Predict", "self-test": "Ten seconds", "recall": "From an earlier chapter"}
KEYS = {"ask": str, "right": str, "because": str, "wrong": dict, "held": str}


@dataclass(frozen=True)
class Question:
    """A question with its answers, one of them right, and the reason for each."""

    label: str
    chapter: str  # the folder in which it stands
    ask: str
    right: str
    because: str
    wrong: dict[str, str]  # a tempting answer, and why it is none
    held: str  # a claim, a cell or an equation

    def answers(self, place: str = "") -> list[str]:
        """All answers, in an order that tells nothing and stays; in another place another one."""
        return sorted(
            [self.right, *self.wrong], key=lambda text: sha256((place + self.label + text).encode()).digest()
        )


def read(file: Path) -> list[Question]:
    """The questions of one file.

    Raises:
        ValueError: if a question lacks something, has what nobody reads, or a wrong number of answers.
    """
    found = []
    for label, told in (yaml.safe_load(file.read_text("utf8")) or {}).items():
        wrong = [
            f"{key} is no {kind.__name__}"
            for key, kind in KEYS.items()
            if not isinstance(told.get(key), kind)
        ]
        wrong += [f"{key} is read by nobody" for key in sorted(told.keys() - KEYS)]
        if not wrong:
            texts = [*told["wrong"], *told["wrong"].values()]
            wrong += [f"{text!r} is no text" for text in texts if not isinstance(text, str)]
            if not 1 <= len(told["wrong"]) <= 3:
                wrong.append(f"it has {len(told['wrong'])} wrong answers, one to three are asked for")
            if told["right"] in told["wrong"]:
                wrong.append("its right answer is among the wrong ones")
        if wrong:
            raise ValueError(f"{file}: {label}: {'; '.join(wrong)}")
        found.append(Question(label=label, chapter=file.parent.name, **told))
    return found


def files() -> list[Path]:
    """The files of the chapters that have one, in the book's order."""
    return [file for chapter in chapters() if (file := chapter.folder / FILE).exists()]


def questions() -> dict[str, Question]:
    """All questions by label.

    Raises:
        ValueError: if a file is wrong, or two questions have one label.
    """
    found: dict[str, Question] = {}
    for file in files():
        for question in read(file):
            if question.label in found:
                raise ValueError(f"{file}: {question.label} is in {found[question.label].chapter}, too")
            found[question.label] = question
    return found
