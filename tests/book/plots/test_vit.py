"""The figures of the chapter on the vision transformer: what they draw is what they are given."""

import pytest
import torch

from tformer_lib.book.plots import vit as plots
from tformer_lib.book.plots.style import BLUE, BookFigure
from tformer_lib.core.patches import to_patches

torch.manual_seed(0)
IMAGE = torch.rand(1, 8, 12)
SCORES = {"SVM": 95.0, "ViT": 97.5}
CURVES = {"SVM": {100: [0.7, 0.8, 0.75], 4000: [0.95, 0.95, 0.95]}, "ViT + shifts": {100: [0.5, 0.6, 0.7]}}
COSINES, IMAGES, PHOTOS = torch.rand(6, 6), torch.rand(3, 1, 8, 8), torch.rand(2, 3, 16, 16)
MAPS = {"block 1": torch.rand(3, 2, 2), "rollout": torch.rand(3, 2, 2)}
WEIGHTS = torch.tensor([[0.1, 0.2, 0.4, 0.3], [1.0, 0.0, 0.0, 0.0]])
ORDERS = {"highest first": [70.0, 20.0, 10.0], "ink": [70.0, 25.0, 12.0], "at random": [70.0, 68.0, 66.0]}
ORDERS["lowest first"] = [70.0, 70.0, 69.0]
FIGURES = {
    "patches": plots.patches(IMAGE, 4),
    "scores": plots.scores(SCORES, {"SVM": 0.7, "ViT": 0.5}),
    "against_training_images": plots.against_training_images(CURVES),
    "position_similarity": plots.position_similarity(COSINES, 2, 3),
    "attention_maps": plots.attention_maps(IMAGES, MAPS),
    "found": plots.found(PHOTOS, WEIGHTS, [2, 0], 8),
    "deletions": plots.deletions(ORDERS),
}


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_patches_shows_the_image_the_cuts_and_the_columns():
    above, below = FIGURES["patches"].axes
    assert torch.allclose(torch.tensor(above.images[0].get_array()).float(), IMAGE[0])
    assert torch.allclose(torch.tensor(below.images[0].get_array()).float(), to_patches(IMAGE[None], 4)[0].T)
    assert [text.get_text() for text in above.texts] == ["1", "2", "3", "4", "5", "6"]
    assert sorted(line.get_ydata()[0] for line in above.lines if line.get_xdata() == [0, 1]) == [3.5]
    assert sorted(line.get_xdata()[0] for line in above.lines if line.get_ydata() == [0, 1]) == [3.5, 7.5]


def test_scores_writes_each_number_and_shows_the_transformer_in_blue():
    (axis,) = FIGURES["scores"].axes
    assert [text.get_text() for text in axis.texts] == ["95.0", "97.5"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["SVM", "ViT"]
    dots = [container[0] for container in axis.containers]
    assert [float(dot.get_xdata()[0]) for dot in dots] == [95.0, 97.5]
    assert [dot.get_color() == BLUE for dot in dots] == [False, True]


def test_against_training_images_draws_means_and_reaches_from_the_worst_run_to_the_best():
    (axis,) = FIGURES["against_training_images"].axes
    line, _, (bar,) = axis.containers[0]
    assert list(line.get_ydata()) == pytest.approx([75, 95])
    (_, low), (_, high) = bar.get_segments()[0]
    assert (low, high) == pytest.approx((70, 80))
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["100", "4,000"]
    with pytest.raises(KeyError, match="guessing"):
        plots.against_training_images({"guessing": {100: [0.1]}})


def test_position_similarity_has_a_map_a_patch_and_marks_it():
    *axes, _ = FIGURES["position_similarity"].axes
    assert len(axes) == 6
    for n, axis in enumerate(axes):
        assert torch.allclose(torch.tensor(axis.images[0].get_array()).float(), COSINES[n].reshape(2, 3))
        (mark,) = axis.patches
        assert (mark.get_y() + 0.5, mark.get_x() + 0.5) == divmod(n, 3)


def test_attention_maps_has_an_image_a_row_and_a_map_a_column():
    axes = FIGURES["attention_maps"].axes
    assert len(axes) == 9
    assert [axis.get_title() for axis in axes[:3]] == ["image", "block 1", "rollout"]
    for k in range(3):
        assert torch.allclose(torch.tensor(axes[3 * k].images[0].get_array()).float(), IMAGES[k, 0])
        shown = torch.tensor(axes[3 * k + 2].images[0].get_array()).float()
        assert torch.allclose(shown, MAPS["rollout"][k])


def test_found_dims_patches_by_their_weight_and_frames_one():
    axes = FIGURES["found"].axes
    for k, place in enumerate((2, 0)):
        image, dimmed = axes[k].images[0].get_array(), axes[2 + k].images[0].get_array()
        brightest = int(WEIGHTS[k].argmax())
        row, column = brightest // 2 * 8, brightest % 2 * 8
        assert (dimmed <= image + 1e-6).all()
        part = (slice(row, row + 8), slice(column, column + 8))
        assert torch.allclose(torch.tensor(dimmed[part]), torch.tensor(image[part]))
        for axis in (axes[k], axes[2 + k]):
            (frame,) = axis.patches
            assert (frame.get_x() + 0.5, frame.get_y() + 0.5) == (place % 2 * 8, place // 2 * 8)
    assert torch.allclose(
        torch.tensor(axes[3].images[0].get_array()[8:]).float(), 0.12 * PHOTOS[1].permute(1, 2, 0)[8:]
    )


def test_deletions_has_a_line_an_order():
    (axis,) = FIGURES["deletions"].axes
    assert [list(line.get_ydata()) for line in axis.lines] == list(ORDERS.values())
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == list(ORDERS)
    assert axis.get_ylim()[0] == 0
    with pytest.raises(ValueError, match="zip"):
        plots.deletions({str(k): [1.0] for k in range(6)})
