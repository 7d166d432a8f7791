"""MyST as Markdown that every notebook reader shows: no role, fence, label, target or attribute is left.

What refers to something is asked of `Links`, which knows the site. The rest is a matter of the text alone:
admonitions become block quotes or folds, numbered equations get `\\tag`, and exercises become headings.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

FENCE = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,}|:{3,})(?P<info>.*)")
DIRECTIVE = re.compile(r"\{(?P<name>[\w:.+-]+)\}\s*(?P<argument>.*)")
OPTION = re.compile(r":(?P<key>[\w-]+):\s*(?P<value>.*)")
TARGET = re.compile(r"\([\w.:-]+\)=\s*")
ATTRIBUTES = re.compile(r"\{[.#%][^{}]*\}\s*")
COMMENT = re.compile(r"(%.*|\+\+\+.*)")
HEADING = re.compile(r"(?P<level>#{1,6})\s+\S")
MATH_END = re.compile(r"(?P<rest>.*?)\$\$\s*(?:\((?P<label>[\w.:-]+)\))?\s*")
INLINE = re.compile(
    r"(?P<role>\{(?P<name>[a-zA-Z][\w:.+-]*)\}(?P<ticks>`+)(?P<body>.+?)(?P=ticks)(?!`))"
    r"|(?P<code>(?P<run>`+)(?:.+?)(?P=run)(?!`))(?:\{[.#][^{}]*\})?"
    r"|(?P<math>(?<![\\$])\$\$?[^$]+\$\$?)"
    r"|(?P<span>\])\{[.#][^{}]*\}",
    re.DOTALL,
)
CLOSED = {"dropdown", "toggle"}
PROOFS = {
    "theorem", "lemma", "corollary", "proposition", "definition", "conjecture", "axiom", "assumption",
    "remark", "example", "algorithm", "criterion", "observation", "property", "proof",
}  # fmt: skip
BOXES = {
    "admonition", "attention", "caution", "danger", "error", "hint", "important", "note", "seealso", "tip",
    "warning",
}  # fmt: skip
BESIDE = {"margin", "sidebar", "epigraph"}
CODE = {"code", "code-block", "sourcecode", "code-cell"}
SOLUTION = "<details><summary>Solution</summary>"


ASKS = {"predict", "self-test", "recall"}


class Asked(Protocol):
    """A question with its answers and reasons."""

    ask: str
    right: str
    because: str
    wrong: dict[str, str]

    def answers(self, place: str = "") -> list[str]:
        """All answers, in their order there."""


class Links(Protocol):
    """What knows the site: its numbers, texts and addresses."""

    def role(self, name: str, body: str) -> str:
        """A role as Markdown."""

    def equation(self, label: str) -> str:
        """The number of an equation, "2.5"."""

    def exercise(self, label: str) -> str:
        """What an exercise is called, "Exercise 2.1"."""

    def proof(self, kind: str, label: str) -> str:
        """What a theorem is called, "Theorem 3.1"."""

    def question(self, kind: str, label: str) -> tuple[str, Asked]:
        """What stands over a question, "Predict", and the question."""

    def on_the_website(self, text: str, exercise: str) -> str:
        """The text of an exercise, in which "the website" leads to the figure that it needs."""


@dataclass
class Text:
    """The text of one notebook, cell after cell: which headings and exercises it has is remembered.

    `warn` hears of what cannot be shown.
    """

    links: Links
    warn: Callable[[str], None]
    level: int = 1  # of the heading under which the text is
    exercise: str = ""  # label of the exercise that is asked or solved
    solving: str = ""  # label of the exercise that is solved
    numbered: set[str] = field(default_factory=set)  # equations that were written

    def markdown(self, source: str) -> str:
        """A cell's text as Markdown; empty if nothing of it is to be seen."""
        return tidy("\n".join(self.blocks(source.split("\n"))))

    def line(self, source: str) -> str:
        """A caption or a title as Markdown."""
        return " ".join(self.inline(source).split())

    def blocks(self, lines: list[str], *, quoted: bool = False) -> Iterator[str]:
        """The lines of the result."""
        at, words = 0, list[str]()

        def told() -> Iterator[str]:
            if words:
                yield from self.inline("\n".join(words)).split("\n")
                words.clear()

        while at < len(lines):
            line = lines[at]
            fence = FENCE.fullmatch(line)
            if fence:
                end = closing(lines, at, fence)
                yield from told()
                yield from self.fenced(fence, lines[at + 1 : end], quoted=quoted)
                at = end + 1
            elif line.strip().startswith("$$"):
                end = at
                rest = line.strip()[2:]
                found = MATH_END.fullmatch(rest)
                body = [found["rest"]] if found else [rest]
                while not found and end + 1 < len(lines):
                    end += 1
                    found = MATH_END.fullmatch(lines[end])
                    body.append(found["rest"] if found else lines[end])
                yield from told()
                indent = line[: len(line) - len(line.lstrip())]
                label = found["label"] if found else None
                yield from (indent + part for part in self.equation(body, label, quoted=quoted))
                at = end + 1
            elif line.startswith(">"):
                end = at
                while end < len(lines) and lines[end].startswith(">"):
                    end += 1
                yield from told()
                inside = [re.sub(r"^> ?", "", part) for part in lines[at:end]]
                yield from quote("\n".join(self.blocks(inside, quoted=True)))
                at = end
            elif TARGET.fullmatch(line) or ATTRIBUTES.fullmatch(line) or COMMENT.fullmatch(line):
                at += 1
            else:
                if heading := HEADING.match(line):
                    yield from told()
                    self.level = len(heading["level"])
                if line.strip() == SOLUTION and self.solving:
                    line = line.replace("Solution<", f"Solution to {self.links.exercise(self.solving)}<")
                words.append(line)
                at += 1
        yield from told()

    def inline(self, source: str) -> str:
        """Text without fences."""

        def shown(found: re.Match) -> str:
            if found["role"]:
                return self.links.role(found["name"], " ".join(found["body"].split()))
            return found["code"] or found["math"] or found["span"]

        return INLINE.sub(shown, source)

    def equation(self, body: list[str], label: str | None, *, quoted: bool) -> list[str]:
        """A displayed equation with its number.

        In a quote it is one line: JupyterLab would take the marks of the quote for mathematics.
        """
        lines = [line.strip() for line in body if line.strip()]
        if label:
            lines.append(rf"\tag{{{self.links.equation(label)}}}")
            self.numbered.add(label)
        return [f"$$ {' '.join(lines)} $$"] if quoted else ["$$", *lines, "$$"]

    def fenced(self, fence: re.Match, body: list[str], *, quoted: bool) -> Iterator[str]:
        """Code, or a directive."""
        directive = DIRECTIVE.fullmatch(fence["info"].strip())
        if directive is None:
            yield from [fence[0], *body, f"{fence['indent']}{fence['marks']}"]
            return
        options = {}
        while body and (option := OPTION.fullmatch(body[0].strip())):
            options[option["key"]] = option["value"]
            body = body[1:]
        kind, argument = directive["name"], directive["argument"].strip()
        yield ""
        yield from self.directive(kind, argument, options, body, quoted=quoted)
        yield ""

    def directive(
        self, kind: str, argument: str, options: dict[str, str], body: list[str], *, quoted: bool
    ) -> Iterator[str]:
        """What a directive shows."""
        if kind in ("solution-start", "exercise-start"):
            self.solving = argument if kind == "solution-start" else ""
        elif kind in ("solution-end", "exercise-end"):
            self.solving = ""
        elif kind == "exercise":
            yield from self.asked(argument, options.get("label", ""), body)
        elif kind == "solution":
            title = f"Solution to {self.links.exercise(argument)}"
            yield from fold(title, self.blocks(body))
        elif kind in ASKS:
            yield from self.question(*self.links.question(kind, argument))
        elif kind in CODE:
            yield from [f"```{argument}", *body, "```"]
        elif kind == "math":
            yield from self.equation(body, options.get("label"), quoted=quoted)
        elif kind.removeprefix("prf:") in PROOFS:
            yield from self.proved(kind.removeprefix("prf:"), argument, options.get("label", ""), body)
        elif kind in BOXES | BESIDE:
            title = argument if kind in ("admonition", "sidebar") else ""
            title = title or ("" if kind in BESIDE else "See also" if kind == "seealso" else kind.title())
            if kind in BOXES and CLOSED & set(options.get("class", "").split()):
                yield from fold(as_html(self.line(title)), self.blocks(body, quoted=quoted))
            else:
                head = [f"**{without_stop(self.line(title))}**", ""] if title else []
                inside = self.blocks([*body] if kind not in BESIDE or title else body, quoted=True)
                yield from quote("\n".join([*head, *inside]))
        else:
            self.warn(f"notebooks: nothing says how {{{kind}}} is shown in a notebook")

    def question(self, title: str, question: Asked) -> Iterator[str]:
        """A question with its answers; the right one and the reasons are closed."""
        lines = [f"**{without_stop(title)}** {question.ask.strip()}", ""]
        lines += [f"- {' '.join(answer.split())}" for answer in question.answers()]
        yield from quote("\n".join(self.blocks("\n".join(lines).split("\n"), quoted=True)))
        yield ""
        reasons = [f"**{question.right}** {question.because}"]
        reasons += [f"*{answer}* {why}" for answer, why in question.wrong.items()]
        yield from fold("Answer", self.blocks("\n\n".join(reasons).split("\n")))

    def asked(self, title: str, label: str, body: list[str]) -> Iterator[str]:
        """An exercise: a heading below the section's, and what it asks."""
        self.exercise = label
        yield f"{'#' * min(self.level + 1, 6)} {self.links.exercise(label)}. {self.line(title)}".rstrip(". ")
        yield ""
        text = "\n".join(self.blocks(body))
        yield from self.links.on_the_website(text, label).split("\n")

    def proved(self, kind: str, title: str, label: str, body: list[str]) -> Iterator[str]:
        """A theorem, or its proof."""
        if kind == "proof":
            head = "*Proof.*"
        else:
            name = self.links.proof(kind, label) if label else kind.title()
            head = f"**{name}**{f' ({self.line(title)})' if title else ''}**.**"
            head = head.replace("****", "")
        inside = tidy("\n".join(self.blocks(body, quoted=True)))
        yield from quote(f"{head} {inside}")


def closing(lines: list[str], start: int, fence: re.Match) -> int:
    """The line that closes a fence: as many marks of its kind or more, or the last line."""
    mark, count = fence["marks"][0], len(fence["marks"])
    end = re.compile(rf" *{re.escape(mark)}{{{count},}}\s*")
    return next((i for i in range(start + 1, len(lines)) if end.fullmatch(lines[i])), len(lines))


def quote(text: str) -> Iterator[str]:
    """A block quote."""
    for line in tidy(text).split("\n"):
        yield f"> {line}".rstrip()


def fold(title: str, inside: Iterator[str]) -> Iterator[str]:
    """What its title opens; the empty lines let what is in it be Markdown."""
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield from tidy("\n".join(inside)).split("\n")
    yield ""
    yield "</details>"


def as_html(markdown: str) -> str:
    """A title's Markdown as HTML: between the tags of a fold nobody renders it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    text = html.escape(text, quote=False)
    for marks, tag in ((r"\*\*", "strong"), (r"\*", "em"), ("`", "code")):
        text = re.sub(rf"{marks}(\S(?:.*?\S)?){marks}", rf"<{tag}>\1</{tag}>", text)
    return text


def without_stop(title: str) -> str:
    """A title with the mark that ends it: a full stop if it has none."""
    return title if title.endswith((".", "?", "!", ":")) else f"{title}."


def tidy(text: str) -> str:
    """Text without empty lines at its ends or next to each other, but in code."""
    kept: list[str] = []
    code = ""
    for line in text.split("\n"):
        mark = re.match(r"[> ]*(`{3,}|~{3,})", line)
        if mark and (not code or mark[1].startswith(code)):
            code = "" if code else mark[1]
        if code or line.strip() or (kept and kept[-1].strip()):
            kept.append(line if line.strip() else "")
    return "\n".join(kept).strip("\n")
