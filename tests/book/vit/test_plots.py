"""The figures of the chapter on the vision transformer: what they draw is what they are given."""

import pytest
import torch

from tformer_book.kit.plot_style import BookFigure
from tformer_book.vit import plots

torch.manual_seed(0)
IMAGE = torch.rand(1, 8, 12)
SCORES = {"SVM": 95.0, "ViT": 97.5}
CURVES = {"SVM": {100: [0.7, 0.8, 0.75], 4000: [0.95, 0.95, 0.95]}, "ViT + shifts": {100: [0.5, 0.6, 0.7]}}
COSINES, IMAGES, PHOTOS = torch.rand(6, 6), torch.rand(3, 1, 8, 8), torch.rand(2, 3, 16, 16)
FILTERS = torch.randn(6, 3, 3)
MAPS = {"block 1": torch.rand(3, 2, 2), "rollout": torch.rand(3, 2, 2)}
WEIGHTS = torch.tensor([[0.1, 0.2, 0.4, 0.3], [1.0, 0.0, 0.0, 0.0]])
ORDERS = {"highest first": [70.0, 20.0, 10.0], "ink": [70.0, 25.0, 12.0], "at random": [70.0, 68.0, 66.0]}
ORDERS["lowest first"] = [70.0, 70.0, 69.0]
SIZES = {
    "enlarged": {"learned": {28: [90.0, 96.0], 56: [20.0, 40.0]}, "rotary, middle": {28: [95.0], 56: [50.0]}},
    "moved": {"border repeated": {42: [60.0, 80.0, 70.0]}},
}
PICTURE = torch.rand(8, 8, 3)
FIGURES = {
    "against_training_images": plots.against_training_images(CURVES),
    "trained_longer": plots.trained_longer({"ViT": {800: [3.0, 4.0], 1500: [2.0, 2.5]}, "CNN": {600: [1.0]}}),
    "in_patches": plots.in_patches(PICTURE, 4),
    "looked_at": plots.looked_at(PICTURE, {"rollout": torch.tensor([[1.0, 0.0], [0.5, 0.2]])}),
    "position_similarity": plots.position_similarity(COSINES, 2, 3),
    "patch_filters": plots.patch_filters(FILTERS, 4),
    "attention_maps": plots.attention_maps(IMAGES, MAPS),
    "deletions": plots.deletions(ORDERS),
    "other_sizes": plots.other_sizes(SIZES),
    "patch_lengths": plots.patch_lengths(
        {"none": [[0.2, 0.8], [0.4, 0.6]], "4 registers": [[0.5, 0.5]]}, 3.0
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_draws(name):
    figure = FIGURES[name]
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_against_training_images_draws_means_and_reaches_from_the_worst_run_to_the_best():
    (axis,) = FIGURES["against_training_images"].axes
    line, _, (bar,) = axis.containers[0]
    assert list(line.get_ydata()) == pytest.approx([75, 95])
    (_, low), (_, high) = bar.get_segments()[0]
    assert (low, high) == pytest.approx((70, 80))
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["100", "4,000"]
    with pytest.raises(KeyError, match="guessing"):
        plots.against_training_images({"guessing": {100: [0.1]}})


def test_trained_longer_draws_means_and_reaches_from_the_best_run_to_the_worst():
    (axis,) = FIGURES["trained_longer"].axes
    line, _, (bar,) = axis.containers[0]
    assert list(line.get_ydata()) == pytest.approx([3.5, 2.25])
    assert [tuple(end[1] for end in ends) for ends in bar.get_segments()] == [(3, 4), (2, 2.5)]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["600", "800", "1,500"]


def test_in_patches_sets_them_apart_and_changes_no_pixel():
    (axis,) = FIGURES["in_patches"].axes
    shown = torch.tensor(axis.images[0].get_array())
    assert shown.shape == (11, 11, 3)
    assert torch.equal(shown[7:, :4], PICTURE[4:, :4])
    assert (shown[4:7] == 1).all()


def test_looked_at_leaves_the_patch_of_the_largest_weight_as_it_is():
    plain, lit = (torch.tensor(axis.images[0].get_array()) for axis in FIGURES["looked_at"].axes)
    assert torch.equal(plain, PICTURE)
    assert torch.equal(lit[:4, :4], PICTURE[:4, :4])
    assert torch.allclose(lit[:4, 4:], 0.12 * PICTURE[:4, 4:])


def test_position_similarity_has_a_map_a_patch_and_marks_it():
    *axes, _ = FIGURES["position_similarity"].axes
    assert len(axes) == 6
    for n, axis in enumerate(axes):
        assert torch.allclose(torch.tensor(axis.images[0].get_array()).float(), COSINES[n].reshape(2, 3))
        (mark,) = axis.patches
        assert (mark.get_y() + 0.5, mark.get_x() + 0.5) == divmod(n, 3)


def test_patch_filters_has_a_picture_a_feature_with_zero_in_the_middle_of_its_scale():
    axes = FIGURES["patch_filters"].axes
    assert len(axes) == 8
    for axis, weights in zip(axes, FILTERS, strict=False):
        (image,) = axis.images
        assert torch.allclose(torch.tensor(image.get_array()).float(), weights)
        low, high = image.get_clim()
        assert -low == high == weights.abs().max()
    assert not axes[6].images
    assert not axes[7].images


def test_attention_maps_has_an_image_a_row_and_a_map_a_column():
    axes = FIGURES["attention_maps"].axes
    assert len(axes) == 9
    assert [axis.get_title() for axis in axes[:3]] == ["image", "block 1", "rollout"]
    for k in range(3):
        assert torch.allclose(torch.tensor(axes[3 * k].images[0].get_array()).float(), IMAGES[k, 0])
        shown = torch.tensor(axes[3 * k + 2].images[0].get_array()).float()
        assert torch.allclose(shown, MAPS["rollout"][k])


def test_deletions_has_a_line_an_order():
    (axis,) = FIGURES["deletions"].axes
    assert [list(line.get_ydata()) for line in axis.lines] == list(ORDERS.values())
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == list(ORDERS)
    assert axis.get_ylim()[0] == 0
    with pytest.raises(ValueError, match="zip"):
        plots.deletions({str(k): [1.0] for k in range(6)})


def test_other_sizes_has_a_panel_a_test_and_reaches_from_the_worst_run_to_the_best():
    first, second = FIGURES["other_sizes"].axes
    assert [axis.get_title() for axis in (first, second)] == ["enlarged", "moved"]
    line, _, (bar,) = first.containers[0]
    assert list(line.get_ydata()) == [93, 30]
    (_, low), (_, high) = bar.get_segments()[1]
    assert (low, high) == pytest.approx((20, 40))
    assert len(first.containers) == 2
    assert list(second.containers[0][0].get_ydata()) == [70]
    with pytest.raises(KeyError, match="guessing"):
        plots.other_sizes({"": {"guessing": {28: [0.1]}}})


def test_patch_lengths_draws_each_run_and_their_mean_in_per_cent():
    (axis,) = FIGURES["patch_lengths"].axes
    drawn = [list(stairs.get_data().values) for stairs in axis.patches]
    assert drawn == [pytest.approx(x) for x in ([20, 80], [40, 60], [30, 70], [50, 50], [50, 50])]
    assert list(axis.patches[0].get_data().edges) == [0, 1.5, 3]
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == ["none", "4 registers"]
