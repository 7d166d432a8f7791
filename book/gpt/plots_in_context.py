"""The figures on learning from examples in the prompt."""

import math
from collections.abc import Mapping
from typing import Any

import matplotlib.ticker
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from tformer_book.kit.plot_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    POSITION_NAMES,
    POSITIONS,
    RED,
    BookFigure,
    book_style,
    new_figure,
)

LOOKS = {  # colour and dashes; what is not here has the look of its positions
    "transformer": (BLUE, "-"),
    "ridge": (BLACK, "--"),
    "least squares": (RED, "-."),
    "averaging": (GREEN, ":"),
    "predict 0": (GREY, "-"),
}


def _look(name: str) -> tuple[str, str]:
    return LOOKS[name] if name in LOOKS else (POSITIONS[name][0], "-")


def _name_at_the_end(axis: Axes, ends: Mapping[str, float], apart: float) -> None:
    """Writes each name to the right of the axis, where its line ends or, if there is no room, just above.

    What ends below the axis is named at its foot, with an arrow.
    """
    low, high = (math.log10(limit) for limit in axis.get_ylim())
    place = -1.0
    for name, end in sorted(ends.items(), key=lambda pair: pair[1]):
        height = (math.log10(max(end, 1e-30)) - low) / (high - low)
        place = max(height, place + apart, 0.0)
        label = POSITION_NAMES.get(name, name) + (" ↓" if height < 0 else "")
        colour, dashes = _look(name)
        outside: dict[str, Any] = {"transform": axis.transAxes, "clip_on": False}
        axis.plot([1.015, 1.17], [place, place], dashes, color=colour, linewidth=2, **outside)
        axis.text(1.19, place, label, color=colour, va="center", **outside)


@book_style
def error_against_examples(
    panels: Mapping[str, Mapping[str, Float[Tensor, "*runs n"]]],
    trained_to: int,
    *,
    lowest: float = 1e-3,
    highest: float | None = None,
    height: float = 3.4,
) -> BookFigure:
    """Error, on a logarithmic axis, against the number of examples read: a panel a setting, a line a name.

    Where several runs are given, each is drawn faint and their mean bold. Lines leave a panel where they fall
    below `lowest` or rise above `highest`.

    Args:
        panels: from a title to errors: from a name to one number for each of n = 0, 1, ... examples, or
            to rows of these, a run a row.
        trained_to: the number of examples in a row of training, marked by a dotted line.
        lowest: the lower end of the axis.
        highest: its upper end; what the largest error takes if None.
        height: inches, of a panel.
    """
    figure, axes = new_figure(len(panels), 1, height=height * len(panels), sharex=True, squeeze=False)
    for number, (axis, (title, errors)) in enumerate(zip(axes[:, 0], panels.items(), strict=True)):
        ends, top = {}, 0.0
        for name, values in errors.items():
            colour, dashes = _look(name)
            runs = torch.atleast_2d(values)
            mean, places = runs.mean(dim=0), range(runs.shape[1])
            if len(runs) > 1:
                axis.plot(places, runs.T, color=colour, linewidth=0.8, alpha=0.5)
            axis.plot(places, mean, dashes, color=colour)
            ends[name], top = float(mean[-1]), max(top, float(runs.max()))
        axis.set_yscale("log")
        axis.set_ylim(lowest, 1.3 * top if highest is None else highest)
        axis.set_ylabel("squared error / $d$")
        axis.set_title(title, loc="left")
        axis.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
        axis.axvline(trained_to - 0.5, color=GREY, linewidth=1, linestyle=":")
        if number == 0:
            place = {"transform": axis.get_xaxis_transform(), "color": GREY, "va": "top"}
            axis.text(trained_to, 0.99, "trained", **place)
        _name_at_the_end(axis, ends, apart=0.27 / height)
    axes[-1, 0].set_xlabel("examples read")
    return figure
