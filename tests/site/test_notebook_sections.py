"""What a section of a laboratory needs run before it: found in the code, and enough when it runs alone."""

import sys

import pytest

from tests.site.pages import ROOT

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
from tformer_notebook_sections import sections, sentence, titles


def notebook(*parts):
    """Cells: a text that begins with # or ( is Markdown, another is code."""
    return [
        {"cell_type": "markdown" if part[0] in "#(" else "code", "source": part, "metadata": {}}
        for part in parts
    ]


def after(*parts):
    """By a section's title, the titles of those that it goes on from."""
    found = sections(notebook(*parts))
    return {section.title: [found[i].title for i in section.after] for section in found[1:] if section.after}


HEAD = "import math\nlimit = 3\ndef half(x):\n    return x / 2"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("x = 1", "math.sqrt(limit)"),
        ("x = 1", "x = 2\nx + 1"),
        ("x = 1", "for x in range(3):\n    print(x)"),
        ("x = 1", "print([x for x in range(3)])"),
        ("x = 1", "half(x=3)"),
        ("x = 1", "def f(x):\n    y = x\n    return y\nf(1)"),
        ("x = 1", "f = lambda x: x\nf(1)"),
        ("x = 1", "with open('a') as x:\n    print(x)"),
        ("x = 1", "import x\nx.y"),
        ("x = 1", "if (x := limit) > 2:\n    print(x)"),
        ("x = 1", "try:\n    x = 2\nexcept OSError as error:\n    print(error)\nprint(x)"),
        ("x = 1", "print('x', {'x': 1}['x'])"),
        ("import math", "math.pi"),  # as the head does
        ("x = 1", "print(len([1]))"),
        ("x = 1", "%time 3"),
    ],
)
def test_a_section_that_needs_no_other(one, two):
    assert after(HEAD, "## One", one, "## Two", two) == {}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("x = 1", "x + 1"),
        ("x = 1", "x += 1"),
        ("x = 1", "x = x + 1"),
        ("x, y = 1, 2", "print(y)\nhalf(x)"),
        ("x = []", "x[0] = 1"),
        ("x = []", "x.append(1)"),
        ("x = [1]", "print([y for y in x])"),
        ("x = 1", "print([y for y in range(3) if y > x])"),
        ("x = 1", "def f():\n    return x\nf()"),
        ("x = 1", "f = lambda y: x + y"),
        ("x = 1", "def f(y=x):\n    return y"),
        ("x = 1", "class A:\n    y = x"),
        ("x = 1", "print(f'{x}')"),
        ("for x in range(3):\n    pass", "print(x)"),
        ("import x", "x.y"),
        ("def x():\n    return 1", "x()"),
        ("limit = 5", "limit + 1"),
        ("x = 1", "for y in range(3):\n    x = x + y"),
        ("x = 1", "if limit:\n    print(x)"),
    ],
)
def test_a_section_that_goes_on_from_another(one, two):
    assert after(HEAD, "## One", one, "## Two", two) == {"Two": ["One"]}


def test_the_last_that_bound_a_name_counts():
    parts = (HEAD, "## One", "x = 1", "## Two", "x = 2", "## Three", "x", "## Four", "limit")
    assert after(*parts) == {"Three": ["Two"]}


def test_a_name_of_the_head_that_a_section_changes_is_the_section_s():
    parts = (HEAD, "rows = []", "## One", "rows.append(1)", "## Two", "rows")
    assert after(*parts) == {"Two": ["One"]}


def test_who_calls_a_function_needs_what_it_reads():
    parts = (
        "def f():\n    return x",
        "## One",
        "x = 1",
        "## Two",
        "def g():\n    return f()",
        "## Three",
        "g()",
    )
    assert after(*parts) == {"Two": ["One"], "Three": ["One", "Two"]}


def test_all_that_has_to_run_is_named():
    parts = ("## A", "a = 1", "## B", "b = a", "## C", "c = 1", "## D", "b, c")
    assert after(*parts) == {"B": ["A"], "D": ["A", "B", "C"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(sec-one)=\n## One, *again*\n\nText.\n\n```python\n## no\n```\n\n## Two", ["One, *again*", "Two"]),
        ("# Title\n\n### Smaller\n\n::::{note}\n:::{tip}\n## no\n:::\n## no\n::::\n## One", ["One"]),
    ],
)
def test_titles_are_found_and_lines_in_boxes_are_none(text, found):
    assert [title for _, title in titles(text)] == found


def test_cells_to_answer_in_count_for_nothing():
    cells = notebook("## One", "x = 1", "## Two", "print(x)")
    cells[-1]["metadata"]["tags"] = ["answer"]
    assert not any(section.after for section in sections(cells))


def test_it_is_said_in_a_sentence():
    found = sections(notebook("## A", "a = 1", "## B", "b = a", "## C", "a + b"))
    assert [sentence(section, ["", "A", "*B*", "C"]) for section in found[1:]] == [
        "",
        "**To run this section alone**, run the first cell and then: “A”.",
        "**To run this section alone**, run the first cell and then: “A” · “*B*”.",
    ]


LABORATORY = [
    HEAD,
    "## A",
    "rows = [half(n) for n in range(limit)]",
    "def longest(of):\n    return max(of) * scale\nscale = 2",
    "## B",
    "other = {name: half(3) for name in 'ab'}",
    "## C",
    "best = longest(rows)\nfor name in other:\n    other[name] += best",
    "## D",
    "assert other['a'] > 2\ntotal = sum(other.values())",
    "## E",
    "scale = limit\nprint(scale * half(4))",
]


@pytest.mark.parametrize("place", range(1, 6))
def test_a_section_runs_with_the_head_and_what_it_goes_on_from_alone(place):
    cells = notebook(*LABORATORY)
    found = sections(cells)
    sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]

    def run(places):
        space = {}
        for each in sorted(places):
            for code in found[each].code:
                exec(sources[code], space)

    needed = {0, place, *found[place].after}
    assert len(needed) < len(found)
    run(needed)
    for other in found[place].after:
        with pytest.raises((NameError, AssertionError)):
            run(needed - {other})
