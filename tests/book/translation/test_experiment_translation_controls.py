"""Controls of the chapter on translation: positions, other divisions of the pairs, and the record."""

import pytest
import torch

from tformer_book.kit.records import recorded
from tformer_book.translation.data.translation_set import TranslationSet
from tformer_lib.core.positions import sinusoidal


@pytest.fixture(scope="module")
def controls():
    """The script."""
    from tformer_book.translation.experiments import translation_controls

    return translation_controls


def test_positions_start_again_at_the_begin_token(controls):
    width, sources = controls.decoder_only.WIDTH, torch.tensor([3, 1])
    placed = controls.Restarting(20, prefix=False).placed(torch.zeros(2, 6, width), sources)
    table = sinusoidal(6, width)
    torch.testing.assert_close(placed, table[torch.tensor([[0, 1, 2, 0, 1, 2], [0, 0, 1, 2, 3, 4]])])


def test_the_careless_split_divides_the_same_pairs(controls):
    pairs = [(f"{n} miles", f"{n} Meilen") for n in range(60)]
    data = TranslationSet(pairs[:40], pairs[40:50], pairs[50:], vocab_size=300)
    split = controls.carelessly_split(data)
    assert [len(split.part(part)) for part in ("train", "validation", "test")] == [40, 10, 10]
    assert sorted(split.train + split.validation + split.test) == sorted(pairs)
    assert split.test != data.test


def test_fewer_phrases_leave_what_is_held_out(controls, monkeypatch):
    pairs = [(f"{n} miles", f"{n} milles") for n in range(60)]
    full = TranslationSet(pairs[:40], pairs[40:50], pairs[50:], vocab_size=300)
    monkeypatch.setattr(controls, "translation_set", lambda kind, language: full)
    fewer = controls.fewer_phrases(10)
    assert len(set(fewer.train)) == 10
    assert set(fewer.train) < set(full.train)
    assert (fewer.validation, fewer.test) == (full.validation, full.test)


def test_a_difference_is_that_of_the_scores(controls):
    true = ["the dog bit the man today", "it rains in the old town"] * 4
    worse = [*true[:-1], "it rains in the new town"]
    against = controls.differences(true, worse, true)
    assert against["gain"] > 0
    assert 0 < against["above zero"] < 1  # draws without the last sentence show none
    assert against["sd"] > 0


def test_the_record_has_every_part(controls):
    content = recorded("translation_controls")
    assert content["seeds"] == controls.SEEDS
    assert list(content["results"]) == list(controls.PARTS)
