"""Cells of code as a reader gets them: plumbing closed under a title, solutions apart from what one writes.

What is closed stays part of the notebook and runs with it. JupyterLab reads `jupyter.source_hidden`, Colab
the form view (`cellView`, with the title in the first line); VS Code keeps a cell's fold as `inputCollapsed`,
and where it does not read that from a file the title is the first line that one sees.

A solution defines the function that its exercise asks for, and so would take the place of the reader's own.
In what is written it has another name, `f_solution`, and so it has in all cells after it that mean the
solution.
"""

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterable
from pathlib import Path

from tformer_reading import PROMPT, what_is_in

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from notebook_code import bound as bound_by

TITLE = re.compile(r"# ?@title\b[ \t]*(?P<words>.*)\n?")
SETUP = "Setup: run this cell first"
SOLUTION = "Solution"
SUFFIX = "_solution"
ITS_OWN = "The solution itself:"  # before what `check` says of it, which is not what the reader wrote
INSTALLS = re.compile(r"try:\n(?:    .*\n)+except ImportError:.*\n(?:    .*\n)+")
MAGIC = re.compile(r"(?m)^(\s*)[%!].*")
KEPT_TAGS = ("answer", "grown", "hide-input", "solution")

INSTALL = """\
def install_what_is_missing(book, packages):
    import re
    import subprocess
    import sys
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    class NotInstalled(ImportError):
        def _render_traceback_(self):
            return [str(self)]

    def lacks(package):
        try:
            version(re.match(r"[\\w.-]+", package)[0])
        except PackageNotFoundError:
            return True

    wanted = [package for package in packages if lacks(package)]
    asked = [wanted] if wanted else []
    if find_spec("tformer_book") is None:
        asked = [
            [f"tformer-lib @ {{book}}", *wanted],
            ["--no-deps", f"tformer-book @ {{book}}#subdirectory=book"],
        ]
    for each in asked:
        print(f"Installing {{', '.join(a.split(' @ ')[0] for a in each if a[0] != '-')}} ...")
        pip = [sys.executable, "-m", "pip", "install", "-q", *each]
        ran = subprocess.run(pip, capture_output=True, text=True)
        if ran.returncode:
            raise NotInstalled(
                "This notebook needs the book's packages, and pip could not fetch them. Is "
                "this machine connected to the network? Once it is, run this cell again."
                + f"\\n(pip's last words: {{ran.stderr.strip().splitlines()[-1:]}})"
            )


install_what_is_missing(
    "git+{repository}@{release}",
    {packages},
)
"""


def tree(source: str) -> ast.Module:
    """A cell's code without what is IPython's."""
    return ast.parse(MAGIC.sub(r"\1pass", source))


def bound(source: str) -> set[str]:
    """The names that a cell binds for the cells after it."""
    return bound_by(*tree(source).body)


class Names:
    """Keeps the reader's names the reader's: what solutions call by these names is renamed."""

    def __init__(self) -> None:
        self.readers = set[str]()  # names that cells to answer in define
        self.solved = set[str]()  # those of them that a solution has defined too

    def apart(self, source: str, tags: Iterable[str]) -> str:
        """The code of a cell; it is asked for cell after cell."""
        made = bound(source)
        if "answer" in tags:
            self.readers |= made
            return source
        if "solution" in tags:
            self.solved |= made & self.readers
        else:
            self.solved -= made
        source = renamed(source, self.solved)
        return its_own_verdict(source) if "solution" in tags else source


def renamed(source: str, names: set[str]) -> str:
    """The code, with a suffix behind these names where they are variables."""
    if not names or not re.search(rf"\b(?:{'|'.join(map(re.escape, names))})\b", source):
        return source
    lines = source.splitlines(keepends=True)
    places: list[tuple[int, int, int, str]] = []
    before = ""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        text = token.string
        keyword = after.string == "=" and before in ("(", ",")
        if token.type == tokenize.NAME and text in names and before != "." and not keyword:
            places.append((token.start[0], token.start[1], token.end[1], text + SUFFIX))
        elif (
            token.type == tokenize.STRING
            and re.match(r"(?i)r?fr?['\"]", text)
            and token.start[0] == token.end[0]
        ):
            inside = re.sub(
                r"\{[^{}]*\}",
                lambda found: re.sub(rf"(?<![\w.])(?:{'|'.join(names)})\b", rf"\g<0>{SUFFIX}", found[0]),
                text,
            )
            if inside != text:
                places.append((token.start[0], token.start[1], token.end[1], inside))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = text
    for row, start, end, text in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + text + line[end:]
    return "".join(lines)


def its_own_verdict(source: str) -> str:
    """The code of a solution, whose `check` says that it speaks of the solution."""
    lines = source.splitlines(keepends=True)
    for statement in reversed(tree(source).body):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "check":
            first, last = statement.lineno - 1, statement.end_lineno
            words = "".join(lines[first:last]).rstrip("\n")
            if "\n" in words:
                words = "\n" + textwrap.indent(words, "    ") + ",\n"
            lines[first:last] = [f'print("{ITS_OWN}", {words.lstrip(" ")})\n']
    return "".join(lines).rstrip("\n").replace("print(check(", f'print("{ITS_OWN}", check(')


def setup(source: str, *, repository: str, release: str, packages: list[str]) -> str:
    """The first cell: it installs the book where it is missing, pinned, with what this notebook needs."""
    listed = "[" + "".join(f'\n        "{package}",' for package in packages) + "\n    ]"
    install = INSTALL.format(repository=repository.removesuffix("/"), release=release, packages=listed)
    rest = INSTALLS.sub("", source).strip("\n")
    return f"{install}\n{rest}"


def is_setup(source: str) -> bool:
    """Whether a cell is the one that installs the book."""
    return bool(INSTALLS.search(source))


def title_of(source: str, metadata: dict) -> str:
    """What a closed cell is called: "" for one that is open."""
    tags = metadata.get("tags", [])
    if is_setup(source):
        return SETUP
    if found := TITLE.match(source):
        return found["words"].strip()
    if "solution" in tags:
        return SOLUTION
    if "hide-input" in tags or metadata.get("jupyter", {}).get("source_hidden"):
        told = metadata.get("mystnb", {}).get("code_prompt_show", PROMPT)
        return what_is_in(source) if told.startswith(PROMPT) else told
    return ""


def closed(source: str, title: str) -> str:
    """The code under its title, which Colab shows for it."""
    return f"# @title {title}\n{TITLE.sub('', source, count=1) if TITLE.match(source) else source}"


def metadata_of(metadata: dict, title: str) -> dict:
    """What JupyterLab, Colab and VS Code read."""
    made: dict = {}
    if tags := [tag for tag in metadata.get("tags", []) if tag in KEPT_TAGS]:
        made["tags"] = tags
    if title:
        made["jupyter"] = {"source_hidden": True}
        made["cellView"] = "form"
        made["inputCollapsed"] = True
    return made
