"""The claims in a notebook's outputs, as `tformer_lib.book.claims` leaves them there.

Written without `tformer_lib`, so that the site can be built where PyTorch is not installed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CLAIM = "application/vnd.tformer.claim+json"  # the type of the output


def claims_in(cells: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The records of all claims in the outputs of these cells, in their order."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            if CLAIM in output.get("data", {}):
                yield output["data"][CLAIM]
