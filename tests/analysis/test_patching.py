"""Grids of patches: each cell is one patch, and both directions measure what they say."""

import pytest
import torch

from tformer_lib import GPT, TransformerConfig
from tformer_lib.analysis import patch, patching_effect, patching_grid, record
from tformer_lib.core.positions import LearnedPositions

B, N, VOCAB = 3, 5, 11
NAMES = ["transformer.blocks.0.input", "transformer.blocks.0", "transformer.blocks.1"]


def gpt():
    torch.manual_seed(0)
    config = TransformerConfig(d_model=12, n_heads=3, n_blocks=2)
    return GPT(config, VOCAB, positions=LearnedPositions(N, 12)).double()


def runs():
    generator = torch.Generator().manual_seed(0)
    clean = torch.randint(1, VOCAB, (B, N), generator=generator)
    corrupted = clean.clone()
    corrupted[:, 2] = 0
    return clean, corrupted


def last(logits):
    return logits[:, -1, 1] - logits[:, -1, 2]


def test_each_cell_is_one_patch():
    model, (clean, corrupted) = gpt().eval(), runs()
    grid = patching_grid(model, (corrupted,), (clean,), NAMES, last)
    assert grid.shape == (len(NAMES), N, B)
    with torch.no_grad(), record(model, NAMES) as given:
        model(clean)
    for name, row in zip(NAMES, grid, strict=True):
        for place in range(N):

            def put(activation, name=name, place=place):
                return torch.where(
                    (torch.arange(N) == place)[None, :, None],
                    given[name],
                    activation,
                )

            with torch.no_grad(), patch(model, {name: put}):
                torch.testing.assert_close(row[place], last(model(corrupted)))


def test_only_the_changed_word_counts_at_first_and_only_the_last_place_in_the_end():
    model, (clean, corrupted) = gpt(), runs()
    grid = patching_grid(model, (corrupted,), (clean,), NAMES, last)
    assert model.training  # as it was
    model.eval()
    with torch.no_grad():
        effect = patching_effect(grid, last(model(corrupted)), last(model(clean)))
    for row, place in ((0, 2), (2, N - 1)):
        wanted = torch.zeros(N, B, dtype=torch.float64)
        wanted[place] = 1
        torch.testing.assert_close(effect[row], wanted)
    assert effect[1].abs().amax(dim=1)[[0, 1]].max() < 1e-9  # they stand before it


def test_noising_one_place_is_denoising_all_others():
    model, (clean, corrupted) = gpt().eval(), runs()
    name = NAMES[1]
    with torch.no_grad():
        first, second = last(model(clean)), last(model(corrupted))
        with record(model, [name]) as given:
            model(clean)
    noised = patching_effect(patching_grid(model, (clean,), (corrupted,), [name], last)[0], first, second)
    for place in range(N):
        others = torch.arange(N) != place

        def put(activation, others=others):
            return torch.where(others[None, :, None], given[name], activation)

        with torch.no_grad(), patch(model, {name: put}):
            rest = patching_effect(last(model(corrupted)), second, first)
        torch.testing.assert_close(noised[place], 1 - rest)


def test_a_run_patched_from_itself_stays_what_it_was():
    model, (clean, _) = gpt().eval(), runs()
    grid = patching_grid(model, (clean,), (clean,), NAMES, last)
    torch.testing.assert_close(grid, last(model(clean)).detach().expand_as(grid))


def test_what_cannot_be_measured_is_refused():
    model, (clean, corrupted) = gpt(), runs()
    with pytest.raises(ValueError, match="nothing to record"):
        patching_grid(model, (clean,), (corrupted,), [], last)
    with pytest.raises(ValueError, match="has no module"):
        patching_grid(model, (clean,), (corrupted,), ["transformer.block.0"], last)
    line = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"a grid needs activations \(B, N, D\)"):
        patching_grid(line, (torch.ones(1, 2),), (torch.ones(1, 2),), ["0"], last)
    with pytest.raises(ValueError, match="both runs need one shape"):
        patching_grid(model, (clean[:, :4],), (corrupted,), NAMES, last)
    with pytest.raises(ValueError, match="one number for each of 3"):
        patching_grid(model, (clean,), (corrupted,), NAMES, lambda logits: logits.mean())
    with pytest.raises(ValueError, match="no effect can be measured"):
        patching_effect(torch.ones(2, 3), torch.ones(3), torch.ones(3))
