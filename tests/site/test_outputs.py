"""What cells have printed and shown, as the site sets it."""

import sys

import pytest

from tests.site.pages import ROOT

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
from tformer_outputs import prose, table


@pytest.mark.parametrize(
    ("text", "wraps"),
    [
        ("together 3e-33: 108 bits, 2.45 a letter", True),
        ("  I will to thy heart,\n  in off his", True),
        ("[12, 35, 43, 27, 2, 57]", True),
        ("[[0.   0.67]\n [1.25 0.5 ]]", False),
        ("model   loss\nGRU     2.4", False),
    ],
)
def test_what_has_no_columns_wraps(text, wraps):
    assert prose(text) == wraps


def row(*cells: tuple[str, str, str]) -> str:
    return (
        "<tr>"
        + "".join(f'<{tag} style="text-align: {side}">{words}</{tag}>' for tag, side, words in cells)
        + "</tr>"
    )


def test_numbers_stand_right_and_have_minus_signs():
    head = row(("th", "left", "model"), ("th", "left", "steps"), ("th", "left", "kind"))
    rows = row(("th", "left", "1"), ("td", "left", ""), ("td", "left", "2-gram"))
    rows += row(("th", "left", "2"), ("td", "left", "-300"), ("td", "left", ""))
    expected = row(("th", "left", "model"), ("th", "right", "steps"), ("th", "left", "kind"))
    expected += row(("th", "left", "1"), ("td", "right", ""), ("td", "left", "2-gram"))
    expected += row(("th", "left", "2"), ("td", "right", "\u2212300"), ("td", "left", ""))
    assert table(head + rows) == expected
