"""What belongs to the book and not to a library: its data, figures, exercises, claims, tables and records."""

from importlib.util import find_spec

for _package in ("IPython", "matplotlib"):
    if find_spec(_package) is None:
        raise ImportError(f"the book's part of tformer_lib needs {_package}: pip install 'tformer-lib[book]'")

from tformer_book.kit.claims import claim  # noqa: E402
from tformer_book.kit.exercises import check  # noqa: E402
from tformer_book.kit.show import show_source  # noqa: E402
from tformer_book.kit.tables import table  # noqa: E402

__all__ = ["check", "claim", "show_source", "table"]
