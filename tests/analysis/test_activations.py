"""Activations by name: what is recorded, replaced and left as it was."""

import pytest
import torch

from tformer_lib import GPT, TransformerConfig
from tformer_lib.analysis import ablate, patch, record
from tformer_lib.core.positions import LearnedPositions

B, N, VOCAB = 2, 6, 11
BLOCKS = "transformer.blocks"


def gpt(**options):
    torch.manual_seed(0)
    config = TransformerConfig(d_model=12, n_heads=3, n_blocks=2, **options)
    return GPT(config, VOCAB, positions=LearnedPositions(N, 12)).eval()


def tokens():
    return torch.randint(VOCAB, (B, N), generator=torch.Generator().manual_seed(0))


def hook_count(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_outputs_and_inputs_are_recorded_while_the_model_runs():
    model = gpt()
    names = [
        "embed",
        f"{BLOCKS}.0",
        f"{BLOCKS}.1.mlp",
        f"{BLOCKS}.1.mlp.input",
        "transformer.final_norm.input",
    ]
    with record(model, names) as seen:
        assert seen == {}
        logits = model(tokens())
    assert set(seen) == set(names)
    torch.testing.assert_close(seen["embed"], model.embed(tokens()))
    block = model.transformer.blocks[1]
    torch.testing.assert_close(block.mlp(seen[f"{BLOCKS}.1.mlp.input"]), seen[f"{BLOCKS}.1.mlp"])
    last = model.transformer.final_norm(seen["transformer.final_norm.input"])
    torch.testing.assert_close(last @ model.embed.weight.T, logits)
    assert not any(value.requires_grad for value in seen.values())
    assert hook_count(model) == 0


def test_patching_with_what_was_recorded_carries_the_answer_over():
    model, here = gpt(), tokens()
    there = (here + 1) % VOCAB
    with record(model, [f"{BLOCKS}.1"]) as seen:
        other = model(there)
    with patch(model, {f"{BLOCKS}.1": seen[f"{BLOCKS}.1"]}):
        torch.testing.assert_close(model(here), other)
    assert not torch.allclose(model(here), other)
    assert hook_count(model) == 0


def test_a_function_may_change_one_place():
    model, here = gpt(), tokens()

    def last_place(x):
        x = x.clone()
        x[:, -1] = 0
        return x

    with patch(model, {f"{BLOCKS}.0": last_place}):
        changed = model(here)
    whole = model(here)
    torch.testing.assert_close(changed[:, :-1], whole[:, :-1])  # the last token is read by itself alone
    assert not torch.allclose(changed[:, -1], whole[:, -1])


def test_inputs_can_be_patched():
    model, here = gpt(), tokens()
    name = f"{BLOCKS}.0.self_attention.W_o"
    with patch(model, {f"{name}.input": torch.zeros_like}), record(model, [name]) as seen:
        model(here)
    torch.testing.assert_close(seen[name], model.get_submodule(name).bias.expand(B, N, 12))


def test_a_patch_is_what_later_hooks_record():
    model = gpt()
    with patch(model, {"embed": torch.zeros_like}), record(model, ["embed"]) as seen:
        model(tokens())
    assert (seen["embed"] == 0).all()


def test_zero_and_mean_ablation():
    model, here = gpt(), tokens()
    name = f"{BLOCKS}.0.mlp"
    with record(model, [name]) as seen:
        model(here)
    mean = seen[name].mean(dim=(0, 1))
    with ablate(model, [name]):
        zero = model(here)
    with patch(model, {name: torch.zeros(B, N, 12)}):
        torch.testing.assert_close(zero, model(here))
    with ablate(model, [name], "mean"):
        own = model(here)
    with ablate(model, [name], {name: mean}):
        torch.testing.assert_close(own, model(here))
    assert not torch.allclose(own, zero)


def test_hooks_go_after_an_error():
    model = gpt()
    with pytest.raises(RuntimeError, match="mine"), patch(model, {"embed": torch.zeros_like}):
        raise RuntimeError("mine")
    with pytest.raises(RuntimeError, match="mine"), record(model, ["embed"]):
        raise RuntimeError("mine")
    assert hook_count(model) == 0


@pytest.mark.parametrize("use", [lambda m, n: record(m, [n]), lambda m, n: patch(m, {n: torch.zeros_like})])
@pytest.mark.parametrize("name", ["blocks.9", "", ".input", f"{BLOCKS}.2.mlp", "transformer.blocks.0.nlp"])
def test_an_unknown_name_is_refused(use, name):
    model = gpt()
    with pytest.raises(ValueError, match="has no module"), use(model, name):
        pass
    assert hook_count(model) == 0


def test_near_names_are_told():
    with pytest.raises(ValueError, match=r"there are transformer\.blocks\.0\.mlp, "), record(gpt(), ["mlp"]):
        pass


def test_nothing_to_do_is_refused():
    with pytest.raises(ValueError, match="nothing to record"), record(gpt(), []):
        pass
    with pytest.raises(ValueError, match="nothing to patch"), patch(gpt(), {}):
        pass
    with pytest.raises(ValueError, match='"zero", "mean" or a dict'), ablate(gpt(), ["embed"], "median"):
        pass
    with pytest.raises(ValueError, match=r"in the place of embed"), ablate(gpt(), ["embed"], {}):
        pass


def test_replacements_of_another_kind_or_shape_are_refused():
    model = gpt()
    with pytest.raises(TypeError, match="embed can be replaced"), patch(model, {"embed": 3}):
        pass
    with (
        patch(model, {"embed": torch.zeros(1, 2)}),
        pytest.raises(ValueError, match=r"embed has the shape \(2, 6, 12\), its replacement \(1, 2\)"),
    ):
        model(tokens())
    with (
        patch(model, {"embed": lambda _: None}),
        pytest.raises(TypeError, match="must be replaced by a tensor"),
    ):
        model(tokens())
    assert hook_count(model) == 0


def test_an_activation_that_is_no_tensor_is_refused():
    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x

    model = torch.nn.Sequential(Pair())
    with record(model, ["0"]), pytest.raises(TypeError, match="0 is no tensor"):
        model(torch.zeros(1))
