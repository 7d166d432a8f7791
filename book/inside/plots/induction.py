"""The figures on induction heads: maps, scores along training, where patching matters."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREY,
    HEAT,
    RED,
    BookFigure,
    book_style,
    keep_colours,
    legend_above,
    new_figure,
)

DASHES = ("-", "--", ":")


@book_style
def scores_along_training(
    steps: Sequence[Sequence[int]],
    loss: Sequence[Sequence[float]],
    previous: Sequence[Sequence[float]],
    prefix: Sequence[Sequence[float]],
    *,
    uniform: float,
    until: int | None = None,
) -> BookFigure:
    """Loss above, the largest scores of a head below, a dash pattern for each seed.

    Args:
        steps: of each run, when it was measured.
        loss: of each run.
        previous: the largest score for the token before.
        prefix: the largest score for prefix matching.
        uniform: the loss of knowing nothing.
        until: the last step shown.

    Raises:
        ValueError: if there are more than three runs, or none.
    """
    if not 1 <= len(steps) <= len(DASHES):
        raise ValueError(f"from one run to {len(DASHES)} can be told apart, got {len(steps)}")
    figure, (above, below) = new_figure(2, 1, height=3.9, sharex=True)
    for run, dashes in enumerate(DASHES[: len(steps)]):
        above.plot(steps[run], loss[run], dashes, color=BLACK, label=f"seed {run}")
        below.plot(steps[run], previous[run], dashes, color=RED)
        below.plot(steps[run], prefix[run], dashes, color=BLUE)
    above.axhline(uniform, color=GREY, linewidth=1)
    last = until or max(map(max, steps))
    above.text(last, uniform + 0.12, "knowing nothing", color=GREY, ha="right", va="bottom")
    above.set(ylabel="loss on the passage", ylim=(0, uniform * 1.2))
    below.plot([], [], color=RED, label="token before")
    below.plot([], [], color=BLUE, label="prefix")
    below.set(xlabel="step", ylabel="largest score", ylim=(0, 1.03), xlim=(0, last))
    legend_above(above, below)
    return figure


@book_style
def attention_stripes(maps: Mapping[str, Float[Tensor, "N N"]], period: int) -> BookFigure:
    """Attention maps side by side, queries down; in the last an arrow from the diagonal to the stripe.

    The tokens repeat after P. An induction head of place n looks at n - P + 1, which is P - 1 places back. A
    dotted line shows where the second copy begins. In the others, whose line is at the diagonal or beside it,
    the upper corner shows the eight places before P enlarged, and a line through their diagonal.

    Args:
        maps: from a title to the weights of a head on one sequence.
        period: P.

    Raises:
        ValueError: if there is no map, or the tokens of a map do not come twice.
    """
    if not maps:
        raise ValueError("there is no map to show")
    figure, axes = new_figure(1, len(maps), height=2.45, sharey=True, squeeze=False)
    for axis, (title, weights) in zip(axes[0], maps.items(), strict=True):
        N = weights.shape[-1]
        if not 0 < period < N:
            raise ValueError(f"nothing comes twice in {N} tokens with a period of {period}")
        axis.imshow(weights.numpy(force=True), vmin=0, vmax=1)
        axis.axhline(period - 0.5, color="white", linewidth=1, linestyle=":")
        axis.set_title(title)
        axis.set_xticks([0, period], ["0", "P"])
        axis.set_yticks([0, period], ["0", "P"])
        axis.tick_params(length=0)
        axis.set_xlabel("key")
        if title != list(maps)[-1]:
            inset = axis.inset_axes((0.52, 0.52, 0.46, 0.46), xticks=[], yticks=[])
            part = slice(max(period - 8, 0), period)
            inset.imshow(weights[part, part].numpy(force=True), vmin=0, vmax=1)
            inset.plot([-0.5, 7.5], [-0.5, 7.5], color="white", linewidth=1, scalex=False, scaley=False)
            for side in inset.spines.values():
                side.set(visible=True, color="white")
            keep_colours(*inset.spines.values())
    n = (period + N) // 2  # the query of the arrow
    arrow = {"arrowstyle": "->", "color": "white", "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", (n - period + 2, n), (n - 0.5, n), arrowprops=arrow)
    axis.text(n + 1, n - 2, "P − 1", color="white", ha="right", va="bottom")
    axes[0, 0].set_ylabel("query")
    return figure


@book_style
def where_patching_matters(
    maps: Mapping[str, Float[Tensor, "rows N"]], rows: Sequence[str], marks: Mapping[float, str]
) -> BookFigure:
    """For each title a heat map, layers down and places across: 1 as in the clean run, 0 as in the corrupted.

    Args:
        maps: from a title to numbers.
        rows: the names of the layers, from the first.
        marks: from a place to the token that is named there.
    """
    figure, axes = new_figure(len(maps), 1, height=1.3 * len(maps) + 0.75, sharex=True, squeeze=False)
    for axis, (title, values) in zip(axes[:, 0], maps.items(), strict=True):
        values = torch.as_tensor(values)
        picture = axis.imshow(values.flip(0), vmin=0, vmax=1, cmap=HEAT, aspect="auto")
        axis.set_yticks(range(len(rows)), list(reversed(rows)))
        axis.set_title(title, loc="left")
        axis.set_xticks(list(marks), list(marks.values()))
        for side in ("left", "bottom"):
            axis.spines[side].set_visible(False)
        axis.tick_params(length=0)
    axes[-1, 0].set_xlabel("place")
    figure.colorbar(picture, ax=list(axes[:, 0]), ticks=[0, 0.5, 1], fraction=0.06, pad=0.03, label="effect")
    return figure
