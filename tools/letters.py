r"""The letters of the book's formulas: what they mean, and in which chapters.

`book/notation/letters.yml` says it. Chapter 0 shows it as tables, which this script writes there:

    python tools/letters.py

and `tests/notebooks/test_letters.py` holds the formulas of all pages to it. A letter is written there as in a
formula, in bold, calligraphic or plain: `N`, `\rho`, `\mathbf{X}` and `\mathcal{L}` are four letters, and
`\mathbf{X}` and `X` are two. Hats, bars, primes and indices do not make another letter.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from chapters import ROOT, chapters

FILE = Path("book", "notation", "letters.yml")
PAGE = Path("book", "notation", "chapter.ipynb")
START, END = "<!-- letters: {} -->", "<!-- end of letters -->"

GREEK = re.findall(
    r"\w+",
    "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell",
)
_GREEK = "|".join(sorted(GREEK, key=len, reverse=True))
STYLES = {"mathbf": "bold", "boldsymbol": "bold", "mathcal": "calligraphic"}
# What stands in a formula and is no letter: words, upright letters, sizes of what follows.
WORDS = re.compile(
    r"\\begin\{array\}\{[^}]*\}"
    r"|\\(?:text|textbf|textit|operatorname\*?|mathrm|mathsf|mathbb|begin|end|hspace|phantom)\s*\{[^{}]*\}"
    r"|\\(?:mathrm|mathsf|mathbb)\s*[A-Za-z]"
    r"|\\\\\[[^\]]*\]"
    r"|\\\|\s*_\s*\{?F\}?"  # the norm of Frobenius
    r"|(?<![A-Za-z\\])e(?=\s*\^)"  # the number
    r"|(?<![A-Za-z\\])O(?=\s*\()"  # the order
    r"|\\pi(?![A-Za-z_(])"  # the number
)
# An index that belongs to a name says no number: W_q, Omega_o, beta_1, D_h.
NAMED = re.compile(
    r"(\\(?:mathbf|boldsymbol)\s*(?:\{\s*\\?(?:W|Omega|beta|gamma)\s*\}|\\(?:Omega|beta|gamma)(?![A-Za-z])|\s[W])"
    r"|(?<![A-Za-z\\])[DH]"
    r")\s*_\s*(?:\{[^{}]*\}|\\?[A-Za-z0-9])"
)
# A plain capital with two indices is an entry of the matrix: A_{sn}.
ENTRY = re.compile(r"(?<![A-Za-z\\{])([A-Z])\s*_\s*\{(?=[a-z]{2,}\})(?!kv|in|min|max)")
LETTER = re.compile(
    r"\\(mathbf|boldsymbol|mathcal)\s*(?:\{\s*\\?([A-Za-z]+)\s*\}|\\("
    + _GREEK
    + r")(?![A-Za-z])|\s*([A-Za-z]))"
    r"|\\(" + _GREEK + r")(?![A-Za-z])"
    r"|\\[A-Za-z]+|\\."
    r"|([A-Za-z])"
)


def letters(formula: str) -> list[str]:
    """The letters of a formula, in order, each as letters.yml writes it."""
    found = []
    formula = NAMED.sub(r"\1 ", ENTRY.sub(r"\\mathbf{\1}_{", WORDS.sub(" ", formula)))
    for match in LETTER.finditer(formula):
        style, braced, greek, plain, alone, latin = match.groups()
        if style:
            name = braced or greek or plain
            names = [name] if name in GREEK or len(name) == 1 else list(name)
            found += [canonical(STYLES[style], each) for each in names]
        elif alone or latin:
            found.append(canonical("", alone or latin))
    return found


def canonical(style: str, name: str) -> str:
    r"""A letter in one spelling: bold Greek as \boldsymbol{\beta}, other bold as \mathbf{X}."""
    command = f"\\{name}" if name in GREEK else name
    if style == "bold":
        return rf"\boldsymbol{{{command}}}" if name in GREEK else rf"\mathbf{{{command}}}"
    return rf"\mathcal{{{command}}}" if style else command


@dataclass(frozen=True)
class Meaning:
    """What a letter means in some chapters, or in all that say nothing else."""

    letter: str
    means: str
    shape: str = ""  # of a matrix or a column, as a formula; "" for a number
    chapters: tuple[str, ...] = ()  # the folders of those that use it so; () for the whole book


def _meanings(told: dict) -> Iterator[Meaning]:
    for part in ("sizes", "objects", "counters"):
        for row in told[part]:
            for letter in row.get("letters", [row.get("letter")]):
                shape = row.get("shape", "")
                column = letter.startswith(r"\mathbf") and letter == letter.lower()
                yield Meaning(letter, row["means"], shape.split(r" \times")[0] if column else shape)
    for letter, rows in told["several"].items():
        for row in rows:
            yield Meaning(letter, row["means"], row.get("shape", ""), tuple(row["in"]))


@cache
def told(root: Path = ROOT) -> dict:
    """What letters.yml says, as it stands there."""
    return yaml.safe_load((root / FILE).read_text("utf8"))


@cache
def meanings(root: Path = ROOT) -> tuple[Meaning, ...]:
    """All meanings of all letters.

    Raises:
        ValueError: if a letter is not written in the one way, or a chapter is named that is not there.
    """
    found = tuple(_meanings(told(root)))
    there = {chapter.name for chapter in chapters(root)}
    for meaning in found:
        if (written := letters(f"{meaning.letter}_{{}}")) != [meaning.letter]:
            raise ValueError(f"{FILE}: {meaning.letter} is to be written {' '.join(written)}")
        if lost := sorted(set(meaning.chapters) - there):
            raise ValueError(f"{FILE}: {meaning.letter} names chapters that are not there: {', '.join(lost)}")
    return found


def _math(formula: str) -> str:
    return "a number" if formula == "number" else f"${formula}$" if formula else "as it is used"


def _place(letter: str) -> tuple[int, int, str]:
    """Where a letter stands in the table: plain ones first, then Greek, bold, calligraphic."""
    name = re.sub(r"\\(?:mathbf|boldsymbol|mathcal)\{\\?|[\\}]", "", letter)
    kind = next((i for i, style in enumerate(("mathbf", "boldsymbol", "mathcal"), 2) if style in letter), 0)
    return kind or int(name in GREEK), GREEK.index(name) if name in GREEK else 0, name.swapcase()


def _label(name: str, root: Path) -> str:
    """The label of a chapter, by which pages refer to it."""
    (chapter,) = [chapter for chapter in chapters(root) if chapter.name == name]
    cells = json.loads(chapter.notebook.read_text("utf8"))["cells"]
    return re.search(r"^\(([\w-]+)\)=", "".join(cells[0]["source"]), re.MULTILINE)[1]  # type: ignore[index]


def tables(root: Path = ROOT) -> dict[str, str]:
    """The tables of Chapter 0, by the part of the file that each shows, in Markdown."""
    said = told(root)
    order = [chapter.name for chapter in chapters(root)]
    rows = [
        f"| {row.get('show') or _math(row['letter'])} | {row['means']} | {row['code']} |"
        for row in said["sizes"]
    ]
    made = {"sizes": ["| Letter | What it is | In the code |", "|---|---|---|", *rows]}
    rows = [
        f"| {_math(row.get('show') or row['letter'])} | {_math(row['shape'])} | {row['means']} "
        f"| {row['code']} |"
        for row in said["objects"]
    ]
    made["objects"] = ["| Symbol | Shape | What it is | In the code |", "|---|---|---|---|", *rows]
    rows = [f"| {_math(', '.join(row['letters']))} | {row['means']} |" for row in said["counters"]]
    made["counters"] = ["| Letter | What it counts |", "|---|---|", *rows]
    rows = []
    for letter in sorted(said["several"], key=_place):
        meant, places = said["several"][letter], []
        for row in meant:
            numbers = [
                f"{{chapter}}`%s <{_label(name, root)}>`" for name in sorted(row["in"], key=order.index)
            ]
            shape = f" ({_math(row['shape'])})" if row.get("shape") else ""
            places.append(f"{', '.join(numbers)}: {row['means']}{shape}")
        rows.append(f"| {_math(letter)} | {'; '.join(places)} |")
    made["several"] = ["| Letter | In chapter |", "|---|---|", *rows]
    return {part: "\n".join(lines) for part, lines in made.items()}


def with_tables(text: str, made: dict[str, str]) -> str:
    """A cell's text with its tables as they should be."""
    for part, table in made.items():
        start = START.format(part)
        pattern = re.compile(f"{re.escape(start)}\n.*?{re.escape(END)}", re.DOTALL)
        text = pattern.sub(lambda _: f"{start}\n\n{table}\n\n{END}", text)  # noqa: B023
    return text


def main(root: Path = ROOT) -> int:
    """Write the tables into Chapter 0."""
    path = root / PAGE
    page, made = json.loads(path.read_text("utf8")), tables(root)
    for cell in page["cells"]:
        if cell["cell_type"] == "markdown":
            text = with_tables("".join(cell["source"]), made)
            cell["source"] = text.splitlines(keepends=True)
    path.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n", "utf8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
