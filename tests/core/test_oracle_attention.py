"""`attention`, both backends and the multi-head layer against PyTorch's own."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tformer_lib import MultiHeadAttention, attention, causal_mask, padding_mask
from tformer_lib.core.attention import Attend, FusedAttend

B, H, N, S, DH, DV = 3, 4, 5, 7, 6, 2
D = H * DH

MASKS = {
    "none": None,
    "queries by keys": torch.rand(N, S, generator=torch.Generator().manual_seed(1)) < 0.6,
    "padding": (torch.arange(S) < torch.tensor([7, 4, 2])[:, None])[:, None, None, :],
    "everything": torch.rand(B, H, N, S, generator=torch.Generator().manual_seed(2)) < 0.6,
}
for _mask in MASKS.values():
    if _mask is not None:
        _mask[..., 0] = True  # PyTorch's layers make NaN of a query that sees no key; see test_empty.py


def backends():
    return [
        pytest.param(lambda q, k, v, m: attention(q, k, v, m)[0], id="attention"),
        pytest.param(lambda q, k, v, m: Attend()(q, k, v, m), id="Attend"),
        pytest.param(lambda q, k, v, m: FusedAttend()(q, k, v, m), id="FusedAttend"),
    ]


@pytest.mark.parametrize("compute", backends())
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_scaled_dot_product_attention(compute, mask, agree):
    q, k, v = torch.randn(B, H, N, DH), torch.randn(B, H, S, DH), torch.randn(B, H, S, DV)
    agree(compute(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


@pytest.mark.parametrize("compute", backends())
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (2, 1, 3)], ids=str)
def test_any_leading_axes(compute, batch, agree):
    q, k, v = torch.randn(*batch, N, DH), torch.randn(*batch, S, DH), torch.randn(*batch, S, DV)
    mask = MASKS["queries by keys"]
    agree(compute(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


@pytest.mark.parametrize("mask", [torch.tensor(True), torch.arange(S) < 4], ids=["scalar", "keys only"])
def test_masks_with_few_axes(mask, agree):
    q, k, v = torch.randn(B, H, N, DH), torch.randn(B, H, S, DH), torch.randn(B, H, S, DV)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(N, S))
    agree(Attend()(q, k, v, mask), expected)
    agree(FusedAttend()(q, k, v, mask), expected)


def test_numbers_one_can_check_by_hand():
    q = torch.tensor([[0.0, 2.0]])  # scores 0 and sqrt(2) after the division by sqrt(2)
    k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    v = torch.tensor([[1.0], [5.0]])
    out, weights = attention(q, k, v)
    second = 1 / (1 + torch.exp(torch.tensor(-(2.0**0.5))))
    torch.testing.assert_close(weights, torch.stack((1 - second, second))[None], rtol=0, atol=1e-12)
    torch.testing.assert_close(out, (1 - second + 5 * second)[None, None], rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_grouped_queries(backend, n_kv_heads, agree):
    ours = MultiHeadAttention(D, H, n_kv_heads=n_kv_heads, backend=backend())
    x, mask = torch.randn(B, N, D), causal_mask(N)
    q, k, v = (ours.split_heads(w(x)) for w in (ours.W_q, ours.W_k, ours.W_v))
    assert k.shape == v.shape == (B, n_kv_heads, N, DH)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    agree(ours(x, mask=mask), ours.W_o(heads.transpose(1, 2).reshape(B, N, D)))


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
@pytest.mark.parametrize("masked", ["none", "random", "causal", "padding", "causal and padding"])
def test_multihead_attention(backend, bias, cross, masked, copied, agree):
    ours, theirs = copied(
        MultiHeadAttention(D, H, bias=bias, backend=backend()),
        nn.MultiheadAttention(D, H, bias=bias, batch_first=True),
    )
    x = torch.randn(B, N, D)
    context = torch.randn(B, S, D) if cross else x
    n_keys = context.shape[1]
    lengths = torch.tensor([n_keys, 3, 1])
    tokens = (torch.arange(n_keys) < lengths[:, None]).long()  # 1 is a token, 0 is padding
    allowed = torch.rand(N, n_keys) < 0.5
    allowed[:, 0] = True
    causal = torch.ones(N, n_keys, dtype=torch.bool).tril()

    mask, attn_mask, key_padding = None, None, None
    if masked == "random":
        mask = allowed
    if masked.startswith("causal"):
        mask = causal
    attn_mask = None if mask is None else ~mask  # True means "not allowed" in nn.MultiheadAttention
    if masked.endswith("padding"):
        key_padding = tokens == 0
        padding = padding_mask(tokens, 0)
        mask = padding if mask is None else mask & padding

    expected, expected_weights = theirs(
        x, context, context, attn_mask=attn_mask, key_padding_mask=key_padding, average_attn_weights=False
    )
    agree(ours(x, context if cross else None, mask), expected)
    if backend is Attend:
        weights = []
        ours.backend.softmax.register_forward_hook(lambda *args: weights.append(args[-1]))
        ours(x, context if cross else None, mask)
        agree(weights[0], expected_weights)
