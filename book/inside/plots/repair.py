"""The figure on what a cut changes: the head's own part, and what all others do then."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from tformer_book.kit.plot_style import BLACK, BLUE, GREY, RED, BookFigure, book_style, new_figure


@book_style
def what_a_cut_changes(cuts: Mapping[str, Mapping[str, Sequence[float]]]) -> BookFigure:
    """A panel for each cut: a bar for each part of the change of a logit, a dot for each seed.

    Args:
        cuts: from a title to the parts, from the first to their sum, which stands last.

    Raises:
        ValueError: if there is no cut.
    """
    if not cuts:
        raise ValueError("there is no cut to show")
    most = max(len(parts) for parts in cuts.values())
    figure, axes = new_figure(
        len(cuts), 1, height=(0.29 * most + 0.55) * len(cuts) + 0.4, sharex=True, squeeze=False
    )
    for axis, (title, parts) in zip(axes[:, 0], cuts.items(), strict=True):
        names = list(parts)
        values = [fmean(parts[name]) for name in names]
        colours = [RED if value < 0 else BLUE for value in values[:-1]] + [GREY]
        axis.barh(range(len(names)), values, color=colours)
        for place, name in enumerate(names):
            axis.plot(parts[name], [place] * len(parts[name]), ".", color=BLACK, markersize=4)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.axvline(0, color=BLACK, linewidth=0.8)
        axis.set_title(title, loc="left")
    axes[-1, 0].set_xlabel("change of the right token's logit")
    return figure
