"""Figures of the chapter on sequence modelling."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

from tformer_book.kit.plot_style import (
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


@book_style
def token_matrices(
    matrices: Mapping[str, Float[Tensor, "D N"]],
    tokens: Mapping[str, str],
    *,
    rising: Sequence[str] = (),
    pictures: Mapping[str, Float[Tensor, "H W"]] | None = None,
) -> BookFigure:
    """Each sequence as its matrix: features down, tokens across.

    Args:
        matrices: from a title to X, a token a column.
        tokens: from the same titles to what a token is, for the axis.
        rising: titles of those whose first feature stands at the bottom, such as the lowest frequency.
        pictures: from some of the titles to a grey picture that is shown beside the matrix.
    """
    figure, axes = new_figure(len(matrices), 1, height=2.1 * len(matrices))
    for axis, (title, matrix) in zip(axes, matrices.items(), strict=True):
        axis.imshow(matrix.numpy(force=True), aspect="auto", origin="lower" if title in rising else "upper")
        if pictures and title in pictures:
            beside = axis.inset_axes((1.03, 0.0, 0.3, 1.0))
            beside.imshow(pictures[title].numpy(force=True))
            beside.set_axis_off()
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
def fading(norms: Mapping[str, Float[Tensor, " N"]]) -> BookFigure:
    """The gradient's norm against the distance from the loss, a line for each model (logarithmic axis)."""
    figure, axis = new_figure(height=3.2)
    styles = ((RED, "-"), (BLUE, "--"), (GREEN, "-."))
    for (label, values), (colour, line) in zip(norms.items(), styles, strict=False):
        axis.semilogy(range(len(values)), values.numpy(force=True), line, color=colour, label=label)
    axis.set(xlabel="distance $d$ (tokens)", ylabel="norm of the gradient")
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
