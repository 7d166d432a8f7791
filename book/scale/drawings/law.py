"""The drawing of one budget spent in several ways. Every number in it comes in as an argument."""

from collections.abc import Sequence

from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import Pixels, listed, number
from tformer_book.kit.drawings.primitives import PHONE, Scene, Strength
from tformer_book.kit.drawings.roles import STREAM


def _amount(value: Pixels) -> str:
    """16 k, 4.1 M."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            shown = value / unit
            return f"{shown:.1f} {name}" if shown < 10 else f"{shown:.0f} {name}"
    return f"{value:.0f}"


def one_budget(
    runs: Sequence[tuple[str, Pixels, Pixels, Pixels]], *, title: str = "One budget, spent in several ways"
) -> Drawing:
    """Rectangles as wide as the model has parameters and as high as its text is long: of one area.

    The one with the least loss is in full colour.

    Args:
        runs: for each a few words, P, T and the loss.
        title: what it shows.

    Raises:
        ValueError: if there is no run, or a number is not positive.
    """
    runs = listed(runs, "runs")
    if not all(value > 0 for _, *numbers in runs for value in numbers):
        raise ValueError("sizes, tokens and losses must be positive")
    widest, tallest = max(n for _, n, _, _ in runs), max(d for _, _, d, _ in runs)
    least = min(loss for *_, loss in runs)
    described = "; ".join(
        f"{words}: {_amount(n)} parameters, {_amount(d)} characters, loss {number(loss, 2)}"
        for words, n, d, loss in runs
    )
    description = (
        f"{len(runs)} rectangles side by side on one base line, each as wide as its model has parameters and "
        f"as high as the text that it read, so that all have about the same area. From left to right: "
        f"{described}. The one with the least loss is in full colour."
    )

    def layout(width: Pixels, height: Pixels, size: Pixels) -> Scene:
        scene = Scene(width, size=size)
        column = width / len(runs)
        base = height + 30
        for i, (words, n, d, loss) in enumerate(runs):
            middle = (i + 0.5) * column
            w, h = max(0.94 * column * n / widest, 3), max(height * d / tallest, 3)
            strength: Strength = "full" if loss == least else "pale"
            scene.box(middle - w / 2, base - h, w, h, role=STREAM, strength=strength, shade=0.35)
            scene.text(middle, base - h - 14, f"loss {number(loss, 2)}", bold=loss == least)
            lines = (words, f"P = {_amount(n)}", f"T = {_amount(d)}")
            for j, line in enumerate(lines):
                scene.text(middle, base + 18 + 1.45 * size * j, line, bold=j == 0)
        scene.line((4, base), (width - 4, base))
        scene.height = base + 18 + 1.45 * size * 3
        return scene

    return Drawing(title, description, layout(520, 150, 15), layout(PHONE, 140, 13.5))
