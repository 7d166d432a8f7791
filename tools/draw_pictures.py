"""Writes the drawings that pages hold as files: cards of chapters, the first page's picture, the floors.

Run it after a change to a drawing or a `card.py` and look at what changed; a test holds the files equal to
what this writes. Names of chapters as arguments write their cards alone.
"""

import importlib
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import page_cards as pages
from chapters import chapters

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.layers import layers

ROOT = Path(__file__).resolve().parents[1]


def first_picture() -> Drawing:
    """A lookup: the temperature at seven o'clock, from five that were taken at other hours."""
    from tformer_book.attention.drawings import soft_lookup, softmax

    day, query, bandwidth = {6: 8, 9: 12, 12: 17, 15: 19, 18: 15}, 7, 1.5
    scores = [-((query - hour) ** 2) / (2 * bandwidth**2) for hour in day]
    weights = softmax(scores)
    answer = sum(weight * degrees for weight, degrees in zip(weights, day.values(), strict=True))
    return soft_lookup(
        str(query),
        [str(hour) for hour in day],
        scores,
        weights,
        [f"{degrees}°" for degrees in day.values()],
        f"{answer:.1f}°",
        title="Attention by hand: the temperature at seven o'clock",
    )


def floors() -> Drawing:
    """The package's floors, from the contract that import-linter holds."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["importlinter"]
    return layers(next(c["layers"] for c in settings["contracts"] if c["id"] == "floors"))


def cards(names: Iterable[str]) -> dict[str, str]:
    """The cards of these chapters, by their paths."""
    drawn = {name: importlib.import_module(f"tformer_book.{name}.card").draw() for name in names}
    return {f"book/{name}/card.svg": drawing.to_inline_svg() for name, drawing in drawn.items()}


def page_cards() -> dict[str, str]:
    """The cards of pages that are no chapters, by their paths."""
    drawn = {"play": pages.play(), "live_model": pages.live_model(), "speedrun": pages.speedrun()}
    return {f"book/site/drawings/card_{name}.svg": each.to_inline_svg() for name, each in drawn.items()}


def files() -> dict[str, str]:
    """What is written, by its path: what pages take in, and pictures as files."""
    found = cards([chapter.name for chapter in chapters()])
    for name, drawing in {"soft_lookup": first_picture()}.items():
        found[f"book/site/drawings/{name}.html"] = drawing.to_html() + "\n"
        found[f"book/site/static/drawings/{name}.svg"] = drawing.to_svg()
    return found | page_cards() | {"assets/floors.svg": floors().to_svg()}


if __name__ == "__main__":
    written = cards(sys.argv[1:]) if len(sys.argv) > 1 else files()
    for name, text in written.items():
        (ROOT / name).parent.mkdir(exist_ok=True)
        (ROOT / name).write_text(text, "utf8", newline="\n")
    print(f"{len(written)} files in {ROOT}")
