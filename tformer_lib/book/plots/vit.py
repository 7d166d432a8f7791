"""The figures of the chapter on the vision transformer."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from jaxtyping import Float
from matplotlib.patches import Rectangle
from torch import Tensor

from tformer_lib.book.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    WIDTH,
    BookFigure,
    book_style,
    keep_colours,
    legend_above,
    new_figure,
)
from tformer_lib.core.patches import patch_grid, to_patches

LOOKS = {  # colour, marker and dashes of what learns digits
    "logistic regression": (GREY, "x", ":"),
    "3-NN": (PURPLE, "v", ":"),
    "SVM": (GREEN, "^", ":"),
    "CNN": (ORANGE, "s", "--"),
    "CNN + shifts": (ORANGE, "s", "-"),
    "ViT": (BLUE, "o", "--"),
    "ViT + shifts": (BLUE, "o", "-"),
}


@book_style
def patches(image: Float[Tensor, "1 H W"], size: int) -> BookFigure:
    """An image with the lines along which it is cut, and below it the matrix whose columns are its patches.

    Args:
        image: one, of one channel, in [0, 1].
        size: the side of a patch.
    """
    rows, columns = patch_grid(image.shape[1], image.shape[2], size)
    X = to_patches(image[None], size)[0].T
    figure, (above, below) = new_figure(2, 1, height=6.2, height_ratios=(1.35, 1))
    above.imshow(image[0].tolist(), cmap="gray", vmin=0, vmax=1)
    for line in range(1, rows):
        above.axhline(line * size - 0.5, color=ORANGE, linewidth=1)
    for line in range(1, columns):
        above.axvline(line * size - 0.5, color=ORANGE, linewidth=1)
    for n in range(rows * columns):
        place = (n % columns * size, n // columns * size + 0.2)
        box = {"facecolor": "black", "edgecolor": "none", "pad": 1.5}
        above.text(*place, str(n + 1), color=ORANGE, ha="left", va="top", bbox=box)
    below.imshow(X.tolist(), cmap="gray", vmin=0, vmax=1, aspect="auto")
    for line in range(1, rows * columns):
        below.axvline(line - 0.5, color=ORANGE, linewidth=1)
    below.set_xticks(range(0, rows * columns), [str(n + 1) for n in range(rows * columns)])
    below.set(xlabel="patch $n$: a column of $\\mathbf{X}$", ylabel=f"its {len(X)} numbers")
    for axis in (above, below):
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
    above.set_xticks([])
    above.set_yticks([])
    return figure


@book_style
def scores(accuracy: Mapping[str, float], errors: Mapping[str, float]) -> BookFigure:
    """Test accuracy of several models in per cent: a dot each, with the standard error of counting.

    Args:
        accuracy: from a model's name to its accuracy.
        errors: from the same names to one standard error.
    """
    figure, axis = new_figure(height=0.45 * len(accuracy) + 1.1)
    for place, (name, value) in enumerate(accuracy.items()):
        colour = BLUE if name.startswith("ViT") else GREY
        axis.errorbar(value, place, xerr=errors[name], color=colour, marker="o", capsize=4, linestyle="none")
        axis.text(value, place - 0.18, f"{value:.1f}", color=colour, ha="center", va="bottom")
    axis.set_yticks(range(len(accuracy)), list(accuracy))
    axis.set_ylim(len(accuracy) - 0.5, -0.7)
    axis.set_xlabel("accuracy on the held-out 1,000 (%)")
    axis.tick_params(axis="y", length=0)
    return figure


@book_style
def against_training_images(accuracy: Mapping[str, Mapping[int, Sequence[float]]]) -> BookFigure:
    """Test accuracy in per cent against the number of training images, logarithmic: a line a method.

    A marker is the mean over runs, its bar reaches from the worst run to the best.

    Args:
        accuracy: from a method, of `LOOKS`, to numbers of images, and from such a number to shares, one a
            run.
    """
    figure, axis = new_figure(height=5.0)
    for i, (name, points) in enumerate(accuracy.items()):
        colour, marker, dashes = LOOKS[name]
        means = [100 * mean(runs) for runs in points.values()]
        below = [m - 100 * min(runs) for m, runs in zip(means, points.values(), strict=True)]
        above = [100 * max(runs) - m for m, runs in zip(means, points.values(), strict=True)]
        places = [n * (1 + 0.03 * (i - len(accuracy) / 2)) for n in points]  # so that bars do not overlap
        options: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dashes, "label": name}
        axis.errorbar(places, means, yerr=[below, above], capsize=3, **options)
    numbers = sorted({n for points in accuracy.values() for n in points})
    axis.set_xscale("log")
    axis.set_xticks(numbers, [f"{n:,}" for n in numbers])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="training images", ylabel="test accuracy (%)")
    legend_above(axis, handlelength=2.8)
    return figure


@book_style
def position_similarity(cosines: Float[Tensor, "N N"], rows: int, columns: int) -> BookFigure:
    """A map for each patch, at the patch's place: how like its position vector those of all patches are.

    Colours end at cosines of -0.6 and 0.6, since those of two different patches are seldom larger.

    Args:
        cosines: of the position vectors of patches n and m.
        rows: of the grid of patches.
        columns: of the grid of patches.
    """
    figure, axes = new_figure(rows, columns, height=WIDTH * rows / columns + 0.8, squeeze=False)
    for n, axis in enumerate(axes.flat):
        drawn = axis.imshow(cosines[n].reshape(rows, columns).tolist(), vmin=-0.6, vmax=0.6)
        row, column = divmod(n, columns)
        axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=RED, linewidth=2))
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_visible(False)
    bar = figure.colorbar(drawn, ax=axes, location="bottom", shrink=0.7, aspect=30, pad=0.03)
    bar.set_label("cosine with the position vector marked")
    bar.set_ticks([-0.6, -0.3, 0, 0.3, 0.6])
    return figure


@book_style
def attention_maps(
    images: Float[Tensor, "K 1 H W"],
    maps: Mapping[str, Float[Tensor, "K rows columns"]],
) -> BookFigure:
    """Images, one a row, and beside each what is looked at: a column a map, each on a scale of its own.

    Args:
        images: of one channel, in [0, 1].
        maps: from a title to a weight for each patch, for each of the images.
    """
    count, _, height, width = images.shape
    figure, axes = new_figure(
        count, 1 + len(maps), height=WIDTH * count / (1 + len(maps)) + 0.4, squeeze=False
    )
    for row, line in enumerate(axes):
        line[0].imshow(images[row, 0].tolist(), cmap="gray", vmin=0, vmax=1)
        for axis, (title, values) in zip(line[1:], maps.items(), strict=True):
            frame = (-0.5, width - 0.5, height - 0.5, -0.5)
            axis.imshow(values[row].tolist(), extent=frame, vmin=0)
            outline = axis.contour(images[row, 0].tolist(), levels=[0.5], colors="white", linewidths=1)
            keep_colours(outline)
            if row == 0:
                axis.set_title(title)
    axes[0, 0].set_title("image")
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_visible(False)
    return figure


@book_style
def found(
    images: Float[Tensor, "K 3 H W"], weights: Float[Tensor, "K N"], places: Sequence[int], size: int
) -> BookFigure:
    """Photographs, and below each the same with its patches as bright as their weight.

    Args:
        images: in [0, 1].
        weights: of the patches of each.
        places: the patch of each that is framed.
        size: the side of a patch.
    """
    count, _, height, width = images.shape
    rows, columns = patch_grid(height, width, size)
    figure, axes = new_figure(2, count, height=(WIDTH - 0.3) / count * 2 + 0.1, squeeze=False)
    for k in range(count):
        share = (weights[k] / weights[k].max()).reshape(rows, columns)
        share = share.repeat_interleave(size, 0).repeat_interleave(size, 1)
        axes[0, k].imshow(images[k].permute(1, 2, 0).tolist())
        axes[1, k].imshow((images[k] * (0.12 + 0.88 * share)).permute(1, 2, 0).tolist())
        corner = (places[k] % columns * size - 0.5, places[k] // columns * size - 0.5)
        for axis in axes[:, k]:
            axis.add_patch(Rectangle(corner, size, size, fill=False, edgecolor=ORANGE, linewidth=2))
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[:].set_visible(False)
    axes[0, 0].set_ylabel("window")
    axes[1, 0].set_ylabel("rollout")
    return figure


@book_style
def deletions(curves: Mapping[str, Sequence[float]]) -> BookFigure:
    """Accuracy in per cent against the number of patches that were painted over: a line an order.

    Args:
        curves: from the name of an order to the accuracy with 0, 1, 2, ... patches gone; five at most.
    """
    figure, axis = new_figure(height=3.6)
    looks = [(BLUE, "o"), (ORANGE, "^"), (SKY, "v"), (GREY, "s"), (GREEN, "D")][: len(curves)]
    for (name, values), (colour, marker) in zip(curves.items(), looks, strict=True):
        axis.plot(range(len(values)), list(values), color=colour, marker=marker, label=name)
    axis.set(xlabel="patches painted over", ylabel="accuracy (%)")
    axis.set_ylim(bottom=0)
    axis.set_xticks(range(max(map(len, curves.values()))))
    legend_above(axis)
    return figure
