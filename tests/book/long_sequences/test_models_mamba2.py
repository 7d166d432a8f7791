"""Mamba-2's layer: one token at a time or all at once, and the same as another implementation."""

import pytest
import torch

from tformer_book.long_sequences.models.mamba2 import Mamba2, MambaBlock
from tformer_lib.core.transformer import TransformerConfig

SIZES = {"d_state": 6, "d_head": 8, "chunk": 5}


def layer(**changes) -> Mamba2:
    torch.manual_seed(0)
    return Mamba2(16, **(SIZES | changes)).double()


def tokens(n=13) -> torch.Tensor:
    return torch.randn(2, n, 16, generator=torch.Generator().manual_seed(1)).double()


@pytest.mark.parametrize("d_conv", [1, 2, 4])
@pytest.mark.parametrize("parts", [[1] * 13, [5, 8], [12, 1]])
@torch.no_grad()
def test_a_text_in_parts_is_the_text_at_once(d_conv, parts):
    mamba, x = layer(d_conv=d_conv), tokens()
    past, outputs = None, []
    for part in x.split(parts, dim=1):
        y, past = mamba.read(part, past)
        outputs.append(y)
        assert past.window.shape == (2, d_conv - 1, 32 + 2 * 6)
        assert past.states.shape == (2, 4, 6, 8)
    torch.testing.assert_close(torch.cat(outputs, dim=1), mamba(x))


@torch.no_grad()
def test_chunks_do_not_matter_and_nobody_sees_the_future():
    x, changed = tokens(), tokens()
    changed[:, 7:] += 1.0
    one, other = layer(chunk=1), layer(chunk=64)
    torch.testing.assert_close(one(x), other(x))
    torch.testing.assert_close(one(x)[:, :7], one(changed)[:, :7])
    assert not torch.allclose(one(x)[:, 7:], one(changed)[:, 7:])


@torch.no_grad()
def test_it_is_the_recurrence_of_its_equation():
    """Written out for one text, head by head, without the library's chunks."""
    mamba, x = layer(), tokens()[:1]
    z, vkq, dt = mamba.W_in(x[0]).split((32, 44, 4), dim=-1)
    padded = torch.cat((torch.zeros(3, 44).double(), vkq))
    mixed = torch.stack(
        [
            (padded[n : n + 4] * mamba.conv.weight[:, 0].T).sum(dim=0) + mamba.conv.bias
            for n in range(len(vkq))
        ]
    )
    mixed = mixed * mixed.sigmoid()
    dt = (1 + (dt + mamba.dt_bias).exp()).log()
    outputs = torch.zeros(13, 32).double()
    for h in range(4):
        state = torch.zeros(8, 6).double()
        for n in range(13):
            v, k, q = mixed[n, 8 * h : 8 * h + 8], mixed[n, 32:38], mixed[n, 38:]
            state = (-mamba.log_decay[h].exp() * dt[n, h]).exp() * state + dt[n, h] * torch.outer(v, k)
            outputs[n, 8 * h : 8 * h + 8] = state @ q + mamba.skip[h] * v
    outputs = outputs * z * z.sigmoid()
    outputs = outputs / (outputs.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * mamba.norm.weight
    torch.testing.assert_close(mamba(x)[0], outputs @ mamba.W_out.weight.T)


@torch.no_grad()
def test_it_is_the_layer_of_transformers():
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    sizes = {"num_heads": 4, "head_dim": 8, "hidden_size": 16, "state_size": 6, "n_groups": 1}
    config = Mamba2Config(**sizes, chunk_size=5, vocab_size=10, num_hidden_layers=1)
    torch.manual_seed(0)
    theirs, mine = Mamba2Mixer(config, 0).eval(), layer().float()
    theirs.A_log.copy_(torch.rand(4))
    theirs.norm.weight.copy_(torch.rand(32))
    theirs.D.copy_(torch.rand(4))
    pairs = (
        (mine.W_in, theirs.in_proj),
        (mine.conv, theirs.conv1d),
        (mine.norm, theirs.norm),
        (mine.W_out, theirs.out_proj),
    )
    for my, their in pairs:
        my.load_state_dict(their.state_dict())
    for name, their in (("dt_bias", theirs.dt_bias), ("log_decay", theirs.A_log), ("skip", theirs.D)):
        getattr(mine, name).copy_(their)
    x = tokens().float()
    torch.testing.assert_close(mine(x), theirs(x), rtol=1e-4, atol=1e-5)


def test_gates_that_forget_all_are_no_nan():
    mamba = layer()
    with torch.no_grad():
        mamba.log_decay.fill_(10.0)
        mamba.dt_bias.fill_(5.0)
    y = mamba(tokens())
    assert y.isfinite().all()
    y.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in mamba.parameters())


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="does not divide"):
        Mamba2(16, d_head=5)
    with pytest.raises(ValueError, match="d_conv"):
        Mamba2(16, d_conv=0)
    with pytest.raises(ValueError, match="15"):
        layer()(torch.zeros(1, 3, 15).double())


def test_a_block_has_the_layer_in_the_place_of_attention():
    config = TransformerConfig(d_model=16, n_heads=2, n_blocks=1)
    block = MambaBlock(config, Mamba2(16, **SIZES))
    x = tokens().float()
    after = x + block.layer(block.self_attention_norm(x))
    torch.testing.assert_close(block(x), after + block.mlp(block.mlp_norm(after)))
    with pytest.raises(ValueError, match="no context, mask or cache"):
        block(x, None, torch.ones(13, 13, dtype=torch.bool))
