"""The figures of the chapter on skip connections and normalisation."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)

COLOURS = (GREY, ORANGE, RED, BLUE)  # neither, norm alone, skip alone, both
DASHES = (":", "--", "-.", "-")
PLACEMENTS = {
    "pre": (BLUE, "-"),
    "post": (RED, "-"),
    "normed skip": (GREEN, "--"),
    "branch": (ORANGE, "-."),
    "sandwich": (GREY, ":"),
}
FLOOR = 1e-14  # in float64 what is less is rounding, and no two machines agree on it
WIDE = 0.1  # nats; a range that is wider is written down


@book_style
def token_differences(shares: Mapping[str, Tensor]) -> BookFigure:
    """How much of the tokens is not common to all, block by block, on a logarithmic axis.

    Args:
        shares: from a stack's name to ||X - mean|| / ||X|| before block 1 and after each block.
    """
    figure, axis = new_figure(height=3.9)
    for (name, share), colour, dash in zip(shares.items(), COLOURS, DASHES, strict=False):
        axis.semilogy(share.clamp(min=FLOOR).tolist(), dash, color=colour, label=name)
    axis.axhspan(FLOOR / 50, FLOOR, color="#EEEEEE", zorder=0)
    axis.text(len(share) - 1, FLOOR / 7, "rounding", color=GREY, ha="right", va="center")
    axis.set(xlabel="blocks passed", ylabel="own share", ylim=(FLOOR / 50, 9))
    axis.legend(loc="center right", bbox_to_anchor=(1.0, 0.36))
    return figure


@book_style
def gradient_norms(
    by_block: Mapping[str, Tensor], depths: Sequence[int], by_depth: Mapping[str, Tensor]
) -> BookFigure:
    """Above, the gradient's norm as it travels back through a stack; below, what arrives, against depth.

    Args:
        by_block: from a stack's name to the norm of the gradient before block 1 and after each block.
        depths: numbers of blocks.
        by_depth: from a stack's name to the norm at the input relative to that at the output, per depth.
    """
    figure, (above, below) = new_figure(2, height=6.0)
    for (name, norms), colour, dash in zip(by_block.items(), COLOURS, DASHES, strict=False):
        above.semilogy((norms / norms[-1]).tolist(), dash, color=colour, label=name)
        below.loglog(depths, by_depth[name].tolist(), dash, color=colour, marker="o", markersize=4)
    above.set(xlabel="blocks passed", ylabel="norm / norm at the end")
    below.set(xlabel="depth of the stack", ylabel="norm at the start\n/ norm at the end")
    below.set_xticks(depths, [str(depth) for depth in depths])
    below.minorticks_off()
    for axis in (above, below):
        axis.axhline(1, color=BLACK, linewidth=0.8)
    legend_above(above)
    return figure


@book_style
def activations(x: Tensor, curves: Mapping[str, Tensor]) -> BookFigure:
    """Functions of one number, the first solid and the others dashed."""
    figure, axis = new_figure(height=2.9)
    for (name, y), colour, dash in zip(curves.items(), (BLUE, RED, GREY), ("-", "--", ":"), strict=False):
        axis.plot(x.tolist(), y.tolist(), dash, color=colour, label=name)
    axis.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
    axis.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
    axis.set(xlabel="$x$", ylabel="output")
    axis.legend(loc="upper left")
    return figure


@book_style
def placements(
    shares: Mapping[str, Tensor], sizes: Mapping[str, Tensor], inputs: Mapping[str, Tensor]
) -> BookFigure:
    """Above, the tokens' own share block by block; below, the size of the residual stream.

    Args:
        shares: from a name in `PLACEMENTS` to ||X - mean|| / ||X|| before block 1 and after each block.
        sizes: likewise, the root mean square of the stream's entries.
        inputs: likewise, for some of the names, how much of the stream a formula says is the input.
    """
    figure, (above, below) = new_figure(2, height=5.6, sharex=True)
    for name, share in shares.items():
        colour, dash = PLACEMENTS[name]
        above.semilogy(share.tolist(), dash, color=colour, label=name)
        below.plot(sizes[name].tolist(), dash, color=colour)
    for name, left in inputs.items():
        colour = PLACEMENTS[name][0]
        above.semilogy(left.tolist(), "--", color=colour, linewidth=1, label=f"{name}: input's part")
    above.set(ylabel="own share")
    legend_above(above)
    below.set(xlabel="blocks passed", ylabel="size of the stream\n(root mean square)", ylim=(0, None))
    return figure


@book_style
def loss_grid(
    losses: Mapping[str, Tensor], depths: Sequence[int], warmups: Sequence[str], plateau: float
) -> BookFigure:
    """One heat map per placement: depth down, schedule across, the mean loss and any wide range in the cells.

    Args:
        losses: from a placement to its losses, (depths, warmups, seeds).
        depths: numbers of blocks.
        warmups: a label for each schedule.
        plateau: the loss at the light end of the colours.
    """
    figure, axes = new_figure(len(losses), height=2.5 * len(losses) + 0.4, sharex=True, squeeze=False)
    best = min(loss.min().item() for loss in losses.values())
    for axis, (name, loss) in zip(axes[:, 0], losses.items(), strict=True):
        mean = loss.mean(dim=-1)
        axis.imshow(mean.numpy(), vmin=best, vmax=plateau, aspect="auto")
        for i in range(len(depths)):
            for j in range(len(warmups)):
                colour = "black" if mean[i, j] > (best + plateau) / 2 else "white"
                low, high = loss[i, j].min(), loss[i, j].max()
                text = f"{mean[i, j]:.2f}" + (f"\n{low:.2f}\nto {high:.2f}" if high - low > WIDE else "")
                axis.text(j, i, text, ha="center", va="center", color=colour)
        axis.set_title(name)
        axis.set_yticks(range(len(depths)), [str(depth) for depth in depths])
        axis.set_xticks(range(len(warmups)), warmups)
        axis.set_ylabel("blocks")
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    axes[-1, 0].set_xlabel("peak learning rate, share of steps that warm up")
    return figure


@book_style
def training_curves(
    steps: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    shares: Mapping[str, Sequence[float]],
    unigram: float,
) -> BookFigure:
    """Above, loss against training step, beside the unigram model's; below, what is the tokens' own.

    Args:
        steps: the training steps.
        curves: from a model's name to its losses at these steps.
        shares: likewise, ||X - mean|| / ||X|| after the last block.
        unigram: the loss of the unigram model.
    """
    figure, (above, below) = new_figure(2, height=5.8, sharex=True)
    styles = ((BLUE, "-"), (RED, "-"), (ORANGE, "--"), (GREEN, ":"))
    for (name, loss), (colour, dash) in zip(curves.items(), styles, strict=False):
        above.plot(steps, loss, dash, color=colour, label=name)
        below.semilogy(steps, shares[name], dash, color=colour)
    above.axhline(unigram, color=GREY, linewidth=1)
    above.text(steps[-1], unigram + 0.07, "unigram", color=GREY, ha="right", va="bottom")
    above.set(ylabel="loss (nats\nper character)", ylim=(2.3, 4.2))
    below.set(xlabel="training step", ylabel="own share")
    legend_above(above)
    return figure
