"""The figures on patching a translator of number words."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

from tformer_book.kit.plot_style import BookFigure, book_style, new_figure


@book_style
def patching_maps(
    grids: Mapping[str, Mapping[str, Float[Tensor, "L N"]]], places: Sequence[str], layers: Sequence[str]
) -> BookFigure:
    """Patching effects: a panel for each model and kind of pair, layers down, places across.

    Args:
        grids: from a row's title to its panels: from a panel's title to effects, one row a layer.
        places: the names of the places, left to right.
        layers: the names of the layers, from the first on.
    """
    rows, columns = len(grids), max(map(len, grids.values()))
    size = 0.42 * len(layers) + 0.45
    height = size * rows + 1.9
    figure, axes = new_figure(rows, columns, height=height, sharex=True, sharey=True, squeeze=False)
    for line, (title, panels) in zip(axes, grids.items(), strict=True):
        for axis, (name, effect) in zip(line, panels.items(), strict=True):
            image = axis.imshow(effect.numpy(force=True), vmin=0, vmax=1, aspect="auto")
            axis.set_title(f"{title}{name}", loc="left")
            axis.set_xticks(range(len(places)), list(places), rotation=90)
            axis.set_yticks(range(len(layers)), list(layers))
            axis.spines[:].set_visible(False)
            axis.tick_params(length=0)
            for y, row in enumerate(effect.tolist()):
                for x, value in enumerate(row):
                    if value >= 0.1:
                        colour = "black" if value > 0.55 else "white"
                        shown = f"{value:.1f}".removeprefix("0").removesuffix(".0")
                        axis.text(x, y, shown, ha="center", va="center", color=colour)
    figure.colorbar(image, ax=list(axes.flat), label="effect", location="bottom", aspect=30, shrink=0.7)
    return figure
