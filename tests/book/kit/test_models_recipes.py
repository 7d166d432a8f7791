"""Recipes: their sizes, first weights, and one change at a time."""

import itertools
from dataclasses import fields

import pytest
import torch

from tformer_book.kit.models.recipes import BASELINE, BATCH, CONTEXT, LADDER, MODERN, SIDE
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.language import language_loss
from tformer_lib.training import count_parameters, fit, seed_everything

ALL = pytest.mark.parametrize("recipe", [*LADDER, *SIDE], ids=lambda recipe: recipe.name)


@ALL
def test_each_builds_and_takes_a_step(recipe):
    seed_everything(0)
    model = recipe.build(11, 8)
    batches = RandomWindows(torch.arange(99) % 11, batch=2, length=8, steps=2)
    history = fit(model, language_loss, batches, **recipe.options(2))
    assert len(history.loss) == 2


@ALL
def test_all_are_as_large_but_for_shared_heads(recipe):
    size, reference = count_parameters(recipe.build(65)), count_parameters(BASELINE.build(65))
    if recipe.config.n_kv_heads is None:
        assert size == pytest.approx(reference, rel=0.02)
    else:
        assert 0.85 * reference < size < reference


def test_the_baseline_has_nanogpts_size():
    blocks = 4 * (12 * 128**2 + 2 * 128)
    assert count_parameters(BASELINE.build(65)) == (65 + CONTEXT) * 128 + blocks + 128
    assert BATCH == 12


def test_rungs_differ_in_one_thing():
    assert (LADDER[0], LADDER[-1]) == (BASELINE, MODERN)
    names = [recipe.name for recipe in (*LADDER, *SIDE)]
    assert len(set(names)) == len(names)
    for below, above in itertools.pairwise(LADDER):
        changed = [f.name for f in fields(below) if getattr(below, f.name) != getattr(above, f.name)]
        assert len(changed) == 2, (above.name, changed)  # the name, and one more
        assert "name" in changed


def test_first_weights():
    seed_everything(0)
    first = BASELINE.build(65)
    assert first.embed.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert first.max_len == CONTEXT
    model = MODERN.build(65)
    assert model.max_len is None
    assert not model.transformer.blocks[2].mlp.W_out.weight.any()


def test_short_runs_warm_up_for_a_tenth():
    assert BASELINE.options(2000)["warmup"] == 100
    assert BASELINE.options(150)["warmup"] == 15
    assert BASELINE.options(150)["steps"] == 150
    assert (BASELINE.fit["steps"], MODERN.fit["steps"]) == (2000, 250)
