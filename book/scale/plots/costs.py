"""The figures on what a step costs."""

from collections.abc import Mapping, Sequence

import matplotlib.ticker

from tformer_book.kit.plot_style import BLUE, RED, BookFigure, book_style, legend_above, new_figure

LOOKS = {"float16": (RED, "-"), "bfloat16": (BLUE, "--")}
FORMS = {"sharded": "o", "tensor": "s"}  # markers
LINKS = {"inside": "-", "between": "--"}


@book_style
def lost_by_scale(
    powers: Sequence[int], lost: Mapping[str, Sequence[Sequence[float]]], *, height: float = 2.9
) -> BookFigure:
    """The share of gradients that a type cannot hold, by the power of two on the loss; a line for each run.

    Args:
        powers: of two, on the loss.
        lost: from a type of `LOOKS` to its runs: the share for each power.
        height: inches.
    """
    figure, axis = new_figure(1, 1, height=height)
    for name, runs in lost.items():
        colour, dashes = LOOKS[name]
        for i, run in enumerate(runs):
            label = {"label": name} if i == 0 else {}
            axis.plot(powers, run, dashes, color=colour, linewidth=2.0 if i == 0 else 1.0, **label)
    axis.axvline(0, color="black", linewidth=0.8, linestyle=":")
    axis.set_xlabel("factor on the loss")
    axis.set_ylabel("share that is lost")
    axis.set_ylim(-0.03, 1.03)
    axis.xaxis.set_major_locator(matplotlib.ticker.FixedLocator([-10, 0, 10, 20, 30, 40]))
    axis.xaxis.set_major_formatter(lambda k, _: f"$2^{{{int(k)}}}$")
    axis.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0))
    legend_above(axis)
    return figure


@book_style
def messages_over_work(
    gpus: Sequence[int], ratios: Mapping[tuple[str, str], Sequence[float]], *, height: float = 2.9
) -> BookFigure:
    """How long a step's messages take for each second of its work, by the number of GPUs.

    Args:
        gpus: how many share the model.
        ratios: from a form of `FORMS` and a link of `LINKS` to seconds of messages over seconds of work.
        height: inches.
    """
    figure, axis = new_figure(1, 1, height=height)
    for (form, link), line in ratios.items():
        marker, dashes = FORMS[form], LINKS[link]
        colour = RED if form == "tensor" else BLUE
        axis.plot(gpus, line, marker + dashes, color=colour, markersize=5, label=f"{form}, {link}")
    axis.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.xaxis.set_major_formatter(lambda n, _: f"{n:g}")
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:g}")
    axis.set_xlabel("GPUs")
    axis.set_ylabel("messages over work")
    legend_above(axis)
    return figure
