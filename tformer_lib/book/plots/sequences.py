"""Figures of the chapter on sequence modelling."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from tformer_lib.book.plots.boxes import IN, OUT, STATE, arrow, box
from tformer_lib.book.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    RED,
    BookFigure,
    book_style,
    legend_above,
    new_figure,
)


def _canvas(axis: Axes, right: float | int, bottom: float | int, top: float | int) -> None:
    axis.set(xlim=(-0.5, right), ylim=(bottom, top))
    axis.set_axis_off()


@book_style
def task_shapes(tasks: Mapping[str, tuple[Sequence[str], Sequence[tuple[int, str]]]]) -> BookFigure:
    """What goes in (below) and what is wanted (above), one panel a task.

    Args:
        tasks: from a title to (tokens that go in, wanted outputs); an output is (place, text), the place
            counted along the tokens; outputs fewer than these, or beyond them, wait for the whole sequence.
    """
    figure, axes = new_figure(len(tasks), 1, height=1.55 * len(tasks))
    right = max(place for _, wanted in tasks.values() for place, _ in wanted)
    for axis, (title, (tokens, wanted)) in zip(axes, tasks.items(), strict=True):
        for n, token in enumerate(tokens):
            box(axis, n, 0, token, IN, 0.92)
        last = len(tokens) - 1
        joined = any(place > last for place, _ in wanted) or len(wanted) < len(tokens)
        if joined:  # the whole sequence is read first
            axis.plot((0, max(last, wanted[-1][0])), (0.5, 0.5), color=BLACK, linewidth=1.2)
            for n in range(len(tokens)):
                axis.plot((n, n), (0.31, 0.5), color=BLACK, linewidth=1.2)
        for place, text in wanted:
            box(axis, place, 1.15, text, OUT, 0.92)
            arrow(axis, (place, 0.5 if joined else 0.32), (place, 0.84))
        axis.set_title(title, loc="left", pad=2)
        _canvas(axis, right + 0.5, -0.4, 1.55)
    return figure


@book_style
def encoder_decoder(source: Sequence[str], target: Sequence[str]) -> BookFigure:
    """An encoder-decoder unrolled: states left to right, the one vector between the two in colour."""
    figure, axis = new_figure(height=2.7)
    n, step = len(source), 1.0
    for i, token in enumerate(source):
        x = i * step
        box(axis, x, 0, token, IN, 0.7)
        box(axis, x, 1.15, f"$h_{i + 1}$", STATE, 0.7)
        arrow(axis, (x, 0.3), (x, 0.84))
        if i:
            arrow(axis, (x - step + 0.35, 1.15), (x - 0.36, 1.15))
    first = (n + 0.35) * step
    arrow(axis, ((n - 1) * step + 0.36, 1.15), (first - 0.36, 1.15), RED)
    axis.text(first - 0.25, 1.6, "one vector", ha="right", color=RED)
    for i, token in enumerate(target):
        x = first + i * step
        box(axis, x, 1.15, f"$u_{i + 1}$", STATE, 0.7)
        box(axis, x, 2.3, token, OUT, 0.7)
        arrow(axis, (x, 1.46), (x, 1.98))
        if i:
            arrow(axis, (x - step + 0.35, 1.15), (x - 0.36, 1.15))
            arrow(axis, (x - step + 0.2, 1.99), (x - 0.2, 1.47), GREY)
    axis.text((n - 1) / 2, 2.3, "encoder", ha="center", va="center", color=GREY)
    axis.text(first + (len(target) - 1) / 2, 0, "decoder", ha="center", va="center", color=GREY)
    _canvas(axis, first + len(target) - 0.5, -0.4, 2.7)
    return figure


@book_style
def token_matrices(matrices: Mapping[str, Float[Tensor, "D N"]], tokens: Mapping[str, str]) -> BookFigure:
    """Each sequence as its matrix: features down, tokens across.

    Args:
        matrices: from a title to X, a token a column.
        tokens: from the same titles to what a token is, for the axis.
    """
    figure, axes = new_figure(len(matrices), 1, height=2.1 * len(matrices))
    for axis, (title, matrix) in zip(axes, matrices.items(), strict=True):
        axis.imshow(matrix.numpy(force=True), aspect="auto")
        axis.set_title(f"{title}: {matrix.shape[0]} × {matrix.shape[1]}", loc="left")
        axis.set(xlabel=f"{tokens[title]} $n$", ylabel="feature")
        axis.spines[:].set_visible(False)
    return figure


@book_style
def vocabulary_curve(
    sizes: Sequence[int], tokens_per_character: Mapping[str, Sequence[float]], words: float
) -> BookFigure:
    """Tokens per character against the size of the vocabulary, with the line where a token is a word.

    Args:
        sizes: vocabulary sizes.
        tokens_per_character: from a text's name to one number a size.
        words: words per character.
    """
    figure, axis = new_figure(height=3.3)
    for (label, values), colour, marker in zip(tokens_per_character.items(), (BLUE, RED), "os", strict=False):
        axis.semilogx(sizes, values, color=colour, marker=marker, label=label)
    axis.axhline(words, color=GREY, linestyle=":", linewidth=1.5)
    axis.text(sizes[0], words + 0.015, "one token a word", color=GREY, va="bottom")
    axis.set_xticks(list(sizes), [f"{s:,}" for s in sizes])
    axis.set_xticks([], minor=True)
    axis.set(xlabel="vocabulary (tokens)", ylabel="tokens per character", ylim=(0, 1.08))
    axis.legend()
    return figure


@book_style
def distance_curve(
    distances: Sequence[int], accuracy: Mapping[str, Sequence[float]], chance: float, window: int
) -> BookFigure:
    """Accuracy against the distance of what must be remembered, one line a model.

    Args:
        distances: how many places back the answer stands.
        accuracy: from a model's name to one number a distance.
        chance: what guessing gives.
        window: the furthest place that a window reaches.
    """
    figure, axis = new_figure(height=3.2)
    styles = ((RED, "o", "-"), (BLUE, "s", "-"), (GREEN, "^", "--"), (PURPLE, "v", "--"))
    for (label, values), (colour, marker, line) in zip(accuracy.items(), styles, strict=False):
        axis.plot(distances, values, line, color=colour, marker=marker, label=label)
    axis.axhline(chance, color=GREY, linestyle=":", linewidth=1.5)
    axis.text(distances[0], chance - 0.03, "chance", color=GREY, ha="left", va="top")
    axis.axvline(window + 0.5, color=GREY, linewidth=1)
    axis.text(window + 0.8, 0.05, "end of the window", color=GREY)
    axis.set_xticks([d for d in distances if d % 4 == 0])
    axis.set(xlabel="distance $d$ (tokens)", ylabel="accuracy", ylim=(0, 1.05))
    legend_above(axis)
    return figure


@book_style
def ladder(bits: Mapping[str, float], beside: Mapping[str, float]) -> BookFigure:
    """Bits per character, a bar a model, from the worst to the best.

    Args:
        bits: from the name of a rung to its bits.
        beside: the same for what stands beside the ladder, drawn below it, apart and in grey.
    """
    figure, axis = new_figure(height=0.42 * (len(bits) + len(beside)) + 0.9)
    names, values = [*bits, *beside], [*bits.values(), *beside.values()]
    places = [*range(len(bits)), *(len(bits) + 0.5 + i for i in range(len(beside)))]
    axis.barh(places[: len(bits)], values[: len(bits)], color=BLUE, height=0.7)
    axis.barh(places[len(bits) :], values[len(bits) :], color=GREY, height=0.7)
    for place, value in zip(places, values, strict=True):
        axis.text(value + 0.06, place, f"{value:.2f}", va="center")
    axis.set_yticks(places, names)
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.set(xlabel="bits per character, held out", xlim=(0, max(values) * 1.12))
    return figure


@book_style
def bottleneck(
    lengths: Sequence[int],
    recorded: Mapping[str, Float[Tensor, "runs L"]],
    live: Sequence[float],
    trained_to: int,
) -> BookFigure:
    """Exact matches against length: recorded runs faint, their means bold, this page's own run as dots."""
    figure, axis = new_figure(height=3.4)
    styles = ((RED, "o"), (PURPLE, "^"), (BLUE, "s"))
    for (label, runs), (colour, marker) in zip(recorded.items(), styles, strict=False):
        axis.plot(lengths, runs.T, color=colour, linewidth=0.8, alpha=0.5)
        axis.plot(lengths, runs.mean(dim=0), color=colour, marker=marker, markersize=5, label=label)
    axis.plot(lengths, live, "x", color=BLACK, markersize=8, markeredgewidth=2, label="one vector, this page")
    axis.axvline(trained_to, color=GREY, linewidth=1)
    axis.text(trained_to - 0.3, 0.55, "longest trained", color=GREY, ha="right")
    axis.set(xlabel="length of the sequence (symbols)", ylabel="exact matches (share)", ylim=(-0.03, 1.05))
    legend_above(axis)
    return figure
