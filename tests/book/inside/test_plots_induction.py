"""The figures on induction heads draw what they are given."""

import pytest
import torch

from tformer_book.inside.plots.induction import (
    attention_stripes,
    scores_along_training,
    where_patching_matters,
)
from tformer_book.kit.plot_style import BookFigure


def test_loss_and_scores_stand_above_each_other_for_each_seed():
    steps = [[0, 10, 20]] * 2
    loss, previous, prefix = (
        [[a, b, c]] * 2 for a, b, c in ((4.0, 3.0, 1.0), (0.1, 0.5, 0.6), (0.0, 0.2, 0.9))
    )
    figure = scores_along_training(steps, loss, previous, prefix, uniform=4.2, until=20)
    above, below = figure.axes
    assert isinstance(figure, BookFigure)
    assert [4.0, 3.0, 1.0] in [list(line.get_ydata()) for line in above.lines]
    drawn = [list(line.get_ydata()) for line in below.lines]
    assert drawn.count([0.0, 0.2, 0.9]) == drawn.count([0.1, 0.5, 0.6]) == 2
    assert below.get_xlim() == (0, 20)
    assert figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="told apart"):
        scores_along_training([[0]] * 4, [[0.0]] * 4, [[0.0]] * 4, [[0.0]] * 4, uniform=1.0)


def test_a_map_has_its_last_layer_on_top():
    values = torch.tensor([[0.0, 0.1], [0.5, 0.6], [0.9, 1.0]])
    figure = where_patching_matters(
        {"clean into corrupted": values, "corrupted into clean": values},
        ["tokens", "block 0", "block 1"],
        {0.5: "A B"},
    )
    axis = figure.axes[0]
    assert axis.images[0].get_array().tolist() == values.flip(0).tolist()
    assert [label.get_text() for label in axis.get_yticklabels()] == ["block 1", "block 0", "tokens"]
    assert axis.get_title(loc="left") == "clean into corrupted"


def test_stripes_mark_where_the_second_copy_begins_and_how_far_back_the_last_map_looks():
    before, induction = torch.eye(12).roll(-1, 1), torch.eye(12).roll(-5, 1)
    figure = attention_stripes({"head 0.0\nbefore": before, "head 1.0\ninduction": induction}, 6)
    first, last = figure.axes[:2]
    assert [axis.get_title() for axis in (first, last)] == ["head 0.0\nbefore", "head 1.0\ninduction"]
    assert torch.tensor(last.images[0].get_array().tolist()).equal(induction)
    for axis in (first, last):
        assert list(axis.lines[0].get_ydata()) == [5.5, 5.5]
        assert [label.get_text() for label in axis.get_xticklabels()] == ["0", "P"]
    (enlarged,) = first.child_axes
    assert torch.tensor(enlarged.images[0].get_array().tolist()).equal(before[:6, :6])
    assert not last.child_axes
    assert [text.get_text() for text in last.texts] == ["", "P − 1"]
    (tail, head) = last.texts[0].xyann, last.texts[0].xy
    assert tail[1] == head[1] == 9  # a row of the second copy
    assert head[0] > 9 - 5  # the arrow ends before the stripe, which it does not hide
    with pytest.raises(ValueError, match="no map"):
        attention_stripes({}, 6)
    with pytest.raises(ValueError, match="nothing comes twice"):
        attention_stripes({"head": before}, 12)
