"""Circuits that are known, because the weights were written by hand, are found; others are not."""

from contextlib import ExitStack

import pytest
import torch

from tformer_book.inside.attribution import logit_attribution
from tformer_book.inside.circuits import (
    copying_scores,
    induction_scores,
    patch_path,
    repeated_tokens,
)
from tformer_book.inside.models.attention_only import attention_only, built_induction
from tformer_lib import GPT, TransformerConfig
from tformer_lib.analysis import mask_heads, patch, record
from tformer_lib.core.positions import LearnedPositions, Rotary

VOCAB, PERIOD = 10, 7


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def repeated(batch=5):
    return repeated_tokens(VOCAB, batch, PERIOD, generator=seeded())


def trained_like(**options):
    """Random weights, large enough that all parts matter."""
    torch.manual_seed(1)
    choices = {"d_model": 24, "n_heads": 3, "n_blocks": 2} | options
    sizes = TransformerConfig(**choices)
    rotary = Rotary(sizes.d_model // sizes.n_heads)
    model = GPT(sizes, VOCAB, rotary=rotary, positions=LearnedPositions(20, 24)).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return model


# Repeated tokens


def test_tokens_repeat_and_differ_within_a_period():
    tokens = repeated_tokens(VOCAB, 4, 6, repeats=3, generator=seeded())
    assert tokens.shape == (4, 18)
    assert torch.equal(tokens[:, 6:], tokens[:, :-6])
    assert all(len(set(row[:6])) == 6 for row in tokens.tolist())
    assert len({tuple(row) for row in tokens.tolist()}) == 4


@pytest.mark.parametrize(("sizes", "message"), [((5, 1, 6), "6 different tokens"), ((5, 0, 3), "batch")])
def test_what_cannot_be_drawn_is_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        repeated_tokens(*sizes)


# The network built by hand


def test_the_built_network_continues_what_has_repeated():
    model, tokens = built_induction(VOCAB, 20), repeated()
    said = model(tokens).argmax(dim=-1)
    assert torch.equal(said[:, PERIOD:-1], tokens[:, PERIOD + 1 :])


def test_the_built_heads_are_found():
    scores = induction_scores(built_induction(VOCAB, 20), repeated(), PERIOD)
    assert scores.prefix[1, 0] > 0.99
    assert scores.previous[0, 0] > 0.99
    assert scores.copying[1, 0] > 0.99
    others = [scores.prefix[0, 0], scores.prefix[0, 1], scores.prefix[1, 1]]
    assert max(others) < 0.2
    assert scores.copying[1, 1] == 0  # a head of zeros


def test_a_network_that_only_copies_is_not_taken_for_induction():
    model, tokens = built_induction(VOCAB, 20, connected=False), repeated()
    scores = induction_scores(model, tokens, PERIOD)
    assert scores.copying[1, 0] > 0.99  # it copies ...
    assert scores.prefix[1, 0] < 0.01  # ... its own token, not what followed
    said = model(tokens).argmax(dim=-1)
    assert (said[:, PERIOD:-1] == tokens[:, PERIOD + 1 :]).float().mean() < 0.2


def test_a_head_that_writes_against_what_it_reads_has_negative_copying():
    model = built_induction(VOCAB, 20)
    with torch.no_grad():
        model.transformer.blocks[1].self_attention.W_o.weight.neg_()
    assert copying_scores(model)[1, 0] < -0.99


def test_the_path_by_keys_carries_the_circuit_and_the_others_do_not():
    model, tokens = built_induction(VOCAB, 20), repeated()
    other = repeated_tokens(VOCAB, 5, PERIOD, generator=seeded(3))

    def right(logits):
        return (logits.argmax(-1)[:, PERIOD:-1] == tokens[:, PERIOD + 1 :]).float().mean()

    assert right(model(tokens)) == 1
    with patch_path(model, tokens, other, (0, 0), (1, 0, "k")):
        assert right(model(tokens)) < 0.4
    for receiver in ((1, 0, "q"), (1, 0, "v"), (1, 1, "k"), "logits"):
        with patch_path(model, tokens, other, (0, 0), receiver):
            assert right(model(tokens)) == 1
    with patch_path(model, tokens, other, (0, 1), (1, 0, "k")):
        assert right(model(tokens)) == 1


def test_without_either_head_the_circuit_is_gone():
    model, tokens = built_induction(VOCAB, 20), repeated()
    for head in ((0, 0), (1, 0)):
        with mask_heads(model, [head]):
            said = model(tokens).argmax(dim=-1)
        assert (said[:, PERIOD:-1] == tokens[:, PERIOD + 1 :]).float().mean() < 0.4


@pytest.mark.parametrize("options", [{"max_len": 21}, {"max_len": 30}])
def test_sizes_that_do_not_fit_are_refused(options):
    with pytest.raises(ValueError, match=r"max_len must be even|cannot hold"):
        built_induction(VOCAB, **options)


# Scores


def test_copying_is_that_of_the_whole_matrix():
    model = attention_only(TransformerConfig(d_model=24, n_heads=3, n_blocks=2), VOCAB, tied=False)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    scores = copying_scores(model)
    gain = model.transformer.final_norm.weight
    for m, block in enumerate(model.transformer.blocks):
        read = model.embed.weight - model.embed.weight.mean(dim=1, keepdim=True)
        read = read * block.self_attention_norm.weight
        for h in range(3):
            rows = slice(8 * h, 8 * h + 8)
            layer = block.self_attention
            written = read @ layer.W_v.weight[rows].T @ layer.W_o.weight[:, rows].T  # (vocab, D)
            written = (written - written.mean(dim=1, keepdim=True)) * gain
            found = torch.linalg.eigvals((written @ model.head.weight.T).double())
            torch.testing.assert_close(
                scores[m, h].double(), found.real.sum() / found.abs().sum(), atol=1e-4, rtol=0
            )


def test_uniform_attention_has_the_scores_of_chance():
    model = attention_only(TransformerConfig(d_model=24, n_heads=3, n_blocks=2), VOCAB)
    for block in model.transformer.blocks:
        torch.nn.init.zeros_(block.self_attention.W_q.weight)
    scores = induction_scores(model, repeated(), PERIOD)
    chance = torch.tensor([1 / (n + 1) for n in range(PERIOD, 2 * PERIOD)]).mean()
    torch.testing.assert_close(scores.prefix, chance.expand(2, 3))


@pytest.mark.parametrize(
    ("tokens", "period", "message"),
    [
        (torch.arange(6)[None], 6, "nothing comes twice in 6 tokens"),
        (torch.arange(6)[None], 3, "do not repeat after 3"),
        (torch.arange(6)[None], 0, "period"),
    ],
)
def test_tokens_that_do_not_repeat_are_refused(tokens, period, message):
    with pytest.raises(ValueError, match=message):
        induction_scores(trained_like(), tokens, period)


# Attribution


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "rms", "bias": False},
        {"n_kv_heads": 1, "activation": "swiglu"},
        {"bias": False, "qk_norm": True},
    ],
)
def test_the_parts_add_up_to_the_logit(options):
    model, tokens = trained_like(**options), repeated()
    answers = tokens.roll(-1, dims=1)
    parts = logit_attribution(model, tokens, answers)
    logits = model(tokens).gather(-1, answers[..., None])[..., 0]
    torch.testing.assert_close(sum(parts.values()), logits, atol=2e-4, rtol=1e-4)
    assert {"embedding", "positions", "head 0.0", "head 1.2", "MLP 0", "MLP 1", "biases"} <= set(parts)
    against = (answers + 1) % VOCAB
    apart = logit_attribution(model, tokens, answers, against)
    difference = logits - model(tokens).gather(-1, against[..., None])[..., 0]
    torch.testing.assert_close(sum(apart.values()), difference, atol=2e-4, rtol=1e-4)


def test_the_built_network_gets_its_answer_from_one_head():
    model, tokens = built_induction(VOCAB, 20), repeated()
    parts = logit_attribution(model, tokens, tokens.roll(-1, dims=1))
    second = {name: part[:, PERIOD:-1] for name, part in parts.items()}
    assert (second["head 1.0"] > 1.99).all()
    assert all((part.abs() < 1e-6).all() for name, part in second.items() if name != "head 1.0")


def test_post_norm_cannot_be_taken_apart():
    model = trained_like(norm_placement="post")
    with pytest.raises(ValueError, match="post-norm"):
        logit_attribution(model, repeated(), repeated())
    with (
        pytest.raises(ValueError, match="post-norm"),
        patch_path(model, repeated(), repeated(), (0, 0), "logits"),
    ):
        pass
    with pytest.raises(ValueError, match=r"answers \(5, 3\)"):
        logit_attribution(trained_like(), repeated(), repeated()[:, :3])


# Paths


def test_paths_to_everything_are_the_whole_effect_of_a_head_before_the_last_block():
    """In two blocks without norms and MLPs a head of block 0 speaks by q, k, v of block 1, and directly."""
    torch.manual_seed(2)
    model = attention_only(TransformerConfig(d_model=24, n_heads=2, n_blocks=2), VOCAB, normed=False).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    tokens, other = repeated(), repeated_tokens(VOCAB, 5, PERIOD, generator=seeded(4))
    name = "transformer.blocks.0.self_attention.W_o.input"
    with record(model, [name]) as there:
        model(other)

    def first_head(z):
        z = z.clone()
        z[..., :12] = there[name][..., :12]
        return z

    with patch(model, {name: first_head}):
        whole = model(tokens)
    with ExitStack() as paths:
        for head in (0, 1):
            for kind in ("q", "k", "v"):
                paths.enter_context(patch_path(model, tokens, other, (0, 0), (1, head, kind)))
        by_block_1 = model(tokens)
    with patch_path(model, tokens, other, (0, 0), "logits"):
        direct = model(tokens)
    torch.testing.assert_close(by_block_1 + direct - model(tokens), whole, atol=1e-4, rtol=1e-4)


def test_several_senders_are_one_in_the_sum_that_is_read():
    """Without norms keys are linear in the stream, so that the changes of all senders add up."""
    torch.manual_seed(3)
    model = attention_only(TransformerConfig(d_model=24, n_heads=2, n_blocks=2), VOCAB, normed=False).eval()
    tokens, other = repeated(), repeated_tokens(VOCAB, 5, PERIOD, generator=seeded(4))
    name = "transformer.blocks.1.self_attention.W_k"

    def keys(senders):
        with patch_path(model, tokens, other, senders, (1, 0, "k")), record(model, [name]) as seen:
            model(tokens)
        return seen[name]

    with record(model, [name]) as seen:
        model(tokens)
    both = keys([(0, 0), (0, 1)])
    torch.testing.assert_close(both - seen[name], keys((0, 0)) + keys([(0, 1)]) - 2 * seen[name])
    torch.testing.assert_close(keys([(0, 0), (0, 0)]), keys((0, 0)))  # one named twice is one
    assert not torch.allclose(both, seen[name])
    with pytest.raises(ValueError, match="no sender"):
        keys([])


@pytest.mark.parametrize(
    ("sender", "receiver", "message"),
    [
        ((1, 0), (1, 0, "k"), "block 1 does not come behind block 1"),
        ((0, 9), (1, 0, "k"), "no head 9 in block 0"),
        ((0, 0), (2, 0, "k"), "no head 0 in block 2"),
        ((0, 0), (1, 0, "x"), '"q", "k" or "v"'),
        ([(0, 0), (1, 1)], (1, 0, "k"), "block 1 does not come behind block 1"),
        ((0, 0), "out", "or \"logits\", got 'out'"),
    ],
)
def test_paths_that_do_not_exist_are_refused(sender, receiver, message):
    model = trained_like()
    with (
        pytest.raises(ValueError, match=message),
        patch_path(model, repeated(), repeated(), sender, receiver),
    ):
        pass
    short = repeated()[:, :4]
    with (
        pytest.raises(ValueError, match="both runs need one shape"),
        patch_path(model, repeated(), short, (0, 0), "logits"),
    ):
        pass
