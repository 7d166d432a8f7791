"""Each rule of style can fail: a made notebook of each kind keeps them all, and each edit breaks one."""

import copy
import json
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode, v4
from notebook_claims import FORM, TITLE

from tests.notebooks import companions, pattern, rules
from tests.notebooks.outputs import CLAIM, SVG
from tests.notebooks.page import Book, Page

BOOK = Book("https://example.org/book", frozenset({"vaswani2017attention"}))
ALL = {kind: [*rules.RULES, *of_kind] for kind, of_kind in pattern.RULES.items()}
OPENING = """(ch-made)=
# A made chapter

> **The question.** What is wrong? **You need** nothing. **You will build** a rule.
> **Runs in** about 20 seconds on a laptop with two cores."""
LABORATORY = """(lab-made)=
# A made chapter: laboratory

> **What this is.** The experiments behind {ref}`ch-made`. **You need** the chapter.
> **Runs in** about 20 seconds on a laptop with two cores."""
EXERCISES = """(exercises-made)=
# A made chapter: exercises

> **What this is.** The six exercises of {ref}`ch-made`.
> **Runs in** about a minute on a laptop with two cores."""
SETUP = """try:
    import tformer_book
except ImportError:
    %pip install -q "tformer-lib @ git+https://example.org/book"
    %pip install -q "tformer-book @ git+https://example.org/book#subdirectory=book"
"""
MINUTE = ":::{admonition} In one minute\n:class: dropdown in-one-minute\n```python\nz = 3\n```\n:::"
ASIDE = ":::{admonition} Aside: why it is one\n:class: dropdown aside\nIt is.\n:::"
DRAWING = {"text/html": "<svg><title>One</title></svg>", "text/plain": "One"}
BOX = ":::{admonition} From columns to rows\n:class: columns-to-rows\nTranspose.\n:::"
FIGURE = {
    "image": {"alt": "A line that rises from left to right."},
    "figure": {"caption": "A line.", "name": "fig-line"},
}
SOLVED = {"tags": ["solution"], "jupyter": {"source_hidden": True}, "cellView": "form"}
RECORD = {"name": "made.one", "value": 1.0, "low": 0.0, "high": 2.0, "unit": "", "text": "It is one."}


def exercise(i: int) -> str:
    return (
        f":::{{exercise}} Number {i}\n:label: ex-made-{i}\n\n"
        "*Easy · code · about 5 minutes*\n\nDo it.\n:::\n\n"
        f":::{{solution-start}} ex-made-{i}\n:label: sol-made-{i}\n:class: dropdown\n:::"
    )


def show(data: dict) -> NotebookNode:
    return v4.new_output("display_data", data=data)


def chapter() -> NotebookNode:
    """A chapter of which nothing is wrong."""
    cells = [
        v4.new_markdown_cell(OPENING),
        v4.new_code_cell(SETUP, metadata={"tags": ["hide-input"]}),
        *(
            v4.new_code_cell(
                f"draw({i})",
                outputs=[show(dict(DRAWING))],
                metadata={"mystnb": FIGURE, "tags": ["hide-input"]},
            )
            for i in range(pattern.LEAST_DRAWINGS)
        ),
        v4.new_markdown_cell(f"{MINUTE}\n\n## A section\n\nAn example.\n\n{ASIDE}"),
        v4.new_code_cell("print(1, 2, 3)", outputs=[v4.new_output("stream", name="stdout", text="1 2 3\n")]),
        v4.new_markdown_cell(
            "As {cite:t}`vaswani2017attention` write,\n$$y = x$$ (eq-made)\nsee {ref}`ch-made`."
        ),
        v4.new_markdown_cell("## The same by hand"),
        v4.new_code_cell("y = x = 1"),
        v4.new_code_cell("z = 3"),
        v4.new_markdown_cell(BOX),
        v4.new_code_cell("show_source(attention)"),
        v4.new_code_cell("assert_close(x, y)"),
        v4.new_code_cell(
            "plot()",
            outputs=[show({"image/png": "aGFsbG8=", "image/svg+xml": "<svg/>"})],
            metadata={"mystnb": FIGURE, "tags": ["nbval-ignore-output", "trained-figure"]},
        ),
        v4.new_code_cell(
            f'{TITLE}\nclaim("made.one", 1, (0, 2), "It is one.")',
            metadata=FORM,
            outputs=[show({"text/plain": "claim made.one: 1", CLAIM: RECORD})],
        ),
        v4.new_markdown_cell("## What you learned\n\nNothing."),
        v4.new_markdown_cell("## Further reading\n\n[A page](https://example.org/page.html)."),
    ]
    return notebook_of(cells)


def laboratory() -> NotebookNode:
    """A laboratory of which nothing is wrong."""
    cells = [
        v4.new_markdown_cell(LABORATORY),
        v4.new_code_cell(SETUP, metadata={"tags": ["hide-input"]}),
        v4.new_code_cell("from tformer_book.made.chapter import x"),
        v4.new_markdown_cell("(sec-made-lab-one)=\n## Is it one?\n\nIt is one.\n\n- Again."),
        v4.new_code_cell("x + 1"),
        v4.new_markdown_cell(f"{ASIDE}\n\n## Is it two?"),
        v4.new_markdown_cell("**No.** It is one: {ref}`ch-made`.\n\n```python\nz = 3\n```"),
        v4.new_code_cell("x + 2"),
    ]
    return notebook_of(cells)


def exercises() -> NotebookNode:
    """Exercises of which nothing is wrong."""
    cells = [
        v4.new_markdown_cell(EXERCISES),
        v4.new_code_cell(f"{SETUP}from tformer_book import check", metadata={"tags": ["hide-input"]}),
        v4.new_markdown_cell("\n\n".join(map(exercise, range(6)))),
        v4.new_markdown_cell(f"{companions.FOLD}\n\nIt is done.\n\n</details>"),
        v4.new_code_cell("# @title Solution\nfour = 2 + 2", metadata=SOLVED),
        v4.new_code_cell('# @title Solution\ncheck("a.b", f)', metadata=SOLVED),
        v4.new_markdown_cell(":::{solution-end}\n:::"),
        v4.new_code_cell(
            'f = lambda x: ...\ncheck("a.b", f)  # a stub', metadata={"tags": ["answer", "remove-cell"]}
        ),
    ]
    return notebook_of(cells)


def notebook_of(cells: list[NotebookNode]) -> NotebookNode:
    """The cells as a notebook that has run."""
    metadata = {"kernelspec": rules.KERNELSPEC, "language_info": {"name": "python"}}
    notebook = v4.new_notebook(cells=cells, metadata=metadata)
    for i, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        cell.execution_count = i
    return notebook


MADE = {"chapter": chapter, "laboratory": laboratory, "exercises": exercises}


def save(notebook: NotebookNode, folder: Path, kind: str = "chapter") -> Page:
    """The notebook in the folder of its chapter, beside those of the other kinds."""
    (folder / "made").mkdir()
    for each, make in MADE.items():
        text = json.dumps(notebook if each == kind else make())
        (folder / "made" / f"{each}.ipynb").write_text(text, "utf8")
    (folder / "other").mkdir()
    (folder / "other" / "chapter.ipynb").touch()  # of another chapter
    return Page.read(folder / "made" / f"{kind}.ipynb")


def cell_with(notebook: NotebookNode, text: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if text in cell.source)


def replace(old: str, new: str):
    def edit(notebook):
        cell = cell_with(notebook, old)
        cell.source = cell.source.replace(old, new)

    return edit


def change(text: str, **values):
    """Sets attributes of the cell that has the text."""
    return lambda notebook: cell_with(notebook, text).update(copy.deepcopy(values))


def add_cells(notebook: NotebookNode, count: int) -> None:
    """Puts as many visible cells into the core path."""
    place = notebook.cells.index(cell_with(notebook, "The same by hand"))
    notebook.cells[place:place] = [v4.new_code_cell("x = 1") for _ in range(count)]


def tag(text: str, *names: str):
    """The cell's metadata become these tags and nothing else."""
    return lambda notebook: cell_with(notebook, text).update(metadata=NotebookNode(tags=list(names)))


def drop(text: str):
    return lambda notebook: notebook.cells.remove(cell_with(notebook, text))


def every_code_cell_long(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source += "\nx = 1" * 9


def at(text: str, *cells: NotebookNode):
    """Puts cells before the one that has the text."""

    def edit(notebook):
        place = notebook.cells.index(cell_with(notebook, text))
        notebook.cells[place:place] = copy.deepcopy(list(cells))

    return edit


def figure_without(*keys: str):
    def edit(notebook):
        mystnb = copy.deepcopy(FIGURE)
        place = mystnb
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]
        cell_with(notebook, "plot()").metadata["mystnb"] = mystnb

    return edit


def add_output(text: str, output: NotebookNode):
    return lambda notebook: cell_with(notebook, text).outputs.append(output)


LARGE = {"image/png": "aGFsbG8=", "image/svg+xml": "<svg>" + 100_000 * " " + "\n"}
BROKEN = [
    ("ran_fresh", "execution counts", change("print(1", execution_count=None)),
    ("ran_fresh", "execution counts", change("print(1", execution_count=7)),
    (
        "ran_fresh",
        "another run",
        add_output("y = x = 1", v4.new_output("execute_result", execution_count=9)),
    ),
    (
        "clean_outputs",
        "error",
        add_output("y = x = 1", v4.new_output("error", ename="E", evalue="", traceback=[])),
    ),
    ("clean_outputs", "stderr", add_output("y = x = 1", v4.new_output("stream", name="stderr", text="w"))),
    ("clean_outputs", "image/jpeg", add_output("y = x = 1", show({"image/jpeg": "aGFsbG8="}))),
    ("metadata", "not normalised", lambda n: n.metadata.update(widgets={})),
    ("metadata", "not normalised", lambda n: n.metadata.language_info.update(version="3.11.7")),
    ("metadata", "'execution'", lambda n: n.cells[1].metadata.update(execution={})),
    ("metadata", "unknown tag", tag("y = x = 1", "nbval-skip")),
    ("metadata", "comment", replace("y = x = 1", "# NBVAL_SKIP\ny = x")),
    ("figures", "alternative text", figure_without("image", "alt")),
    ("figures", "caption", figure_without("figure", "caption")),
    ("figures", "name", figure_without("figure", "name")),
    ("figures", "2 figures", add_output("plot()", show({"image/png": "aGFsbG8="}))),
    ("figures", "rasterize", change("plot()", outputs=[show({"image/png": "", SVG: "x" * 100_001})])),
    (
        "figures",
        "its pictures are large",
        change("plot()", outputs=[show({"image/png": "", SVG: "data:image/png;base64," + "x" * 250_001})]),
    ),
    ("figures", "without an SVG", change("plot()", outputs=[show({"image/png": "aGFsbG8="})])),
    ("figures", "100,006 bytes", change("plot()", outputs=[show(LARGE)])),
    ("setup_cell", "hide-input", tag("%pip")),
    ("setup_cell", "lines", replace("%pip", "x = 1\n" * 9 + "%pip")),
    ("setup_cell", "git+https://example.org/book", replace("example.org/book", "example.org/fork")),
    ("setup_cell", "git+https://example.org/book", replace("example.org/book", "example.org/books")),
    ("setup_cell", "install tformer-lib", replace("tformer-lib", "tformer")),
    ("setup_cell", "install tformer-book", replace("#subdirectory=book", "")),
    ("median_length", "median", every_code_cell_long),
    ("code_length", "defines no class", replace("y = x = 1", "x = 1\n" * 26 + "y = x")),
    ("code_length", "empty", replace("show_source(attention)", "")),
    ("takes_from", "stands without it", replace("y = x = 1", "from tformer_book.made.laboratory import y")),
    ("takes_from", "stands without it", replace("y = x = 1", "from tformer_book.made import exercises as y")),
    ("takes_from", "is this notebook", replace("y = x = 1", "import tformer_book.made.chapter as y")),
    ("takes_from", "to the kit", replace("y = x = 1", "from tformer_book.other import chapter as y")),
    (
        "citations",
        "nobody1900nothing",
        replace("vaswani2017attention", "vaswani2017attention,nobody1900nothing"),
    ),
    ("held", "without nbval-ignore-output", tag("plot()", "trained-figure")),
    ("held", "checks anything", replace("claim(", "print(")),
    ("claims", "not among the outputs", change("claim(", outputs=[])),
    ("claims", "twice", add_output("claim(", show({CLAIM: RECORD}))),
    ("claims", "tagged nbval-ignore-output", tag("claim(", "nbval-ignore-output")),
    ("claims", "open in Jupyter", tag("claim(")),
    ("claims", "open in Jupyter", replace(f"{TITLE}\n", "")),
    ("links", "refer to a label", replace("An example.", "See [there](02_attention.ipynb#x).")),
    ("links", "refer to a label", replace("An example.", "See [there](glossary.md).")),
    ("links", "refer to a label", replace("An example.", "See {doc}`glossary`.")),
    ("plain_text", "absolute path", replace("print(1", "open('/home/me/x'); print(1")),
    (
        "plain_text",
        "absolute path",
        add_output("y = x = 1", v4.new_output("stream", name="stdout", text="/tmp/ipykernel_9/1.py\n")),
    ),
    ("plain_text", "emoji", replace("An example.", "An example \U0001f600.")),
    ("file_size", "bytes", replace("An example.", "x" * 3_200_001)),
    (
        "no_clock_held",
        "holds what a clock says: took",
        replace("y = x = 1", "begin = time.process_time()\ntook = begin / 2\nassert took < 9"),
    ),
    (
        "no_clock_held",
        "holds what a clock says: took",
        replace("y = x = 1", "def took():\n    return perf_counter()\n\n\nclaim('a.b', took(), (0, 1), 'x')"),
    ),
    ("opening", "label", replace("(ch-made)=", "")),
    ("opening", "label", replace("# A made chapter", "## A made chapter")),
    ("opening", "lacks **You need**", replace("**You need**", "You need")),
    (
        "opening",
        "out of order",
        replace("**You need** nothing. **You will build**", "**You will build** **You need**"),
    ),
    ("opening", "on a laptop with two cores", replace("about 20 seconds", "some time")),
    ("parts_in_order", "numbered equation", replace("$$ (eq-made)", "$$")),
    ("parts_in_order", "by hand", replace("by hand", "again")),
    ("columns_box", "From columns to rows", replace(":class: columns-to-rows", ":class: note")),
    ("parts_in_order", "a figure", change("plot()", outputs=[])),
    ("parts_in_order", "What you learned", drop("What you learned")),
    ("parts_in_order", "Further reading", lambda n: n.cells.insert(0, n.cells.pop())),
    (
        "example_comes_first",
        "no numbers",
        lambda n: [cell.update(outputs=[]) for cell in n.cells if cell.cell_type == "code"],
    ),
    ("length", "81 cells", lambda n: add_cells(n, 81 - len(n.cells))),
    ("length", "section Laboratory", replace("## Further", "## Laboratory\n\n## Further")),
    ("length", "section Exercises", replace("## Further", "## Exercises\n\n## Further")),
    ("length", "'ex-made-1' stands in the chapter", at("## What", v4.new_markdown_cell(exercise(1)))),
    ("first_screen", "no drawing", lambda n: n.cells.insert(2, v4.new_markdown_cell("## Early"))),
    ("first_screen", "In one minute", replace("In one minute", "In brief")),
    ("first_screen", "shows its code", tag("draw(1)")),
    ("folded_boxes", "is not folded", replace(":class: dropdown aside", ":class: aside")),
    ("folded_boxes", "too little", replace("Aside: why it is one", "Aside: this")),
    ("core_path", "words", replace("An example.", "word " * 1_851)),
    ("core_path", "visible cells", lambda n: add_cells(n, 21)),
    ("drawings", "1 drawings", change("draw(1)", outputs=[])),
    ("quoted_code", "stands in no cell", replace("z = 3\n```", "z = 4\n```")),
]


IN_LABORATORY = [
    ("laboratory_opening", "label (lab-...)=", replace("(lab-made)=", "(sec-made)=")),
    ("laboratory_opening", "lacks **What this is.**", replace("**What this is.**", "")),
    ("laboratory_opening", "lacks **You need**", replace("**You need**", "You want")),
    ("laboratory_opening", "on a laptop with two cores", replace("about 20 seconds", "some time")),
    ("findings_first", "opens with code", replace("It is one.\n\n- Again.", "")),
    ("findings_first", "but with '- Again.'", replace("It is one.\n\n- Again.", "- Again.")),
    ("findings_first", "but with '![One](", replace("It is one.", "![One](one.png)")),
    ("findings_first", "but with ':::{admonition} Aside", replace("**No.**", f"{ASIDE}\n\n**No.**")),
    ("findings_first", "says nothing before the next", replace("It is one.\n\n- Again.", "## Then")),
    ("findings_first", "'Then' says nothing", lambda n: n.cells.append(v4.new_markdown_cell("## Then"))),
    (
        "findings_first",
        "there is no section",
        lambda n: [c.update(source=c.source.replace("## ", "### ")) for c in n.cells],
    ),
    ("takes_from", "those are the reader's", replace("made.chapter", "made.exercises")),
    ("takes_from", "is this notebook", replace("made.chapter", "made.laboratory")),
    ("takes_from", "other/chapter.ipynb: move", replace("made.chapter", "other.chapter")),
    ("folded_boxes", "is not folded", replace(":class: dropdown aside", ":class: aside")),
    ("quoted_code", "stands in no cell", replace("z = 3\n```", "z = 4\n```")),
    ("setup_cell", "hide-input", tag("%pip")),
]
IN_EXERCISES = [
    ("exercises_opening", "label (exercises-...)=", replace("(exercises-made)=", "(ch-made)=")),
    ("exercises_opening", "lacks **What this is.**", replace("**What this is.**", "These are")),
    ("exercises_opening", "on a laptop with two cores", replace("about a minute", "some time")),
    ("one_cell_first", "2 cells of code", at("{exercise} Number 0", v4.new_code_cell("x = 1"))),
    ("one_cell_first", "no cell to answer in", drop("# a stub")),
    ("one_cell_is_enough", "does not give: four", replace("lambda x: ...", "four")),
    ("one_cell_is_enough", "does not give: check", replace("from tformer_book import check", "")),
    ("exercises", "5 labelled exercises", replace(":label: ex-made-3", "")),
    ("exercises", "of 6 exercises 0 begin with", replace("Easy · code · about 5 minutes", "easy")),
    ("exercises", "'ex-made-3' has no solution", replace("{solution-start} ex-made-3", "{note} ex-made-3")),
    ("exercises", "has no exercise", replace("{solution-start} ex-made-3", "{solution-start} ex-made-9")),
    ("answers_and_solutions", "a solution in words", replace(companions.FOLD, "Solution:")),
    ("answers_and_solutions", "Jupyter or Colab shows open", tag('Solution\ncheck("a.b"', "solution")),
    ("answers_and_solutions", "Colab shows open", replace("# @title Solution\nfour", "# solved:\nfour")),
    ("answers_and_solutions", "'a.b' has no cell to answer in", drop("# a stub")),
    ("answers_and_solutions", "tag it remove-cell", tag("# a stub", "answer")),
    ("quoted_code", "stands in no cell", replace("Do it.", "```python\nz = 4\n```")),
]
CASES = [
    (kind, *case)
    for kind, cases in {"chapter": BROKEN, "laboratory": IN_LABORATORY, "exercises": IN_EXERCISES}.items()
    for case in cases
]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [(kind, rule) for kind, of_kind in ALL.items() for rule in of_kind],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_made_notebooks_keep_every_rule(kind, rule, tmp_path):
    assert list(rule(save(MADE[kind](), tmp_path, kind), BOOK)) == []


@pytest.mark.parametrize(
    ("kind", "name", "words", "edit"), CASES, ids=[f"{kind}-{name}-{words}" for kind, name, words, _ in CASES]
)
def test_a_broken_rule_is_named(kind, name, words, edit, tmp_path):
    notebook = MADE[kind]()
    edit(notebook)
    (rule,) = [rule for rule in ALL[kind] if rule.__name__ == name]
    assert words in "\n".join(rule(save(notebook, tmp_path, kind), BOOK))


@pytest.mark.parametrize("kind", ALL)
def test_every_rule_is_broken_once(kind):
    broken = {name for each, name, _, _ in CASES if each in (kind, "chapter")}
    assert broken >= {rule.__name__ for rule in ALL[kind]}
    assert {name for each, name, _, _ in CASES if each == kind} <= {rule.__name__ for rule in ALL[kind]}


def test_a_long_class_is_allowed(tmp_path):
    notebook = chapter()
    replace("y = x = 1", "class Long:\n" + "    x = 1\n" * 30 + "y = x")(notebook)
    assert list(rules.code_length(save(notebook, tmp_path), BOOK)) == []


def test_the_book_is_read_from_its_files(tmp_path):
    (tmp_path / "_config.yml").write_text("repository:\n  url: https://example.org/book/\n")
    (tmp_path / "references.bib").write_text("@article{vaswani2017attention,\n title={A}\n}\n")
    assert Book.read(tmp_path) == BOOK


@pytest.mark.parametrize("kind", MADE)
def test_an_unread_notebook_is_valid(kind):
    nbformat.validate(MADE[kind]())


def test_a_module_goes_before_the_notebook_of_its_name(tmp_path):
    notebook = chapter()
    replace("y = x = 1", "from tformer_book.made import exercises")(notebook)
    page = save(notebook, tmp_path)
    assert list(rules.takes_from(page, BOOK))
    (tmp_path / "made" / "exercises.py").touch()
    assert list(rules.takes_from(page, BOOK)) == []


def test_the_median_is_of_all_notebooks_of_a_chapter(tmp_path):
    notebook = laboratory()
    notebook.cells += [v4.new_code_cell("x = 1\n" * 9) for _ in range(30)]
    page = save(notebook, tmp_path, "laboratory")
    assert list(rules.median_length(page, BOOK)) == []  # it is told of the chapter, once
    assert "has 9 lines" in "\n".join(rules.median_length(page.chapter, BOOK))


def test_claims_that_stand_together_count_each(tmp_path):
    notebook = chapter()
    notebook.cells += [v4.new_code_cell(TITLE + 5 * "\nclaim(\n    1,\n)") for _ in range(30)]
    assert list(rules.median_length(save(notebook, tmp_path), BOOK)) == []


def test_what_holds_an_output_stands_in_its_section_or_soon(tmp_path):
    notebook = chapter()
    shown = v4.new_code_cell("train()", metadata={"tags": ["nbval-ignore-output"]})
    at("plot()", shown, *[v4.new_code_cell("x = 1") for _ in range(5)])(notebook)
    page = save(notebook, tmp_path)
    assert list(rules.held(page, BOOK)) == []
    at("plot()", v4.new_markdown_cell("## Another"))(notebook)
    page.path.write_text(json.dumps(notebook), "utf8")
    assert "'train()' is not compared" in "\n".join(rules.held(Page.read(page.path), BOOK))
