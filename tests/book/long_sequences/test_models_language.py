"""The small language model: what its keys see, and what a choice of keys leaves out."""

import pytest
import torch

from tformer_book.long_sequences.models import language
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.efficient.sparse import BlockSparse
from tformer_lib.models.language import language_loss

N, WIDTH = 24, 64


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def heads():
    return [torch.randn(3, 2, N, WIDTH // 2) for _ in range(3)]


CAUSAL = torch.ones(N, N, dtype=torch.bool).tril()


@pytest.mark.parametrize(
    "make", [lambda top: language.TopAttend(top), lambda top: language.IndexedAttend(WIDTH, top)]
)
@pytest.mark.parametrize("mask", [CAUSAL, None])
def test_all_keys_are_full_attention(make, mask):
    q, k, v = heads()
    torch.testing.assert_close(make(N)(q, k, v, mask), Attend()(q, k, v, CAUSAL), atol=1e-5, rtol=1e-5)
    few = make(4)
    assert not torch.allclose(few(q, k, v, mask), Attend()(q, k, v, CAUSAL))
    few.dense = True
    torch.testing.assert_close(few(q, k, v, mask), Attend()(q, k, v, CAUSAL), atol=1e-5, rtol=1e-5)


def test_top_keys_are_the_largest_that_may_be_seen():
    scores = torch.randn(2, N, N)
    seen = language.top_keys(scores, CAUSAL, 5)
    assert seen.sum(dim=-1).equal(torch.arange(1, N + 1).clamp(max=5).expand(2, N))
    assert not (seen & ~CAUSAL).any()
    least = scores.masked_fill(~seen, torch.inf).amin(dim=-1)
    left = scores.masked_fill(seen | ~CAUSAL, -torch.inf).amax(dim=-1)
    assert (least > left).all()
    assert language.top_keys(torch.zeros(2, N, N), CAUSAL, 5).sum() == seen.sum()  # ties are no more keys


def test_the_indexer_is_its_formula():
    q, k, _ = heads()
    indexer = language.Indexer(WIDTH, n_heads=3, d_head=4)
    rows_q, rows_k = (x.transpose(1, 2).flatten(2) for x in (q, k))
    n, s = 7, 2
    a = indexer.W_a(rows_q[1, n]).view(3, 4)
    expected = sum(
        w * (a_j @ indexer.W_b(rows_k[1, s])).relu()
        for w, a_j in zip(indexer.W_w(rows_q[1, n]), a, strict=True)
    )
    torch.testing.assert_close(indexer(q, k)[1, n, s], expected)


def test_gradients_do_not_cross():
    model = language.small_language_model(30, [lambda: language.IndexedAttend(WIDTH, 4)] * 2)
    batch = torch.randint(30, (2, N + 1))
    indexers = {id(p) for m in model.modules() if isinstance(m, language.Indexer) for p in m.parameters()}
    for of_indexer in (True, False):
        model.zero_grad()
        loss = language_loss(model, batch)
        if of_indexer:
            loss = sum(m.loss for m in model.modules() if isinstance(m, language.IndexedAttend))
        loss.backward()
        reached = {id(p) for p in model.parameters() if p.grad is not None and p.grad.abs().sum() > 0}
        assert reached
        assert reached <= indexers if of_indexer else not reached & indexers


def test_the_loss_is_zero_where_the_indexer_says_what_attention_does():
    seen = language.top_keys(torch.randn(2, N, N), CAUSAL, 6)
    index = torch.randn(2, N, N)
    target = index.masked_fill(~seen, -torch.inf).softmax(dim=-1)
    assert language.indexer_loss(index, target, seen).abs() < 1e-6
    assert language.indexer_loss(torch.randn(2, N, N), target, seen) > 0.1


def test_keys_begin_as_those_of_the_token_before():
    attention = language.small_language_model(30, [Attend]).transformer.blocks[0].self_attention
    with torch.no_grad():
        for name, place in (("W_q", 0), ("W_k", 1), ("W_v", 0)):
            taps = getattr(attention, name).taps
            assert (taps[place] - 1).abs().max() < 0.2
            taps.copy_(torch.eye(4)[place][:, None].expand_as(taps))
    x = torch.randn(1, N, WIDTH)
    torch.testing.assert_close(attention.W_k(x)[:, 1:], attention.W_q(x)[:, :-1])
    torch.testing.assert_close(attention.W_v(x), x @ attention.W_v.weight.T)


@pytest.mark.parametrize(
    "make", [FusedAttend, lambda: language.IndexedAttend(WIDTH, 4), lambda: language.TopAttend(4)]
)
def test_nobody_sees_what_comes(make):
    model = language.small_language_model(30, [make] * 2).eval()
    tokens = torch.randint(30, (1, N))
    changed = tokens.clone()
    changed[0, 15] = (changed[0, 15] + 1) % 30
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :15], after[:, :15])
    assert not torch.allclose(before[:, 15:], after[:, 15:])


def test_a_pattern_is_the_librarys_layer():
    q, k, v = heads()
    relays = BlockSparse(4, stride=2, causal=True)
    torch.testing.assert_close(language.Pattern(relays.pattern)(q, k, v, CAUSAL), relays(q, k, v))


def test_selected_keeps_the_share_of_its_keys():
    q, k, v = heads()
    shares = {}
    for name, rule in {"exact": language.exact, "recent": language.recent}.items():
        backend = language.Selected(4, rule)
        backend(q, k, v, CAUSAL)
        assert torch.allclose(backend.kept[:, :4], torch.ones(3, 4))
        shares[name] = backend.kept
    assert (shares["exact"] >= shares["recent"] - 1e-6).all()
    weights = torch.zeros(1, 1, N, N)
    recent = language.top_keys(language.recent(q, k, weights), CAUSAL, 4)
    assert recent[0].equal(CAUSAL & ~CAUSAL.tril(-4))
    assert (backend.own.mean(dim=1) >= shares["exact"] - 1e-6).all()  # each head's own are its best
    drawn = language.top_keys(language.at_random(q, k, weights), CAUSAL, 4)
    assert drawn.sum(dim=-1).eq(CAUSAL.sum(dim=-1).clamp(max=4)).all()
    assert not drawn[0].equal(recent[0])
    everything = language.Selected(N, language.by_indexer(language.Indexer(WIDTH)))
    torch.testing.assert_close(everything(q, k, v, CAUSAL), Attend()(q, k, v, CAUSAL))


def test_select_later():
    model = language.small_language_model(30, [lambda: language.TopAttend(4)])
    loss, batch = language.SparseLater(1), torch.randint(30, (2, N + 1))
    backend = model.transformer.blocks[0].self_attention.backend
    for dense in (True, False):
        loss(model, batch)
        assert backend.dense == dense
