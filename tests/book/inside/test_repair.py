"""Direct effects add up to the logit, and a cut's parts to what it changes."""

import pytest
import torch

from tformer_book.inside.attribution import logit_attribution
from tformer_book.inside.circuits import repeated_tokens
from tformer_book.inside.models.attention_only import attention_only
from tformer_book.inside.repair import cut, effects, repair, stream_before
from tformer_lib import GPT, TransformerConfig
from tformer_lib.analysis import mask_heads
from tformer_lib.core.positions import Rotary

PERIOD = 6


def model(mlp=True):
    torch.manual_seed(0)
    config = TransformerConfig(
        d_model=16, n_heads=4, n_blocks=3, n_kv_heads=4 if not mlp else 2, norm="rms", bias=False
    )
    build = GPT if mlp else attention_only
    gpt = build(config, 20, rotary=Rotary(4), tied=mlp).double().eval()
    with torch.no_grad():
        for parameter in gpt.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return gpt


def tokens(seed=1):
    return repeated_tokens(20, 5, PERIOD, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("mlp", [True, False])
def test_effects_are_the_attribution_over_the_mean_of_all_logits(mlp):
    gpt, x = model(mlp), tokens()
    found = effects(gpt, x, PERIOD, stream=stream_before(gpt, x, 0))
    places = torch.arange(PERIOD, 2 * PERIOD - 1)
    right = logit_attribution(gpt, x, x.roll(-1, 1))
    means = [logit_attribution(gpt, x, torch.full_like(x, v)) for v in range(20)]
    for m in range(3):
        for h in range(4):
            part = right[f"head {m}.{h}"] - sum(one[f"head {m}.{h}"] for one in means) / 20
            torch.testing.assert_close(found.heads[:, m, h], part[:, places].mean(1))
    logits = gpt(x)[:, places]
    wanted = (logits.gather(2, x[:, places + 1, None])[..., 0] - logits.mean(-1)).mean(1)
    torch.testing.assert_close(found.logit, wanted)
    torch.testing.assert_close(found.frozen, wanted)  # with its own scale nothing is left
    assert found.mlps.any() == mlp


def test_later_blocks_alone_give_the_same():
    gpt, x = model(), tokens()
    whole = effects(gpt, x, PERIOD, stream=stream_before(gpt, x, 0))
    part = effects(gpt, x, PERIOD, stream=stream_before(gpt, x, 2), first=2)
    torch.testing.assert_close(part.heads, whole.heads[:, 2:])
    torch.testing.assert_close(part.loss, whole.loss)


def test_a_cut_with_zeros_is_a_masked_head():
    gpt, x = model(), tokens()
    stream, zeros = stream_before(gpt, x, 0), {m: torch.zeros(1, 2 * PERIOD, 16) for m in range(3)}
    with torch.no_grad(), mask_heads(gpt, [(1, 2), (0, 1)]):
        wanted = gpt(x)
    with torch.no_grad(), cut(gpt, [(1, 2), (0, 1)], zeros):
        torch.testing.assert_close(gpt(x), wanted)
        after = effects(gpt, x, PERIOD, stream=stream)
    torch.testing.assert_close(after.heads[:, 1, 2], torch.zeros(5, dtype=torch.double))


@pytest.mark.parametrize("mlp", [True, False])
def test_what_a_cut_changes_adds_up(mlp):
    gpt, x, other = model(mlp), tokens(), tokens(2)
    stream = stream_before(gpt, x, 0)
    clean = effects(gpt, x, PERIOD, stream=stream)
    instead = {1: torch.randn(5, 2 * PERIOD, 16, generator=torch.Generator().manual_seed(3)).double()}
    with cut(gpt, [(1, 0), (1, 3)], instead):
        after = effects(gpt, x, PERIOD, stream=stream, scale=clean.scale)
    change = repair(clean, after, [(1, 0), (1, 3)])
    total = change.own + change.heads.flatten(1).sum(1) + change.mlps.sum(1) + change.norm
    torch.testing.assert_close(total, change.logit)
    assert not change.heads[:, :2].any()  # heads of the same block read what they read before
    assert change.heads[:, 2].abs().max() > 1e-6
    assert not torch.equal(x, other)
