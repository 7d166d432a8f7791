"""The figures of the chapter on the transformer: what they draw is what they are given."""

import pytest
import torch

from tformer_book.kit.plot_style import BookFigure
from tformer_book.transformer import plots

LOWER = torch.ones(3, 3, dtype=torch.bool).tril()
RATES = [0.1, 0.2, 0.1]
COUNTS = {"a": dict(zip("uvwxyz", (1, 1, 1, 1, 2, 2), strict=True)), "b": dict.fromkeys("uvwxyz", 3)}
RUNS = {"small": [[3.0, 2.0], [3.0, 2.5]], "Xavier": [[3.0, 1.0]]}


def figures():
    both = {"small": [0.1, 0.2], "Xavier": [1.0, 1.0]}
    return {
        "dependence": plots.dependence({"decoder": LOWER, "source": torch.ones(3, 4, dtype=torch.bool)}),
        "learning_curves": plots.learning_curves([3.0, 2.0, 1.0], {0: 3.0, 3: 1.2}, RATES, {"unigram": 3.3}),
        "signal_by_width": plots.signal_by_width([64, 128], both, both),
        "plateau": plots.plateau({"pre": RUNS, "post": RUNS}, every=50, unigram=3.3),
        "leaving": plots.leaving(
            {"small": [4.0, 2.0, 3.0, 3.0, 9.0], "Xavier": [4.0, 4.0, 1.0, 2.0, 9.0]},
            {"small": (3.0, 3.1), "Xavier": (1.5, 3.5)},
            unigram=3.3,
            every=2,
        ),
        "components": plots.components(COUNTS),
    }


FIGURES = figures()


@pytest.mark.parametrize("name", FIGURES)
def test_draws_with_labelled_axes(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert any(axis.get_xlabel() for axis in figure.axes)


def test_dependence_shows_outputs_down():
    left, right = FIGURES["dependence"].axes
    assert torch.equal(torch.as_tensor(left.collections[0].get_array().astype(bool)), LOWER)
    assert right.collections[0].get_array().shape == (3, 4)
    assert left.get_ylabel() == "output"


def test_learning_curves_show_losses_baselines_and_rates():
    top, bottom = FIGURES["learning_curves"].axes
    assert [line.get_ydata()[0] for line in top.lines] == [3.0, 3.0, 3.3]
    assert [t.get_text() for t in top.texts] == ["unigram"]
    assert list(bottom.lines[0].get_ydata()) == RATES


def test_plateau_draws_each_seed_and_the_unigram():
    for axis in FIGURES["plateau"].axes:
        assert len(axis.lines) == 1 + 3
        assert axis.lines[0].get_ydata()[0] == 3.3
        assert list(axis.lines[1].get_xdata()) == [50, 100]
        assert [t.get_text() for t in axis.figure.legends[0].get_texts()] == ["small", "Xavier"]


def test_leaving_draws_means_the_unigram_and_both_ends_of_each_run():
    unigram, *lines = FIGURES["leaving"].axes[0].lines
    assert unigram.get_ydata()[0] == 3.3
    assert [list(line.get_ydata()) for line in lines] == [[3.0, 3.0], [3.0], [3.1], [4.0, 1.5], [1.5], [3.5]]
    assert list(lines[0].get_xdata()) == [1, 3]  # what is left over is not drawn
    assert [t.get_text() for t in FIGURES["leaving"].legends[0].get_texts()] == ["small", "Xavier"]


def test_bars_are_shares_that_fill_the_axis():
    axis = FIGURES["components"].axes[0]
    assert len(axis.patches) == 12
    widths = torch.tensor([patch.get_width() for patch in axis.patches]).view(6, 2)
    torch.testing.assert_close(widths.sum(dim=0), torch.ones(2, dtype=widths.dtype))
    assert widths[4, 0] == pytest.approx(0.25)
