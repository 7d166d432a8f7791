"""`record_attention`: the weights that the forward pass used, by readable names, and no trace afterwards."""

import math

import pytest
import torch
from torch import nn

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, causal_mask, record_attention
from tformer_lib.core.attention import Attend, Backend, FusedAttend
from tformer_lib.core.positions import ALiBi

B, N, S, D, H = 2, 4, 6, 8, 2


class EncoderDecoder(nn.Module):
    def __init__(self, make_backend=None):
        super().__init__()
        self.encoder = Transformer(
            TransformerConfig(d_model=D, n_heads=H, n_blocks=2), make_backend=make_backend
        )
        self.decoder = Transformer(
            TransformerConfig(d_model=D, n_heads=H, n_blocks=2, cross_attention=True),
            make_backend=make_backend,
        )

    def forward(self, source, target):
        return self.decoder(target, self.encoder(source), causal_mask(target.shape[1]))


def weights_by_hand(layer, x, context, mask=None):
    q, k = layer.W_q(x), layer.W_k(context)
    heads = []
    for h in range(layer.n_heads):
        part = slice(h * layer.d_head, (h + 1) * layer.d_head)
        scores = q[..., part] @ k[..., part].transpose(1, 2) / math.sqrt(layer.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        heads.append(scores.softmax(-1))
    return torch.stack(heads, dim=1)


def hook_count(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


@pytest.mark.parametrize("masked", [False, True])
def test_weights_are_those_computed_by_hand(masked):
    layer = MultiHeadAttention(D, H).double()
    x = torch.randn(B, N, D, dtype=torch.float64)
    mask = causal_mask(N) if masked else None
    with record_attention(layer) as weights:
        layer(x, mask=mask)
    assert list(weights) == ["attention"]
    expected = weights_by_hand(layer, x, x, mask)
    torch.testing.assert_close(weights["attention"], expected, rtol=0, atol=1e-10)
    assert not weights["attention"].requires_grad


def test_an_encoder_decoder():
    model = EncoderDecoder()
    source, target = torch.randn(B, S, D), torch.randn(B, N, D)
    expected = model(source, target)
    with record_attention(model) as weights:
        assert weights == {}
        out = model(source, target)
    assert torch.equal(out, expected)
    shapes = {name: tuple(w.shape) for name, w in weights.items()}
    assert shapes == {
        "encoder.blocks.0.self_attention": (B, H, S, S),
        "encoder.blocks.1.self_attention": (B, H, S, S),
        "decoder.blocks.0.self_attention": (B, H, N, N),
        "decoder.blocks.0.cross_attention": (B, H, N, S),
        "decoder.blocks.1.self_attention": (B, H, N, N),
        "decoder.blocks.1.cross_attention": (B, H, N, S),
    }
    block = model.decoder.blocks[0]
    first = block.self_attention_norm(target)
    by_hand = weights_by_hand(block.self_attention, first, first, causal_mask(N))
    torch.testing.assert_close(weights["decoder.blocks.0.self_attention"], by_hand)
    inner = target + block.self_attention(first, mask=causal_mask(N))
    by_hand = weights_by_hand(block.cross_attention, block.cross_attention_norm(inner), model.encoder(source))
    torch.testing.assert_close(weights["decoder.blocks.0.cross_attention"], by_hand)


def test_recording_changes_neither_outputs_nor_gradients():
    model = Transformer(TransformerConfig(d_model=D, n_heads=H, n_blocks=2))
    x = torch.randn(B, N, D)
    plain = model(x)
    plain.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with record_attention(model):
        out = model(x)
        out.sum().backward()
    assert torch.equal(out, plain)
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True))


def test_weights_are_recorded_before_dropout():
    layer = MultiHeadAttention(D, H, dropout=0.9)
    with record_attention(layer) as weights:
        layer(torch.randn(B, N, D))
    torch.testing.assert_close(weights["attention"].sum(-1), torch.ones(B, H, N))


def test_the_hooks_go_and_the_weights_stay():
    model = EncoderDecoder()
    assert hook_count(model) == 0
    with record_attention(model) as weights:
        assert hook_count(model) > 0
        model(torch.randn(B, S, D), torch.randn(B, N, D))
    assert hook_count(model) == 0
    kept = weights["encoder.blocks.0.self_attention"]
    model(torch.randn(B, S, D), torch.randn(B, N, D))
    assert weights["encoder.blocks.0.self_attention"] is kept


def test_the_hooks_go_after_an_error_in_the_block():
    model = Transformer(TransformerConfig(d_model=D, n_heads=H, n_blocks=1))
    with pytest.raises(RuntimeError, match="mine"), record_attention(model):
        raise RuntimeError("mine")
    assert hook_count(model) == 0


def test_an_error_in_a_forward_does_not_confuse_the_next():
    model = Transformer(TransformerConfig(d_model=D, n_heads=H, n_blocks=2))
    x = torch.randn(B, N, D)
    with record_attention(model) as weights:
        with pytest.raises(ValueError, match="mask"):
            model(x, mask=causal_mask(N + 1))
        model.blocks[0].self_attention.backend(*torch.randn(3, B, H, N, D // H))  # outside any layer
        assert weights == {}
        model(x)
    assert set(weights) == {"blocks.0.self_attention", "blocks.1.self_attention"}
    assert hook_count(model) == 0


def test_a_second_run_replaces_the_first():
    layer = MultiHeadAttention(D, H)
    with record_attention(layer) as weights:
        layer(torch.randn(B, N, D))
        layer(torch.randn(1, S, D))
    assert weights["attention"].shape == (1, H, S, S)


def test_two_recordings_at_once():
    model = EncoderDecoder()
    with record_attention(model) as outer, record_attention(model.encoder) as inner:
        model(torch.randn(B, S, D), torch.randn(B, N, D))
    assert set(inner) == {"blocks.0.self_attention", "blocks.1.self_attention"}
    for name, w in inner.items():
        assert torch.equal(w, outer[f"encoder.{name}"])
    assert hook_count(model) == 0


def test_layers_that_share_a_backend_keep_their_own_weights():
    shared = Attend()
    model = Transformer(TransformerConfig(d_model=D, n_heads=H, n_blocks=2), make_backend=lambda: shared)
    x = torch.randn(B, N, D)
    with record_attention(model) as weights:
        model(x)
    assert len(weights) == 2
    first = model.blocks[0].self_attention_norm(x)
    expected = weights_by_hand(model.blocks[0].self_attention, first, first)
    torch.testing.assert_close(weights["blocks.0.self_attention"], expected)
    assert not torch.allclose(weights["blocks.1.self_attention"], expected)
    shared(*torch.randn(3, B, H, N, D // H))  # outside a layer
    assert hook_count(model) == 0


def test_a_layer_under_two_names_has_the_first():
    layer = MultiHeadAttention(D, H)
    model = nn.Sequential(layer, nn.Identity(), layer)
    with record_attention(model) as weights:
        model(torch.randn(B, N, D))
    assert list(weights) == ["0"]


def test_a_score_bias_is_seen():
    layer = MultiHeadAttention(D, H, backend=Attend(score_bias=ALiBi(H)))
    with torch.no_grad():
        layer.W_q.weight.zero_()  # all scores are then nought, and the bias alone decides
    with record_attention(layer) as weights:
        layer(torch.randn(B, N, D))
    torch.testing.assert_close(weights["attention"][0], ALiBi(H)(N, N).softmax(-1))


def test_fused_layers_are_refused_by_name():
    with (
        pytest.raises(TypeError, match=r"encoder\.blocks\.0\.self_attention has a FusedAttend.*Attend"),
        record_attention(EncoderDecoder(make_backend=FusedAttend)),
    ):
        pass
    with (
        pytest.raises(TypeError, match="attention has a FusedAttend"),
        record_attention(MultiHeadAttention(D, H, backend=FusedAttend())),
    ):
        pass


def test_one_fused_layer_leaves_no_hook_on_the_others():
    backends = iter([Attend(), FusedAttend()])
    model = Transformer(
        TransformerConfig(d_model=D, n_heads=H, n_blocks=2), make_backend=lambda: next(backends)
    )
    with pytest.raises(TypeError, match=r"blocks\.1"), record_attention(model):
        pass
    assert hook_count(model) == 0


def test_an_unknown_backend_is_refused():
    class Mean(Backend):
        def attend(self, q, k, v, mask):
            return v.mean(-2, keepdim=True).expand_as(q)

    layer = MultiHeadAttention(D, H, backend=Mean())
    with pytest.raises(TypeError, match="a Mean, which never shows"), record_attention(layer):
        pass


def test_a_model_without_attention_is_refused():
    with (
        pytest.raises(ValueError, match="no MultiHeadAttention in this Linear"),
        record_attention(nn.Linear(2, 2)),
    ):
        pass
