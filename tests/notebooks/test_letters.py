"""The formulas of all pages keep to the letters of Chapter 0, which stand in book/notation/letters.yml."""

from collections import defaultdict
from functools import cache

import nbformat
import pytest
from chapters import Chapter, chapters
from letters import FILE, letters, meanings, tables, with_tables
from letters import told as read

from tests.notebooks.letters import (
    defined,
    must_be_listed,
    named,
    of_chapter,
    plain,
    shapes,
    shown,
    unexplained,
    used,
)
from tests.notebooks.page import Page

TABLE = meanings()
WHOLE_BOOK = {meaning.letter for meaning in TABLE if not meaning.chapters}
LISTED = {meaning.letter for meaning in TABLE if meaning.chapters}
CHAPTERS = [chapter for chapter in chapters() if chapter.name != "notation"]
PAGES = [(chapter, path) for chapter in CHAPTERS for path in chapter.notebooks]
names = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)


@cache
def prose(path) -> str:
    return Page.read(path).prose


@cache
def of_all(chapter: Chapter) -> str:
    return "\n\n".join(prose(path) for path in chapter.notebooks)


@cache
def shown_in(chapter: Chapter) -> frozenset[str]:
    return frozenset(shown(of_all(chapter)))


@pytest.mark.parametrize(("chapter", "path"), PAGES, ids=[f"{c.name}-{p.stem}" for c, p in PAGES])
def test_letters_of_a_formula_are_explained(chapter, path):
    """By Chapter 0 for the whole book, or by this page; what a chapter explains, its other pages may use."""
    known = WHOLE_BOOK - {meaning.letter for meaning in TABLE if chapter.name in meaning.chapters}
    if path != chapter.notebook:
        known |= {letter for _, letter in named(prose(chapter.notebook))} | shown(prose(chapter.notebook))
    for formula, letter in unexplained(prose(path), known):
        problem = (
            f"{formula}: nothing says what {letter} is, before the formula or in the paragraph behind it"
        )
        pytest.fail(f"{problem}; say it, or use the letter of Chapter 0 for it ({FILE})")


@names
def test_letters_that_return_are_in_the_table(chapter):
    """A letter that two chapters display in formulas stands in the table, with what it means in each."""
    others = set().union(*(shown_in(other) for other in CHAPTERS if other != chapter))
    here = {letter for letter in shown_in(chapter) if must_be_listed(letter, LISTED)}
    lacking = [
        letter for letter in sorted(here & (others | LISTED)) if not of_chapter(TABLE, chapter.name, letter)
    ]
    assert not lacking, f"say in {FILE}, under several, what it means in {chapter.name}: {' '.join(lacking)}"


@names
def test_the_table_says_nothing_that_a_chapter_does_not_use(chapter):
    said = {meaning.letter for meaning in TABLE if chapter.name in meaning.chapters}
    lost = sorted(said - used(of_all(chapter)))
    assert not lost, f"{FILE} explains letters that {chapter.name} does not use: {' '.join(lost)}"


@names
def test_shapes_are_those_of_the_table(chapter):
    """A matrix that a page puts in R^(D x N) is the table's, or has a meaning of its own there."""
    wrong = []
    for letter, shape in shapes(of_all(chapter)):
        told = [meaning.shape.split(", ") for meaning in of_chapter(TABLE, chapter.name, letter)]
        wanted = {plain(each) for shapes in told for each in shapes} - {""}
        if wanted and shape not in wanted:
            wrong.append(f"{letter} is {shape} here and {' or '.join(sorted(wanted))} in the table")
    assert not wrong, f"{chapter.name}: {'; '.join(wrong)}: take another letter, or add a meaning to {FILE}"


def test_chapter_0_shows_the_table():
    (path,) = [chapter.notebook for chapter in chapters() if chapter.name == "notation"]
    made, missing = tables(), set(tables())
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            assert with_tables(cell.source, made) == cell.source, "run tools/letters.py"
            missing -= {part for part in missing if f"letters: {part} " in cell.source}
    assert not missing


def test_a_letter_has_one_meaning_in_a_chapter():
    """Two in one chapter stand in one row, so that a reader sees both."""
    rows = defaultdict(list)
    for meaning in TABLE:
        for chapter in meaning.chapters:
            rows[meaning.letter, chapter].append(meaning.means)
    assert {key for key, said in rows.items() if len(said) > 1} == set()
    assert list(read()["several"]) == list(
        dict.fromkeys(meaning.letter for meaning in TABLE if meaning.chapters)
    )


FORMULAS = {
    r"\mathbf{Q} = \boldsymbol\beta_q\mathbf{1}^{\mathsf T} + \boldsymbol\Omega_q\mathbf{X}": [
        r"\mathbf{Q}",
        r"\boldsymbol{\beta}",
        r"\boldsymbol{\Omega}",
        r"\mathbf{X}",
    ],
    r"\frac{\mathbf q}{\operatorname{rms}(\mathbf q)}": [r"\mathbf{q}", r"\mathbf{q}"],
    r"\mathcal L = -\frac1N \sum_{n=1}^{N} \ln p(x_n)": [r"\mathcal{L}", *"NnNpxn"],
    r"e^{-2\pi \mathrm{i} k t/T}": list("ktT"),
    r"\pi_n \pi": [r"\pi", "n"],
    r"\|\mathbf{W}\|_F^2 + D_h H_{kv}": [r"\mathbf{W}", "D", "H"],
    r"A_{sn} \quad \hat{\mathbf{x}}_n'": [r"\mathbf{A}", *"sn", r"\mathbf{x}", "n"],
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_letters_are_found(formula):
    assert letters(formula) == FORMULAS[formula]


def test_a_formula_explains_what_it_defines_and_what_runs_in_it():
    assert defined(r"\underset{D\times N}{\mathbf{Y}} = \mathbf{X}") == {r"\mathbf{Y}"}
    assert defined(r"f(x, y) = x + y") == set("fxy")
    assert defined(r"\sum_{j \in S} a_j") == set("jS")
    assert defined(r"w_j \mapsto v, \qquad j = 1, \dots, K") == {"w", "j"}


SAID = {
    "$$\nC = \\rho D\n$$\n\nHere $\\rho$ is a share.\n": [],
    "$$\nC = \\rho D\n$$\n\nHere it is.\n\nAnd $\\rho$ is a share.\n": [("C = \\rho D", "\\rho")],
    "With a share $\\rho$,\n\n$$\nC = \\rho D\n$$ (eq-cost)\n": [],
    "It is\n\n$$\nC = \\rho D\n$$ (eq-cost)\n": [("eq-cost", "\\rho")],
    "Of $H\\times W$ pixels,\n\n$$\nC = HW\n$$\n": [],
    "```python\nC = rho * D\n```\n\n$$\nC = \\rho D\n$$ (eq-cost)\n": [("eq-cost", "\\rho")],
    ":::{box} M\n:class: dropdown in-one-minute\n\n$$\nC = \\rho\n$$\n\nA.\n:::\n\nB.\n\nA $\\rho$.": [],
}


@pytest.mark.parametrize("text", SAID)
def test_what_nothing_explains_is_found(text):
    assert list(unexplained(text, {"D"})) == SAID[text]


def test_shapes_are_found():
    text = r"$\mathbf{E}\in\mathbb{R}^{D\times\text{vocab}}$, $\mathbf{x}_n \in \mathbb{R}^D$, "
    text += r"$\mathbf q, \mathbf{k}\in\mathbb R^{D_h}$"
    assert list(shapes(text)) == [
        (r"\mathbf{E}", "Dxvocab"),
        (r"\mathbf{q}", "D_h"),
        (r"\mathbf{k}", "D_h"),
    ]
