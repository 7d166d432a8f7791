"""The rules that notebooks of every kind keep: each takes a page and the book, and yields what is wrong."""

import ast
import re
from collections.abc import Callable, Iterator
from statistics import median

from chapters import CHAPTER, EXERCISES, kind
from check import MAGIC
from nbformat import NotebookNode
from notebook_claims import FORM, TITLE, only_claims
from notebook_code import taken
from notebook_figures import without_svg

from tests.notebooks.outputs import CLAIM, COMPARED, SVG
from tests.notebooks.page import Book, Page, describe, lines, mime_types, tags

Rule = Callable[[Page, Book], Iterator[str]]

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
TAGS = {
    "hide-input",
    "nbval-ignore-output",
    "grown",
    "trained-figure",
    "timing",
    "solution",
    "answer",
    "remove-cell",
}
METADATA = {"tags", "mystnb", "tformer", "jupyter", "cellView"}
LIMIT = 3_200_000  # bytes; a figure is in it as SVG and as PNG, and the longest chapter has over thirty
SVG_LIMIT = 100_000  # bytes of one figure, without the pictures that lie in it
SVG_WHOLE = 250_000  # bytes of one figure with them; photographs are large
PICTURE = re.compile(r"data:image/[^\"]*")
MEDIAN_LINES, MOST_LINES, SETUP_LINES = 6, 25, 16
ALT_TEXT = 20  # characters: less does not say what a figure shows
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u26ff\u2705\u274c\u2728\u2753-\u2757\u2b50\u2b55\ufe0f]")
CLOCKS = {"process_time", "perf_counter", "monotonic", "time_per_token", "timeit"}
HOME = re.compile(r"(?<![\w:/.\-])/(?:home|root|Users|tmp|work|mnt|usr|var|opt|content)/|\b[A-Z]:\\\\?\w")
PAGE_LINK = re.compile(r"\]\((?!https?://)[^)\s]*\.(?:ipynb|md|html)\b[^)]*\)|\{doc\}`[^`]*`")


def ran_fresh(page: Page, book: Book) -> Iterator[str]:
    """Every code cell ran, once, in order."""
    counts = [cell.execution_count for cell in page.code]
    if counts != list(range(1, len(counts) + 1)):
        yield f"the execution counts are {counts}: run `make execute`"
    for cell in page.code:
        for output in cell.outputs:
            if output.get("execution_count", cell.execution_count) != cell.execution_count:
                yield f"{describe(cell)} shows a result of another run"


def clean_outputs(page: Page, book: Book) -> Iterator[str]:
    """No error, nothing on stderr, nothing that the notebook test does not compare."""
    for cell in page.code:
        kinds = {output.output_type for output in cell.outputs}
        if "error" in kinds:
            yield f"{describe(cell)} ends in an error"
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield f"{describe(cell)} writes to stderr"
        for mime in sorted(mime_types(cell) - COMPARED - {"image/png"}):
            yield f"{describe(cell)} shows {mime}, which the notebook test does not compare"


def metadata(page: Page, book: Book) -> Iterator[str]:
    """Only what the book needs, so that a re-run changes nothing."""
    notebook = page.notebook
    own = {k: v for k, v in notebook.metadata.items() if not k.startswith("og:")}
    if own != {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}:
        yield f"the notebook's metadata is not normalised: {sorted(own)}"
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        yield f"the format is {notebook.nbformat}.{notebook.nbformat_minor}, not 4.5"
    for cell in page.cells:
        for key in sorted(set(cell.metadata) - METADATA):
            yield f"{describe(cell)} has {key!r} in its metadata"
        for tag in sorted(set(tags(cell)) - TAGS):
            yield f"{describe(cell)} has the unknown tag {tag!r}"
        if cell.cell_type == "code" and re.search(r"^\s*#\s*NBVAL_", cell.source, re.MULTILINE):
            yield f"{describe(cell)} is marked by a comment; use tags"


def figures(page: Page, book: Book) -> Iterator[str]:
    """A figure has an alternative text, a caption, a name and a small SVG; one figure a cell."""
    for cell in page.code:
        pictures = [o for o in cell.outputs if any(m.startswith("image/") for m in o.get("data", {}))]
        if not pictures:
            continue
        mystnb = cell.metadata.get("mystnb", {})
        figure = mystnb.get("figure", {})
        if len(pictures) > 1:
            yield f"{describe(cell)} shows {len(pictures)} figures; a caption belongs to one"
        drawn = "<desc" in "".join(pictures[0].data.get("text/html", ""))  # a drawing describes itself
        if not drawn and len(mystnb.get("image", {}).get("alt", "").strip()) < ALT_TEXT:
            yield f"{describe(cell)} has a figure without alternative text"
        if not figure.get("caption", "").strip():
            yield f"{describe(cell)} has a figure without a caption"
        if not figure.get("name", "").startswith("fig-"):
            yield f"{describe(cell)} has a figure without a name that starts with fig-"
        if without_svg(pictures):
            yield f"{describe(cell)} has a figure without an SVG, which the site shows: run `make execute`"
        for svg in ("".join(o.data.get(SVG, "")) for o in pictures):
            lines_alone = len(PICTURE.sub("", svg).encode())
            if lines_alone > SVG_LIMIT:
                yield f"{describe(cell)} has an SVG of {lines_alone:,} bytes: rasterize what is many"
            if len(svg.encode()) > SVG_WHOLE:
                yield f"{describe(cell)} has an SVG of {len(svg.encode()):,} bytes: its pictures are large"


def setup_cell(page: Page, book: Book) -> Iterator[str]:
    """The first code cell is folded, short, and installs both packages from the book's repository."""
    if not page.code:
        return
    cell = page.code[0]
    if "hide-input" not in tags(cell):
        yield "the first code cell is not tagged hide-input"
    if lines(cell) > SETUP_LINES:
        yield f"the first code cell has {lines(cell)} lines; {SETUP_LINES} are allowed"
    for name, folder in (("tformer-lib", ""), ("tformer-book", "#subdirectory=book")):
        wanted = f"{name} @ git+{book.address}{folder}"
        if not re.search(rf"%pip install .*{re.escape(wanted)}[\"']", cell.source):
            yield f"the first code cell does not install {wanted}"


def code_length(page: Page, book: Book) -> Iterator[str]:
    """Short cells; only a class and a list of imports may be long."""
    for cell in page.code:
        if lines(cell) == 0:
            yield "a code cell is empty"
        long = lines(cell) > MOST_LINES and not _only_imports(cell)
        if long and not re.search(r"^class ", cell.source, re.MULTILINE):
            yield f"{describe(cell)} has {lines(cell)} lines and defines no class"


def _only_imports(cell: NotebookNode) -> bool:
    """Whether a cell does nothing but import."""
    statements = ast.parse(MAGIC.sub(r"\1pass", cell.source)).body
    return all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in statements)


def median_length(page: Page, book: Book) -> Iterator[str]:
    """Half of a chapter's cells are short, those of its laboratory and its exercises among them.

    Claims that stand together in one closed cell count as one each, as if they had cells of their own.
    """
    counts = [count for each in (page, *page.beside) for cell in each.code for count in _lines_each(cell)]
    if page.kind == CHAPTER and counts:
        middle = median(counts)
        if middle > MEDIAN_LINES:
            yield f"the median code cell of the chapter has {middle:g} lines; {MEDIAN_LINES} are allowed"


def _lines_each(cell: NotebookNode) -> list[float]:
    """The lines of a cell; of one that is closed on claims, those of each."""
    count = cell.source.count("claim(") if cell.source.startswith(f"{TITLE}\n") else 0
    return [lines(cell) / max(count, 1)] * max(count, 1)


def takes_from(page: Page, book: Book) -> Iterator[str]:
    """A chapter takes nothing from what lies beside it, nothing from exercises, and nobody from another's."""
    for cell in page.code:
        for path, _, name in taken(ast.parse(MAGIC.sub(r"\1pass", cell.source)), page.path.parents[1]):
            what = f"{describe(cell)} takes {name} from {path.parent.name}/{path.name}"
            if path == page.path:
                yield f"{what}, which is this notebook"
            elif path.parent != page.path.parent:
                yield f"{what}: move what two chapters need to the kit"
            elif page.kind == CHAPTER:
                yield f"{what}: a chapter stands without it"
            elif kind(path) == EXERCISES:
                yield f"{what}: those are the reader's"


def citations(page: Page, book: Book) -> Iterator[str]:
    """What is cited stands in the bibliography."""
    for key in sorted(page.cited() - book.bibliography):
        yield f"{key!r} is cited and not in references.bib"


def held(page: Page, book: Book) -> Iterator[str]:
    """What matters of an output that may differ is held: in its cell, soon after, or in its section."""
    for i, cell in enumerate(page.cells):
        if "trained-figure" in tags(cell) and "nbval-ignore-output" not in tags(cell):
            yield f"{describe(cell)} is tagged trained-figure without nbval-ignore-output"
        if "nbval-ignore-output" in tags(cell) and "timing" not in tags(cell):
            following = page.cells[i + 1 :]
            ends = (j for j, c in enumerate(following) if c.cell_type == "markdown" and _begins(c))
            section = [c for c in following[: next(ends, None)] if c.cell_type == "code"]
            soon = [c for c in following if c.cell_type == "code"][:3]
            if not re.search(r"\bclaim\(|\bassert", "\n".join(c.source for c in (cell, *section, *soon))):
                yield f"{describe(cell)} is not compared, and neither it nor what follows checks anything"


def _begins(cell: NotebookNode) -> bool:
    """Whether a section begins in the cell."""
    return bool(re.search(r"^## ", cell.source, re.MULTILINE))


def no_clock_held(page: Page, book: Book) -> Iterator[str]:
    """What a clock says is shown, never held: a claim on it would depend on what else the machine does.

    A name is of a clock if what is assigned to it, or appended, reads one or reads such a name, and so is a
    function that does.
    """
    timed = set(CLOCKS)
    for cell in page.code:
        for node in _in_order(cell.source):
            read = _names(node)
            if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and "claim" in _names(node.func)):
                if read & timed:
                    yield f"{describe(cell)} holds what a clock says: {', '.join(sorted(read & timed))}"
            elif isinstance(node, ast.FunctionDef):
                timed = timed | {node.name} if read & timed else timed - {node.name}
            elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                heads = [t.value if isinstance(t, ast.Subscript) else t for t in targets]
                made = _names(*heads) - CLOCKS
                of_clock = node.value is not None and _names(node.value) & timed
                kept = isinstance(node, ast.AugAssign) or any(isinstance(t, ast.Subscript) for t in targets)
                timed = timed | made if of_clock else timed if kept else timed - made
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append":
                timed |= _names(node.func) if _names(*node.args) & timed else set()


def _in_order(source: str) -> Iterator[ast.AST]:
    """The parts of a cell's code from top to bottom, without lines that only IPython reads."""
    plain = MAGIC.sub(r"\1pass", source)
    nodes = [node for node in ast.walk(ast.parse(plain)) if hasattr(node, "lineno")]
    yield from sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _names(*nodes: ast.AST) -> set[str]:
    """The names that code reads, of attributes those of clocks."""
    found = {node for each in nodes for node in ast.walk(each)}
    names = {node.id for node in found if isinstance(node, ast.Name)}
    return names | {node.attr for node in found if isinstance(node, ast.Attribute)} & CLOCKS


def claims(page: Page, book: Book) -> Iterator[str]:
    """Every claim left its record, its cell is compared, and closed where it shows nothing else."""
    shown = [o.data[CLAIM]["name"] for c in page.code for o in c.outputs if CLAIM in o.get("data", {})]
    for name in sorted(set(page.claims) - set(shown)):
        yield f"the claim {name!r} is not among the outputs"
    for name in sorted({name for name in shown if shown.count(name) > 1}):
        yield f"the claim {name!r} is made twice"
    for cell in page.code:
        form = {key: cell.metadata.get(key) for key in FORM} == FORM and cell.source.startswith(f"{TITLE}\n")
        if only_claims(cell) and not form:
            yield f"{describe(cell)} only holds claims and is open in Jupyter or Colab: run `make format`"
        if "claim(" in cell.source and "nbval-ignore-output" in tags(cell):
            yield f"{describe(cell)} makes a claim and is tagged nbval-ignore-output"


def links(page: Page, book: Book) -> Iterator[str]:
    """Pages refer to each other by label."""
    for match in PAGE_LINK.finditer(page.prose):
        yield f"{match.group()!r} links to a file; refer to a label"


def plain_text(page: Page, book: Book) -> Iterator[str]:
    """No path of somebody's machine, no emoji."""
    for cell in page.cells:
        shown = [str(o.get("text", "")) for o in cell.get("outputs", [])]
        shown += [str(o.get("data", {}).get("text/plain", "")) for o in cell.get("outputs", [])]
        text = "\n".join([cell.source, *shown])
        if match := HOME.search(text):
            yield f"{describe(cell)} has an absolute path: {match.group()!r}"
        if match := EMOJI.search(text):
            yield f"{describe(cell)} has an emoji: U+{ord(match.group()):X}"


def file_size(page: Page, book: Book) -> Iterator[str]:
    """A notebook stays small enough to read on a phone."""
    size = page.path.stat().st_size
    if size > LIMIT:
        yield f"the file has {size:,} bytes; {LIMIT:,} are allowed"


RULES: list[Rule] = [
    ran_fresh,
    clean_outputs,
    metadata,
    figures,
    setup_cell,
    code_length,
    median_length,
    takes_from,
    citations,
    held,
    no_clock_held,
    claims,
    links,
    plain_text,
    file_size,
]
