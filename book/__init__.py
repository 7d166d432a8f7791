"""What the chapters import beside `tformer_lib`: figures, data, exercises, claims, tables and records.

A chapter's own lies in its folder, what several need in `kit`.
"""

from importlib.util import find_spec

for _package in ("IPython", "matplotlib"):
    if find_spec(_package) is None:
        raise ImportError(f"tformer_book needs {_package}: pip install tformer-book")

from tformer_book.kit import carried  # noqa: E402
from tformer_book.kit.claims import claim  # noqa: E402
from tformer_book.kit.exercises import check  # noqa: E402
from tformer_book.kit.show import show_source  # noqa: E402
from tformer_book.kit.tables import table  # noqa: E402

carried.install()

__all__ = ["check", "claim", "show_source", "table"]
