"""What has to run before a section of a laboratory can be run alone.

A laboratory is read by the section. Where a section's code takes names from an earlier one, the notebook that
readers open says so under the section's title. This is found in the code, in the way in which a notebook is
imported by others (`tformer_book.kit.carried`): who binds a name, and who may change what it stands for.
"""

import ast
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from notebook_code import carried

TITLE = re.compile(r"^## +(.*?)\s*$")
FENCE = re.compile(r"^\s*(`{3,}|~{3,}|:{3,})")


@dataclass
class Section:
    """A part of a notebook from a title of two # to the next; the head, which all go on from, has none."""

    title: str
    code: list[int] = field(default_factory=list)  # its cells, counted among those with code
    after: list[int] = field(default_factory=list)  # the sections that have to run before it, the head aside


def titles(text: str) -> list[tuple[int, str]]:
    """The section titles in a text, with their lines; what stands in a fence is none."""
    found, fence = [], ""
    for number, line in enumerate(text.splitlines()):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif not fence and (title := TITLE.match(line)):
            found.append((number, title[1]))
    return found


def sections(cells: Iterable[Mapping[str, Any]]) -> list[Section]:
    """The head of a notebook and its sections, and of each which others it goes on from."""
    found, sources = [Section("")], []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            found += [Section(title) for _, title in titles(source)]
        elif "answer" not in cell["metadata"].get("tags", ()):  # that is the reader's
            found[-1].code.append(len(sources))
            sources.append(source)
    notebook = carried.Carried("notebook", Path("notebook.ipynb"), sources)
    at = {place: number for number, section in enumerate(found) for place in section.code}
    given = {name for place in found[0].code for name in imported(sources[place])}
    own = [{name for place in section.code for name in imported(sources[place])} for section in found]

    def before(place: int) -> set[int]:
        """The sections from which a cell takes something that the head has not imported as well."""
        return {
            at[maker]
            for name, makers in notebook.sources(place).items()
            for maker in makers
            if name not in given & own[at[maker]]
        }

    direct = [{other for place in section.code for other in before(place)} for section in found]
    for number, section in enumerate(found[1:], 1):
        needed: set[int] = set()
        waiting = direct[number] - {number}
        while waiting:
            needed |= waiting
            waiting = {other for each in waiting for other in direct[each]} - needed
        section.after = sorted(other for other in needed if 0 < other < number)
    return found


def imported(source: str) -> set[str]:
    """The names that a cell imports."""
    cell = carried.Cell(source)
    return {
        name
        for node in ast.walk(cell.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in carried.bound(node)
    }


def sentence(section: Section, names: Sequence[str]) -> str:
    """For under a section's title, with the titles of all sections; "" if it goes on from none."""
    if not section.after:
        return ""
    before = " · ".join(f"“{names[number]}”" for number in section.after)
    return f"**To run this section alone**, run the first cell and then: {before}."
