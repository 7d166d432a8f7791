"""What a reader of the library reads for the sake of errors: the share of lines that guard, by folder.

`python -m tests.test_guards` prints it, and `python -m tests.test_guards core` for each file of a folder.
"""

import ast
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[1] / "tformer_lib"
NUMBERS = ("whole", "real", "flag", "one_of", "multiple")
MOST = {  # per cent of the lines of code
    "core": 12,  # what chapters explain
    "runs": 11,
    "efficient": 12,
    "models": 12,
    "analysis": 19,
    "measures": 18,
    "tokenizers": 16,
    "generation": 17,
    "scale": 18,
    "data": 21,
    "training": 20,
    "pretrained": 27,  # files that others wrote
    "all": 19,
}
LIBRARY_ONLY = [each for each in sorted(LIBRARY.iterdir()) if each.name not in ("__pycache__", "py.typed")]


def name_of(call: ast.Call) -> str:
    """`check_mask` of `check_mask(...)` and of `self.check_mask(...)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_check(name: str) -> bool:
    """Whether what is called so is there to find fault."""
    return name in NUMBERS or name.strip("_").startswith(("check_", "refuse_")) or name == "_check"


def guards(tree: ast.AST) -> set[int]:
    """Lines of what raises, of what decides about that alone, and of calls and bodies of checks."""
    found: set[int] = set()
    for node in ast.walk(tree):
        end = getattr(node, "end_lineno", 0)
        if isinstance(node, ast.If):  # what it says may be put together before
            guard, end = isinstance(node.body[-1], ast.Raise), node.body[-1].end_lineno
        elif isinstance(node, ast.ExceptHandler):
            guard = all(isinstance(each, ast.Raise) for each in node.body)
        elif isinstance(node, ast.FunctionDef):
            guard = is_check(node.name)
        elif isinstance(node, ast.Raise):
            guard = node.exc is not None  # a bare one passes on what it has cleaned up behind
        elif isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return):
            calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
            guard = any(is_check(name_of(each)) for each in calls)
        else:
            continue
        if guard:
            found |= set(range(node.lineno, end + 1))
    return found


def code(text: str, tree: ast.AST) -> set[int]:
    """Lines that are neither empty, nor a comment, nor a docstring."""
    lines = {
        i for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return lines


def counted(path: Path) -> tuple[int, int]:
    """(lines that guard, lines of code) of a file."""
    text = path.read_text("utf8")
    tree = ast.parse(text)
    lines = code(text, tree)
    return len(guards(tree) & lines), len(lines)


def of_folder(folder: Path) -> tuple[int, int]:
    """The same of all files below."""
    found = [counted(path) for path in ([folder] if folder.is_file() else folder.rglob("*.py"))]
    return sum(guard for guard, _ in found), sum(lines for _, lines in found)


def shares(files: list[Path]) -> dict[str, tuple[int, int]]:
    """(lines that guard, lines of code) of each file or folder, and of all of them."""
    found = {each.name: of_folder(each) for each in files}
    both = zip(*found.values(), strict=True)
    return found | {"all": tuple(map(sum, both))}


@pytest.mark.parametrize("folder", MOST)
def test_validation_is_not_the_lesson(folder):
    guard, lines = shares(LIBRARY_ONLY)[folder]
    assert lines > 200
    assert guard <= MOST[folder] / 100 * lines, f"{guard} of {lines} lines guard: see this file's first lines"


def test_no_folder_is_forgotten():
    assert {each.name for each in LIBRARY_ONLY if each.is_dir()} | {"all"} == MOST.keys()


SAMPLE = '''
def doubled(x):
    """Twice x."""

    x = whole("x", x)
    if x < 0:
        side = "left"
        raise ValueError(f"{x} lies to the {side}")
    elif x:
        x = x + 1
    # a comment
    try:
        return x * 2
    except TypeError as error:
        raise ValueError("no number") from error


def check_all(xs):
    for x in xs:
        doubled(x)
'''


def test_what_is_counted():
    """The call, the `if` with what it puts together, the `except`, and the check with its body."""
    tree = ast.parse(SAMPLE)
    assert len(guards(tree) & code(SAMPLE, tree)) == 1 + 3 + 2 + 3
    assert len(code(SAMPLE, tree)) == 14


if __name__ == "__main__":
    chosen = sorted((LIBRARY / sys.argv[1]).rglob("*.py")) if sys.argv[1:] else LIBRARY_ONLY
    for name, (guard, lines) in shares(chosen).items():
        print(f"{name:24} {guard:5} of {lines:5} {guard / max(lines, 1):6.1%}")
