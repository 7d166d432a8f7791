"""Showing the library's own source on a page, so that no chapter keeps a copy of it."""

import inspect
import textwrap


class Source:
    """Python source that renders as a highlighted block on the site and in Jupyter."""

    def __init__(self, code: str):
        self.code = code

    def __repr__(self) -> str:
        return self.code

    def _repr_markdown_(self) -> str:
        fence = "````" if "```" in self.code else "```"
        return f"{fence}python\n{self.code}\n{fence}"


def show_source(obj: object) -> Source:
    """The source of a class, function, method or module of the library, to end a cell with.

    Raises:
        TypeError: if `obj` has no Python source, such as a number or a compiled function.
    """
    try:
        source = inspect.getsource(obj)  # type: ignore[arg-type]
    except (TypeError, OSError) as error:
        raise TypeError(f"show_source needs a class, a function or a module, got {obj!r}") from error
    return Source(textwrap.dedent(source).rstrip())
