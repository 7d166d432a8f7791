"""Whether the letters of a page's formulas are told, and stand in the book's table: `tools/letters.py`."""

import re
from collections.abc import Collection, Iterator

from letters import Meaning, letters

FENCE = re.compile(r"^[ ]*(```+)(.*)$")
DISPLAY = re.compile(r"^[ ]*\$\$(.*?)\$\$[ ]*(?:\(([\w-]+)\))?", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<![\\$`])\$(?!\$)((?:[^$`]|`[^`$]*`)+?)(?<!\\)\$(?!\$)")
SPOKEN = re.compile(r"(?<![*\w])\*([A-Za-z])\*(?!\*)")  # a letter of the alphabet, as a token of a text
MINUTE = re.compile(r":class: dropdown in-one-minute.*?^:::", re.MULTILINE | re.DOTALL)
# An index that runs in the formula itself: below a sum or a maximum, from 0 to something, to the dots' end.
RUNS = (
    re.compile(
        r"(?:\\(?:sum|prod|max|min)|\\operatorname\*?\{\w+\})\s*_\s*(\{(?:[^{}]|\{[^{}]*\})*\}|\\?[A-Za-z])"
    ),
    re.compile(r"([A-Za-z])\s*=\s*-?\d[^&]*?\\dots"),
    re.compile(r"\\le\s*([A-Za-z])\s*<"),
    re.compile(r"\\dots\s*[,;]?\s*(?:\\[;, ]\s*)?(?:\\mathbf\{\w\}|\w)_(\w)"),
)
UNDER = re.compile(r"\\underset\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}")
PARTS = re.compile(r",(?![^{(\[]*[})\]])|\\dots|\\quad|\\times|\\partial|\\in(?![a-z])|=")
ENTRY = re.compile(r"\s*([a-z])_")
SHAPE = re.compile(
    r"((?:\\(?:mathbf|boldsymbol)\s*(?:\{\s*\\?[A-Za-z]+\s*\}|\\[A-Za-z]+|[A-Za-z]))"
    r"(?:\s*,\s*\\(?:mathbf|boldsymbol)\s*(?:\{\s*\\?[A-Za-z]+\s*\}|\\[A-Za-z]+|[A-Za-z]))*)"
    r"(_\w|_\{[^{}]*\})?\s*\\in\s*\\mathbb\s*\{?R\}?\s*\^\s*(\{(?:[^{}]|\{[^{}]*\})*\}|\w)"
)


def without_code(text: str) -> str:
    """The text with blanks in place of its blocks of code: what remains stands where it stood.

    A fence with a directive's name in braces holds text, such as a proof.
    """
    kept: list[str] = []
    inside: list[str] = []  # the kinds of the fences that are open
    for line in text.split("\n"):
        fence = FENCE.match(line)
        opens = fence and (fence[2].strip() or not inside)
        if fence and opens:
            inside.append("text" if fence[2].strip().startswith("{") else "code")
        kept.append(" " * len(line) if fence or "code" in inside else line)
        if fence and not opens:
            inside.pop()
    return "\n".join(kept)


def named(text: str) -> Iterator[tuple[int, str]]:
    """Where a sentence names a letter: a formula in it begins with the letter, or a part of the formula does.

    In "with $N$ tokens", "rows $x_1, ..., x_N$ of $H \\times W$ pixels" that holds for N, x, H and W.
    """
    prose = DISPLAY.sub(lambda match: " " * len(match[0]), text)
    for match in INLINE.finditer(prose):
        for part in PARTS.split(match[1]):
            for letter in letters(part)[:1]:
                yield match.start(), letter
            if entry := ENTRY.match(part):  # x_i is an entry of a column
                yield match.start(), rf"\mathbf{{{entry[1]}}}"
        for letter in _running(match[1]) | _factors(match[1]):
            yield match.start(), letter
    for match in SPOKEN.finditer(prose):
        yield match.start(), match[1]


def _factors(formula: str) -> set[str]:
    """The matrices of which a formula makes another: G = U Sigma V^T names all of them."""
    _, equals, product = formula.partition("=")
    found = letters(product)
    return set(found) if equals and all("bf" in letter or "symbol" in letter for letter in found) else set()


def _running(formula: str) -> set[str]:
    return {letter for run in RUNS for match in run.finditer(formula) for letter in letters(match[1])}


def defined(formula: str) -> set[str]:
    """The letters that a formula itself explains: left of an equals sign, and those that run in it."""
    found = _running(formula)
    for line in re.split(r"\\\\|\\q?quad|&\s*&", formula):
        left = re.match(r"(.*?)(?:=|\\propto|\\mapsto)", UNDER.sub("", line), re.DOTALL)
        if left:
            found |= set(letters(left[1]) if "(" in left[1] else letters(left[1])[:1])
    return found


def unexplained(text: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """The letters of displayed formulas that nothing explains, each with the formula.

    A letter is explained if it is known, if the formula or an earlier one defines it, or if the text names
    it: before the formula or in the paragraph behind it. What the box In one minute shows may be named
    anywhere.
    """
    text = without_code(text)
    told, said = set(known), list(named(text))
    minutes = [match.span() for match in MINUTE.finditer(text)]
    for match in DISPLAY.finditer(text):
        behind = re.compile(r"\n[ ]*\n").search(text, match.end() + len(_blank(text, match.end())))
        end = behind.start() if behind else len(text)
        if any(a <= match.start() < b for a, b in minutes):
            end = len(text)
        told |= defined(match[1])
        missing = dict.fromkeys(letters(match[1]))
        here = told | {letter for place, letter in said if place < end}
        # The columns of a matrix, and the entries of a column.
        here |= {letter.lower() for letter in here if letter.startswith(r"\mathbf")}
        here |= {letter[8] for letter in here if letter.startswith(r"\mathbf{") and letter[8:9].islower()}
        for letter in missing:
            if letter not in here:
                yield match[2] or " ".join(match[1].split())[:60], letter


def _blank(text: str, start: int) -> str:
    """The white space from there on."""
    return re.compile(r"\s*").match(text, start)[0]  # type: ignore[index]


def shown(text: str) -> set[str]:
    """The letters of displayed formulas."""
    return {letter for match in DISPLAY.finditer(without_code(text)) for letter in letters(match[1])}


def used(text: str) -> set[str]:
    """The letters of all formulas."""
    return shown(text) | {
        letter for match in INLINE.finditer(without_code(text)) for letter in letters(match[1])
    }


def must_be_listed(letter: str, listed: Collection[str]) -> bool:
    """Whether a letter that returns has to stand in the table: all but plain small ones that it lacks."""
    return letter in listed or not (len(letter) == 1 and letter.islower())


def shapes(text: str) -> Iterator[tuple[str, str]]:
    """Each shape that the text gives a matrix, X in R^(D x N); not those of a part with an index."""
    for match in SHAPE.finditer(without_code(text)):
        if not match[2] and not plain(match[3]).isdigit():
            for letter in letters(match[1]):
                yield letter, plain(match[3])


def plain(shape: str) -> str:
    """A shape without what only sets it."""
    return re.sub(r"\\text\s*\{(\w+)\}", r"\1", shape).replace("\\times", "x").strip("{}").replace(" ", "")


def of_chapter(table: Collection[Meaning], chapter: str, letter: str) -> list[Meaning]:
    """What a letter means in a chapter: what the table says of it, or what it says of the whole book."""
    own = [m for m in table if m.letter == letter and chapter in m.chapters]
    return own or [m for m in table if m.letter == letter and not m.chapters]
