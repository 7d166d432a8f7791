"""Every claim of a notebook under other seeds: `python tools/seeds.py book/bert/chapter.ipynb --seeds 1 2 3`.

A band must hold by more than luck. The notebook is run once for each number that `--seeds` names, which is
added to every seed that stands in its cells (`seed_everything(0)`, `manual_seed(0)`, `seed=0`), and in
those of the notebooks from which it takes names; seeds inside the library, such as those that divide the
data, stay. Nothing is saved and no claim stops the run. For each claim the value on the page stands beside
those of other seeds. A claim one of whose values leaves its band is marked, and cells that fail are listed.
The notebooks are run one after the other, with one thread.
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat
from execute import CELL_TIMEOUT, ENVIRONMENT, code_cells
from nbclient import NotebookClient
from nbformat import NotebookNode
from notebook_claims import CLAIM, claims_in
from notebook_code import PACKAGE, taken_by

SEED = re.compile(
    r"(\b(?:seed_everything|manual_seed|default_rng|RandomState)\(|\bseed=|\brandom_state=)(\d+)\b"
)
RECORDER = f"""
import tformer_book
from IPython.display import display

def claim(name, value, band, *words):
    numbers = {{"value": value, "low": band[0], "high": band[1]}}
    numbers = {{k: float(v.detach() if hasattr(v, "detach") else v) for k, v in numbers.items()}}
    display({{"{CLAIM}": {{"name": name, **numbers}}}}, raw=True)

tformer_book.claim = tformer_book.kit.claims.claim = claim
"""


def reseed(source: str, offset: int) -> str:
    """The source with `offset` added to each seed that stands in it."""
    return SEED.sub(lambda match: match[1] + str(int(match[2]) + offset), source)


def claims(notebook: NotebookNode) -> dict[str, dict]:
    """The claims in a notebook's outputs, by name."""
    return {claim["name"]: claim for claim in claims_in(notebook.cells)}


def lend(book: Path, notebooks: Iterable[Path], offset: int, folder: Path) -> Path:
    """A folder in which the book is a package as it is, but for other seeds in these of its notebooks."""
    copied = {path.parent.relative_to(book).as_posix() for path in notebooks}
    package = folder / PACKAGE
    for source in (book, *(book / name for name in copied)):
        target = package / source.relative_to(book)
        target.mkdir()
        for file in source.iterdir():
            if file.relative_to(book).as_posix() not in copied and file not in notebooks:
                (target / file.name).symlink_to(file)
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        for cell in code_cells(notebook):
            cell.source = reseed(cell.source, offset)
        nbformat.write(notebook, package / path.relative_to(book))
    return folder


def run(path: Path, offset: int) -> tuple[dict[str, dict], list[str]]:
    """The claims of one run with other seeds, and the errors of its cells."""
    notebook = nbformat.read(path, as_version=4)
    for cell in code_cells(notebook):
        cell.source, cell.outputs = reseed(cell.source, offset), []
    notebook.cells.insert(0, nbformat.v4.new_code_cell(RECORDER))
    taken, environment = set(taken_by(path)), {**os.environ, **ENVIRONMENT}
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder, tempfile.TemporaryDirectory() as lent:
        if taken:
            book = lend(path.resolve().parents[1], {each.resolve() for each in taken}, offset, Path(lent))
            environment["PYTHONPATH"] = os.pathsep.join([str(book), os.environ.get("PYTHONPATH", "")])
        client = NotebookClient(notebook, timeout=CELL_TIMEOUT, kernel_name="python3", allow_errors=True)
        client.execute(cwd=folder, env=environment)
    errors = [
        f"cell {i - 1}: {output.ename}: {output.evalue[:200]}"
        for i, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error"
    ]
    return claims(notebook), errors


def table(page: dict[str, dict], runs: dict[int, dict[str, dict]]) -> list[str]:
    """A line for each claim: its band, its value on the page, those of the other seeds."""
    lines = []
    for name, claim in page.items():
        values = [found[name]["value"] for found in runs.values() if name in found]
        low, high = claim["low"], claim["high"]
        outside = any(not low <= value <= high for value in values)
        mark = "OUTSIDE" if outside else "missing" if len(values) < len(runs) else ""
        others = " ".join(f"{value:.4g}" for value in values)
        lines.append(f"{mark:8}{name:32} [{low:.4g}, {high:.4g}]  {claim['value']:.4g} | {others}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Runs the notebooks and prints the tables; 1 if a value left its band or a cell failed."""
    parser = argparse.ArgumentParser(description="Run notebooks with other seeds and compare their claims.")
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="added to the page's seeds")
    options = parser.parse_args(arguments)
    bad = False
    for path in options.notebooks:
        runs, errors = {}, []
        for offset in options.seeds:
            runs[offset], wrong = run(path, offset)
            errors += [f"seeds + {offset}, {line}" for line in wrong]
        lines = table(claims(nbformat.read(path, as_version=4)), runs)
        print(path, *lines, *errors, sep="\n", flush=True)
        bad |= bool(errors) or any(line.startswith("OUTSIDE") for line in lines)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
