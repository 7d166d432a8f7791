"""BERT: all tokens see all tokens and no padding; dropout as in the paper; the heads and the loss."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.masks import padding_mask
from tformer_lib.core.tokens import IGNORED
from tformer_lib.core.transformer import MLP
from tformer_lib.models.bert import (
    BERT,
    MaskedLanguageHead,
    NextSentenceHead,
    PretrainingBERT,
    bert_config,
    pretraining_loss,
)
from tformer_lib.training import count_parameters

VOCAB, D, PAD = 13, 12, 0


def build(*, dropout=0.0, seed=0, **parts):
    torch.manual_seed(seed)
    model = BERT(
        bert_config(d_model=D, n_heads=3, n_blocks=2, d_hidden=20, dropout=dropout),
        VOCAB,
        max_len=16,
        **parts,
    )
    with torch.no_grad():  # so that what is one or zero at first matters, and segments as much as tokens
        for p in model.parameters():
            p.add_(0.3 * torch.randn(p.shape))
    return model.eval()


def heads(bert, **parts):
    torch.manual_seed(1)
    model = PretrainingBERT(bert, **parts)
    with torch.no_grad():
        for p in (p for name, p in model.named_parameters() if not name.startswith("bert.")):
            p.add_(0.3 * torch.randn(p.shape))
    return model.eval()


def some_tokens(n=9, batch=3, seed=1):
    return torch.randint(1, VOCAB, (batch, n), generator=torch.Generator().manual_seed(seed))


def some_segments(n=9, batch=3):
    return (torch.arange(n) >= n // 2).long().expand(batch, n)


def a_batch():
    tokens = some_tokens(seed=4)
    targets = torch.full_like(tokens, IGNORED)
    for row, place, token in ((0, 2, 5), (0, 7, 1), (2, 1, 12)):
        targets[row, place] = token
    labels = torch.tensor([0, 1, 1])
    return tokens, some_segments(), padding_mask(tokens, PAD), targets, labels


# the encoder


@pytest.mark.parametrize("place", [0, 4, 8])
def test_every_token_sees_every_token(place):
    model, x = build(), some_tokens()
    y = x.clone()
    y[:, place] = y[:, place] % (VOCAB - 1) + 1
    assert ((model(x) - model(y)).abs().amax(-1) > 1e-4).all()


def test_padding_changes_nothing():
    model, x, segments = build(), some_tokens(), some_segments()
    padded = F.pad(x, (0, 5), value=PAD)
    more = model(padded, F.pad(segments, (0, 5)), padding_mask(padded, PAD))
    assert_close(more[:, :9], model(x, segments), atol=1e-5, rtol=0)
    assert_close(model.pooled(more), model.pooled(model(x, segments)), atol=1e-5, rtol=0)
    without = model(padded, F.pad(segments, (0, 5)))
    assert not torch.allclose(without[:, :9], model(x, segments), atol=1e-2)


def test_segments_and_places_are_seen():
    model, x = build(), some_tokens()
    assert not torch.allclose(model(x, some_segments()), model(x), atol=1e-2)
    assert_close(model(x, torch.zeros_like(x)), model(x), atol=0, rtol=0)
    turned = model(x.flip(1)).flip(1)
    assert not torch.allclose(turned, model(x), atol=1e-2)
    with torch.no_grad():
        model.positions.table.zero_()
    assert_close(model(x.flip(1)).flip(1), model(x), atol=1e-5, rtol=0)


def test_it_is_embeddings_their_norm_and_the_encoder_of_pytorch():
    model, x, segments = build(), some_tokens(), some_segments()
    x[1, 6:] = PAD
    layer = nn.TransformerEncoderLayer(
        D, 3, 20, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True, norm_first=False
    )
    theirs = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with torch.no_grad():
        for block, to in zip(model.transformer.blocks, theirs.layers, strict=True):
            attention = block.self_attention
            for kind in ("weight", "bias"):
                parts = [getattr(linear, kind) for linear in (attention.W_q, attention.W_k, attention.W_v)]
                getattr(to.self_attn, f"in_proj_{kind}").copy_(torch.cat(parts))
                for ours, its in (
                    (attention.W_o, to.self_attn.out_proj),
                    (block.mlp.W_in, to.linear1),
                    (block.mlp.W_out, to.linear2),
                    (block.self_attention_norm, to.norm1),
                    (block.mlp_norm, to.norm2),
                ):
                    getattr(its, kind).copy_(getattr(ours, kind))
    h = model.embed.weight[x] + model.positions.table[:9] + model.segments.weight[segments]
    h = (h - h.mean(-1, keepdim=True)) / h.std(-1, correction=0, keepdim=True)
    h = h * model.embed_norm.weight + model.embed_norm.bias
    padding = x == PAD
    expected = theirs(h, src_key_padding_mask=padding)
    found = model(x, segments, padding_mask(x, PAD))
    assert_close(found[~padding], expected[~padding], atol=1e-5, rtol=1e-5)


def test_the_pooler():
    model = build()
    hidden = model(some_tokens())
    assert_close(model.pooled(hidden), torch.tanh(hidden[:, 0] @ model.pooler.weight.T + model.pooler.bias))
    assert count_parameters(model) - count_parameters(build(pooler=False)) == D * D + D
    with pytest.raises(ValueError, match="no pooler"):
        build(pooler=False).pooled(hidden)


@pytest.mark.parametrize(
    ("size", "parameters"), [((768, 12, 12), 109_482_240), ((1024, 16, 24), 335_141_888)]
)
def test_base_and_large_have_the_published_sizes(size, parameters):
    with torch.device("meta"):
        width, heads, blocks = size
        model = BERT(bert_config(d_model=width, n_heads=heads, n_blocks=blocks), 30_522)
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert model.max_len == 512


def test_a_backend_of_ones_own():
    x = some_tokens()
    assert_close(build(make_backend=FusedAttend)(x), build()(x), atol=1e-5, rtol=0)


# dropout


def test_dropout_stands_where_the_paper_has_it():
    places = {name: m.p for name, m in build(dropout=0.1).named_modules() if isinstance(m, nn.Dropout)}
    assert places.pop("dropout") == 0.1  # on the embeddings
    for i in range(2):
        block = f"transformer.blocks.{i}"
        assert places.pop(f"{block}.mlp.dropout") == 0
        assert places.pop(f"{block}.dropout") == 0.1  # on what a sublayer adds
        (name,) = [name for name in places if name.startswith(block)]
        assert "self_attention" in name  # on the attention weights
        assert places.pop(name) == 0.1
    assert not places


def zeros(modules):
    """Hooks that note the share of zeros in what each module gives."""
    shares = {}
    for name, module in modules:
        module.register_forward_hook(
            lambda _, __, out, name=name: shares.setdefault(name, []).append(
                (out == 0).double().mean().item()
            )
        )
    return shares


def test_what_dropout_does_in_training_and_not_in_evaluation():
    model, x = build(dropout=0.3), some_tokens(16, 40)
    shares = zeros((name, m) for name, m in model.named_modules() if isinstance(m, nn.Dropout))
    model(x)
    assert all(share == 0 for each in shares.values() for share in each)
    assert_close(model(x), build()(x), atol=0, rtol=0)
    shares.clear()
    torch.manual_seed(0)
    model.train()(x)
    for name, each in shares.items():
        assert len(each) == (2 if name.endswith(("blocks.0.dropout", "blocks.1.dropout")) else 1)
        expected = 0.0 if "mlp" in name else 0.3
        assert each == pytest.approx([expected] * len(each), abs=0.03)
    assert len(shares) == 7


def test_nothing_is_dropped_inside_the_mlp_by_default_of_a_bert():
    config = bert_config(d_model=D, n_heads=3, n_blocks=1)
    assert (config.dropout, config.mlp_dropout, config.norm_placement) == (0.1, 0.0, "post")
    mlp = next(m for m in BERT(config, VOCAB).modules() if isinstance(m, MLP)).train()
    h = torch.randn(2, 3, D)
    assert_close(mlp(h), mlp(h), atol=0, rtol=0)


# the heads


def test_the_head_for_masked_tokens():
    model, x = heads(build()), some_tokens()
    hidden, head = model.bert(x), model.masked_language
    h = F.gelu(hidden @ head.W.weight.T + head.W.bias)
    h = F.layer_norm(h, (D,), head.norm.weight, head.norm.bias, 1e-12)
    expected = torch.einsum("bnd,vd->bnv", h, model.bert.embed.weight) + head.bias
    assert_close(model(x)[0], expected)
    assert count_parameters(head) == D * D + D + 2 * D + VOCAB


def test_the_head_for_the_next_sentence_reads_what_is_pooled():
    model, x = heads(build()), some_tokens()
    head = model.next_sentence
    expected = model.bert.pooled(model.bert(x)) @ head.W.weight.T + head.W.bias
    assert_close(model(x)[1], expected)
    assert heads(build(), next_sentence=False)(x)[1] is None
    assert heads(build(pooler=False), next_sentence=False)(x)[0].shape == (3, 9, VOCAB)
    with pytest.raises(ValueError, match="no pooler"):
        heads(build(pooler=False))(x)


def test_the_loss_reaches_the_embedding_from_both_sides():
    model, batch = heads(build()), a_batch()
    tokens, segments, mask, targets, labels = batch
    table = model.bert.embed.weight
    pretraining_loss(model, batch).backward()
    both = table.grad.clone()
    # the same once more, with a copy of the table for the head: what reaches either of them
    table.grad = None
    own = table.detach().clone().requires_grad_()
    hidden = model.bert(tokens, segments, mask)
    loss = F.cross_entropy(
        model.masked_language(hidden[targets != IGNORED], own), targets[targets != IGNORED]
    )
    (loss + F.cross_entropy(model.next_sentence(model.bert.pooled(hidden)), labels)).backward()
    assert table.grad.abs().max() > 1e-3
    assert own.grad.abs().max() > 1e-3
    assert_close(both, table.grad + own.grad, atol=1e-6, rtol=1e-5)
    unread = next(token for token in range(VOCAB) if token not in tokens)  # only the head says anything of it
    assert table.grad[unread].abs().max() == 0
    assert own.grad[unread].abs().max() > 0


def test_asking_at_some_places_is_choosing_among_all():
    model, (tokens, segments, mask, targets, _) = heads(build()), a_batch()
    places = targets != IGNORED
    logits, follows = model(tokens, segments, mask, places)
    everywhere, same = model(tokens, segments, mask)
    assert logits.shape == (3, VOCAB)
    assert_close(logits, everywhere[places])
    assert_close(follows, same)
    nowhere = model(tokens, segments, mask, torch.zeros_like(places))[0]
    assert nowhere.shape == (0, VOCAB)


@pytest.mark.parametrize("next_sentence", [True, False])
def test_the_loss_by_hand(next_sentence):
    model, batch = heads(build(), next_sentence=next_sentence), a_batch()
    tokens, segments, mask, targets, labels = batch
    logits, follows = model(tokens, segments, mask)
    nats = []
    for row in range(3):
        for place in range(9):
            if targets[row, place] != IGNORED:
                scores = logits[row, place].tolist()
                total = math.log(sum(math.exp(score) for score in scores))
                nats.append(total - scores[targets[row, place]])
    expected = sum(nats) / len(nats)
    assert len(nats) == 3
    if next_sentence:
        for row in range(3):
            scores = follows[row].tolist()
            expected += (math.log(sum(map(math.exp, scores))) - scores[labels[row]]) / 3
    assert pretraining_loss(model, batch).item() == pytest.approx(expected, rel=1e-5)


def test_a_new_model_knows_nothing_yet():
    torch.manual_seed(0)
    model = PretrainingBERT(
        BERT(bert_config(d_model=32, n_heads=4, n_blocks=2, dropout=0.0), 100, max_len=32)
    )
    tokens = torch.randint(100, (64, 16))
    batch = (tokens, torch.zeros_like(tokens), None, tokens, torch.arange(64) % 2)
    assert pretraining_loss(model, batch).item() == pytest.approx(math.log(100) + math.log(2), abs=0.4)


def test_a_few_steps_learn_a_batch():
    torch.manual_seed(0)
    model, batch = (
        PretrainingBERT(BERT(bert_config(d_model=24, n_heads=2, n_blocks=1, dropout=0.0), VOCAB, max_len=16)),
        a_batch(),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        pretraining_loss(model, batch).backward()
        optimizer.step()
    assert pretraining_loss(model, batch).item() < 0.1


# errors and shapes


def test_what_does_not_fit_is_named():
    model = build()
    with pytest.raises(ValueError, match=r"max_len=16 rows.* positions 0 to 16"):
        model(some_tokens(17))
    with pytest.raises(ValueError, match="n_heads must divide d_model"):
        bert_config(d_model=10, n_heads=3, n_blocks=1)


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (lambda: build()(torch.zeros(9, dtype=torch.long)), "tokens"),
        (lambda: build()(torch.zeros(2, 9)), "tokens"),
        (lambda: build()(some_tokens(), some_segments(8)), "segments"),
        (lambda: build().pooled(torch.zeros(2, D)), "hidden"),
        (lambda: NextSentenceHead(D)(torch.zeros(2, 3, D)), "pooled"),
        (
            lambda: MaskedLanguageHead(bert_config(d_model=D, n_heads=3, n_blocks=1), VOCAB)(
                torch.zeros(2, D), torch.zeros(VOCAB, D + 1)
            ),
            "table",
        ),
        (lambda: heads(build())(some_tokens(), None, None, torch.ones(3, 9)), "places"),
    ],
)
def test_shapes_and_types_are_checked(call, wrong):
    with pytest.raises(Exception, match=wrong) as caught:
        call()
    assert "TypeCheckError" in type(caught.value).__name__
