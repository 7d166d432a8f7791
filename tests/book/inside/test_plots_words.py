"""The figure on patching number words: what it draws is what it is given."""

import pytest
import torch

from tformer_book.inside.plots.words import patching_maps
from tformer_book.kit.plot_style import BookFigure

PLACES, LAYERS = ["forty", "seven", "end"], ["start", "block 1"]
GRIDS = {
    title: {kind: torch.tensor([[0.0, 1.0, 0.0], [-0.1, 0.72, 0.28]]) for kind in ("units", "tens")}
    for title in ("all, ", "end, ")
}


@pytest.fixture(scope="module")
def figure():
    return patching_maps(GRIDS, PLACES, LAYERS)


def test_is_a_figure_of_the_book_with_names_at_its_places(figure):
    assert isinstance(figure, BookFigure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    maps = figure.axes[:4]
    assert [axis.get_title(loc="left") for axis in maps] == [
        "all, units",
        "all, tens",
        "end, units",
        "end, tens",
    ]
    assert [tick.get_text() for tick in maps[-1].get_xticklabels()] == PLACES
    assert [tick.get_text() for tick in maps[0].get_yticklabels()] == LAYERS


def test_numbers_stand_where_there_is_an_effect(figure):
    for axis in figure.axes[:4]:
        (image,) = axis.images
        assert image.get_array().shape == (2, 3)
        assert {text.get_text(): text.get_position() for text in axis.texts} == {
            "1": (1, 0),
            ".7": (1, 1),
            ".3": (2, 1),
        }
