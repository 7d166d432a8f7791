"""A cache of a fixed size: what is kept is what a list of keys would keep."""

from functools import partial

import pytest
import torch

from tformer_book.long_sequences.eviction import KeepFew, chance, heavy, last, sinks
from tformer_lib.core.attention import Attend
from tformer_lib.efficient.sliding import SlidingWindow


def qkv(heads=3, n=20):
    draw = torch.Generator().manual_seed(0)
    return torch.randn(3, 2, heads, n, 4, generator=draw).double()


def with_a_list(q, k, v, budget, recent):
    """Heavy hitters of one head, with keys that are removed from a list: the reference."""
    places, received, outputs = [], {}, []
    for n in range(len(q)):
        places.append(n)
        received[n] = 0.0
        weights = (k[places] @ q[n] / 2).softmax(dim=0)
        outputs.append(weights @ v[places])
        for place, weight in zip(places, weights.tolist(), strict=True):
            received[place] += weight
        if len(places) == budget:
            places.remove(min((p for p in places if p <= n - recent), key=received.get))
    return torch.stack(outputs)


def test_heavy_hitters_are_those_of_a_list():
    q, k, v = qkv()
    y = KeepFew(6, partial(heavy, recent=3))(q, k, v)
    for b in range(2):
        for h in range(3):
            torch.testing.assert_close(y[b, h], with_a_list(q[b, h], k[b, h], v[b, h], 6, 3))


@pytest.mark.parametrize("worth", [last, sinks, partial(heavy, recent=2), chance])
def test_with_room_for_all_it_is_causal_attention(worth):
    q, k, v = qkv()
    causal = torch.ones(20, 20, dtype=torch.bool).tril()
    torch.testing.assert_close(KeepFew(20, worth)(q, k, v, causal), Attend()(q, k, v, causal))


def test_last_is_a_window_and_sinks_stay():
    q, k, v = qkv()
    window = SlidingWindow(6, causal=True).pattern(20)
    torch.testing.assert_close(KeepFew(6, last)(q, k, v), Attend()(q, k, v, window))
    causal = torch.ones(20, 20, dtype=torch.bool).tril()
    kept = SlidingWindow(4, causal=True).pattern(20) | causal & (torch.arange(20) < 2)
    y = KeepFew(6, partial(sinks, first=2))(q, k, v)
    torch.testing.assert_close(y, Attend()(q, k, v, kept))


@pytest.mark.parametrize("worth", [partial(heavy, recent=2), chance])
def test_heads_that_share_keys_throw_the_same_away(worth):
    q, k, v = qkv(heads=4)
    k, v = (x[:, :2].repeat_interleave(2, dim=1) for x in (k, v))
    values = torch.eye(20).double().expand(2, 4, 20, 20)  # which keys are read
    torch.manual_seed(0)
    read = KeepFew(5, worth, shared=2)(q, k, values) > 0
    assert read[:, 0::2].equal(read[:, 1::2])
    assert read.sum(dim=-1).max() == 5
    assert worth is not chance or not read[:, 0].equal(read[:, 2])


def test_what_does_not_fit_is_refused():
    q, k, v = qkv()
    with pytest.raises(ValueError, match="budget"):
        KeepFew(0, last)
    with pytest.raises(ValueError, match="groups of 2"):
        KeepFew(4, last, shared=2)(q, k, v)
    with pytest.raises(ValueError, match="a query and a key"):
        KeepFew(4, last)(q[..., :5, :], k, v)
    with pytest.raises(ValueError, match="without padding"):
        KeepFew(4, last)(q, k, v, torch.arange(20)[None] > 2)
