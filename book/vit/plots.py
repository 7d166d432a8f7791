"""The figures of the chapter on the vision transformer."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.patches import Rectangle
from torch import Tensor

from tformer_book.kit.plot_style import (
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
def trained_longer(mistakes: Mapping[str, Mapping[int, Sequence[float]]]) -> BookFigure:
    """Mistakes in per cent against the steps of training, logarithmic: a line a network.

    A marker is the mean over runs, its bar reaches from the best run to the worst. What has one length only
    gets a dotted line at its height.

    Args:
        mistakes: from a network, of `LOOKS`, to steps, and from steps to per cents, one a run.
    """
    figure, axis = new_figure(height=3.6)
    for name, points in mistakes.items():
        colour, marker, dashes = LOOKS[name]
        means = [mean(runs) for runs in points.values()]
        reach = [
            [abs(m - far(runs)) for m, runs in zip(means, points.values(), strict=True)] for far in (min, max)
        ]
        options: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dashes, "label": name}
        axis.errorbar(list(points), means, yerr=reach, capsize=3, **options)
        if len(points) == 1:
            axis.axhline(means[0], color=colour, linestyle=":", linewidth=1.2)
    steps = sorted({n for points in mistakes.values() for n in points})
    axis.set_xscale("log")
    axis.set_xticks(steps, [f"{n:,}" for n in steps])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="steps of training", ylabel="mistakes (%)")
    axis.set_ylim(bottom=0)
    legend_above(axis, handlelength=2.8)
    return figure


@book_style
def in_patches(picture: Float[Tensor, "H W 3"], patch: int, gap: int = 3) -> BookFigure:
    """A photograph cut into patches, which stand a little apart.

    Args:
        picture: in [0, 1].
        patch: the side of a patch; it divides both sides.
        gap: the pixels between two patches.
    """
    rows, columns = picture.shape[0] // patch, picture.shape[1] // patch
    apart = torch.ones(rows * (patch + gap) - gap, columns * (patch + gap) - gap, 3)
    for i in range(rows):
        for j in range(columns):
            place = (slice(i * (patch + gap), i * (patch + gap) + patch),
                     slice(j * (patch + gap), j * (patch + gap) + patch))  # fmt: skip
            apart[place] = picture[i * patch : (i + 1) * patch, j * patch : (j + 1) * patch]
    figure, axis = new_figure(height=WIDTH * rows / columns)
    axis.imshow(apart.numpy())
    axis.set_axis_off()
    return figure


@book_style
def looked_at(
    picture: Float[Tensor, "H W 3"], maps: Mapping[str, Float[Tensor, "rows columns"]]
) -> BookFigure:
    """A photograph, and below it again for each map, dark where the map has little.

    Args:
        picture: in [0, 1].
        maps: from a title to a weight for each patch; the largest leaves its patch as it is.
    """
    height, width = picture.shape[:2]
    figure, axes = new_figure(1, 1 + len(maps), height=WIDTH * height / width / (1 + len(maps)) + 0.4,
                              squeeze=False)  # fmt: skip
    shown = {"photograph": picture}
    for title, weights in maps.items():
        light = (0.12 + 0.88 * weights / weights.max())[None, None]
        light = torch.nn.functional.interpolate(light, size=(height, width), mode="nearest")[0, 0]
        shown[title] = picture * light[:, :, None]
    for axis, (title, lit) in zip(axes[0], shown.items(), strict=True):
        axis.imshow(lit.numpy())
        axis.set_title(title)
        axis.set_axis_off()
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
def patch_filters(filters: Float[Tensor, "D rows columns"], across: int = 8) -> BookFigure:
    """The maps of a patch embedding as small pictures, `across` in a row, each on a scale of its own.

    Args:
        filters: the weights of each feature, in the shape of a patch of one channel.
        across: how many pictures stand side by side.
    """
    down = -(-len(filters) // across)
    figure, axes = new_figure(down, across, height=WIDTH * down / across, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, weights in zip(axes.flat, filters, strict=False):
        most = weights.abs().max().item()
        axis.imshow(weights.tolist(), cmap="RdBu_r", vmin=-most, vmax=most)
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


PLACES = {  # colour, marker and dashes of the ways to tell where a patch is
    "learned": (BLUE, "o", "-"),
    "learned, mean": (BLUE, "o", "--"),
    "border repeated": (SKY, "v", ":"),
    "rotary, corner": (ORANGE, "^", "-"),
    "rotary, middle": (GREEN, "s", "-"),
    "rotary, mean": (PURPLE, "D", "--"),
}


@book_style
def other_sizes(panels: Mapping[str, Mapping[str, Mapping[int, Sequence[float]]]]) -> BookFigure:
    """Accuracy in per cent against the side of the image: a panel a test, a line a way to tell places.

    A marker is the mean over runs, its bar reaches from the worst run to the best.

    Args:
        panels: from a title to ways, of `PLACES`; from a way to sides; from a side to per cents, one a run.
    """
    figure, axes = new_figure(len(panels), height=2.7 * len(panels), squeeze=False)
    for axis, (title, ways) in zip(axes[:, 0], panels.items(), strict=True):
        for i, (name, sizes) in enumerate(ways.items()):
            colour, marker, dashes = PLACES[name]
            means = [mean(runs) for runs in sizes.values()]
            reach = [
                [abs(m - far(runs)) for m, runs in zip(means, sizes.values(), strict=True)]
                for far in (min, max)
            ]
            places = [
                side + 0.35 * (i - (len(ways) - 1) / 2) for side in sizes
            ]  # so that bars do not overlap
            options: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dashes, "label": name}
            axis.errorbar(places, means, yerr=reach, capsize=3, **options)
        axis.set(title=title, ylabel="accuracy (%)", ylim=(0, 102))
        axis.set_xticks(sorted({side for sizes in ways.values() for side in sizes}))
    axes[-1, 0].set_xlabel("side of the image (pixels)")
    legend_above(*axes[:, 0])
    return figure


@book_style
def patch_lengths(shares: Mapping[str, Sequence[Sequence[float]]], largest: float) -> BookFigure:
    """How long the patches' columns are, in units of their median: a line a model, faint for each run.

    Args:
        shares: from a model, two at most, to its runs, each the shares of columns in bins of equal width.
        largest: where the last bin ends; the first begins at 0.
    """
    figure, axis = new_figure(height=3.2)
    for (name, runs), colour in zip(shares.items(), (BLUE, ORANGE)[: len(shares)], strict=True):
        n = len(runs[0])
        edges = [largest * i / n for i in range(n + 1)]
        for run in runs:
            axis.stairs([100 * share for share in run], edges, color=colour, alpha=0.35)
        middle = [100 * mean(column) for column in zip(*runs, strict=True)]
        axis.stairs(middle, edges, color=colour, linewidth=2, label=name)
    axis.set(xlabel="length of a patch's column / median", ylabel="columns (%)", xlim=(0, largest))
    legend_above(axis)
    return figure
