"""`tformer_lib.analysis`: profiles by hand, heads masked, losses without them, attention beside deletion."""

import math

import pytest
import torch
from torch import nn

from tformer_book.bert.deletion import attention_against_deletion
from tformer_book.bert.profile import head_profile
from tformer_book.bert.ranks import kendall_tau
from tformer_lib import Transformer, TransformerConfig, causal_mask, padding_mask
from tformer_lib.analysis import (
    ablation,
    attention_layers,
    attention_weights,
    mask_heads,
)
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config
from tformer_lib.models.classifiers import SequenceClassifier
from tformer_lib.models.gpt import GPT
from tformer_lib.models.translator import Translator

B, N, D, H, M, VOCAB = 2, 5, 12, 3, 2, 11
PAD, UNK, CLS, SEP, MASK = range(5)
EQUAL_ENTROPY = (5 * math.log(5) + 3 * math.log(3)) / 8  # of sequences of five and of three tokens
SPECIAL = {"[CLS]": CLS, "[SEP]": SEP}
KINDS = ["[CLS]", "[SEP]", "itself", "previous", "next", "same token elsewhere", "the rest"]


class Told(Attend):
    """A backend whose weights are told."""

    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def attend(self, q, k, v, mask):
        return self.softmax(self.scores.expand(*q.shape[:-1], k.shape[-2]), mask) @ v


def bert(**options):
    torch.manual_seed(0)
    return BERT(bert_config(d_model=D, n_heads=H, n_blocks=M), VOCAB, max_len=N + 3, **options).eval()


def batch():
    tokens = torch.tensor([[CLS, 5, 6, 5, SEP], [CLS, 7, SEP, PAD, PAD]])
    return tokens, torch.zeros_like(tokens), padding_mask(tokens, PAD)


def hook_count(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


# Profiles


def test_a_profile_by_hand():
    tokens, segments, mask = batch()
    model = bert()
    weights = attention_weights(model, (tokens, segments, mask))
    expected = {kind: torch.zeros(M, H) for kind in KINDS}
    uniform = dict.fromkeys(KINDS, 0.0)
    queries = 0
    for b, length in ((0, 5), (1, 3)):
        for i in range(length):
            queries += 1
            for j in range(length):
                kind = "the rest"
                if tokens[b, j] == tokens[b, i]:
                    kind = "same token elsewhere"
                kind = {0: "itself", 1: "next", -1: "previous"}.get(j - i, kind)
                kind = {CLS: "[CLS]", SEP: "[SEP]"}.get(tokens[b, j].item(), kind)
                expected[kind] += weights[b, :, :, i, j]
                uniform[kind] += 1 / length
    profile = head_profile(model, [(tokens, segments, mask)], SPECIAL)
    assert list(profile.shares) == KINDS
    for kind in KINDS:
        torch.testing.assert_close(profile.shares[kind], expected[kind] / queries)
        assert math.isclose(profile.uniform[kind], uniform[kind] / queries, rel_tol=1e-5, abs_tol=1e-7)
    torch.testing.assert_close(sum(profile.shares.values()), torch.ones(M, H))
    assert math.isclose(sum(profile.uniform.values()), 1, rel_tol=1e-5)
    assert (profile.entropy <= EQUAL_ENTROPY).all()


def test_batches_are_averaged_over_queries_and_not_over_batches():
    tokens, segments, mask = batch()
    model = bert()
    whole = head_profile(model, [(tokens, segments, mask)], SPECIAL)
    rows = [(tokens[:1], segments[:1], mask[:1]), (tokens[1:, :3], None, None)]
    apart = head_profile(model, rows, SPECIAL)
    for kind in KINDS:
        torch.testing.assert_close(apart.shares[kind], whole.shares[kind])
    torch.testing.assert_close(apart.entropy, whole.entropy)


@pytest.mark.parametrize(("step", "kind"), [(-1, "previous"), (0, "itself"), (1, "next"), (2, "the rest")])
def test_a_head_that_is_told_where_to_look(step, kind):
    place = torch.arange(N)
    scores = torch.where((place[None, :] - place[:, None]) == step, 100.0, 0.0)
    scores[max(0, N - step) :] = scores[: max(0, -step)] = 0.0
    model = bert(make_backend=lambda: Told(scores))
    profile = head_profile(model, [(torch.tensor([[5, 6, 7, 8, 9]]),)], SPECIAL)
    aimed = (N - abs(step)) / N
    assert (profile.shares[kind] >= aimed - 1e-6).all()
    assert profile.favourites() == [[kind] * H] * M
    assert (profile.entropy < 0.5 * math.log(N)).all()


def test_equal_weights_give_the_baseline():
    model = bert(make_backend=lambda: Told(torch.zeros(1, 1)))
    profile = head_profile(model, [batch()], SPECIAL)
    for kind in KINDS:
        torch.testing.assert_close(profile.shares[kind], torch.full((M, H), profile.uniform[kind]))
    torch.testing.assert_close(profile.entropy, torch.full((M, H), EQUAL_ENTROPY))


def test_a_causal_mask_is_read_off_the_weights():
    model = GPT(TransformerConfig(d_model=D, n_heads=H, n_blocks=M), VOCAB, positions=None)
    profile = head_profile(model, [(torch.tensor([[5, 6, 7]]),)], {})
    assert profile.uniform["next"] == 0
    assert math.isclose(profile.uniform["itself"], (1 + 1 / 2 + 1 / 3) / 3, rel_tol=1e-6)
    assert (profile.shares["next"] == 0).all()


def test_a_profile_is_taken_without_dropout_and_leaves_the_mode():
    model = bert().train()
    profiles = [head_profile(model, [batch()], SPECIAL) for _ in range(2)]
    assert torch.equal(profiles[0].entropy, profiles[1].entropy)
    assert model.training
    assert hook_count(model) == 0


def test_profiles_need_something_to_read():
    with pytest.raises(ValueError, match="no token"):
        head_profile(bert(), [], SPECIAL)
    with pytest.raises(TypeError, match="FusedAttend"):
        head_profile(bert(make_backend=FusedAttend), [batch()], SPECIAL)


# Silence


def with_columns_zeroed(model, heads):
    for block, head in heads:
        layer = attention_layers(model)[block]
        with torch.no_grad():
            layer.W_o.weight[:, head * layer.d_head : (head + 1) * layer.d_head] = 0
    return model


@pytest.mark.parametrize("attend", [None, FusedAttend])
@pytest.mark.parametrize("heads", [[], [(0, 1)], [(1, 0), (1, 2)], [(0, 0), (0, 1), (0, 2), (1, 1), (1, 1)]])
def test_masking_is_what_zeroed_columns_of_w_o_give(heads, attend):
    model = bert(make_backend=attend)
    weights = {name: p.clone() for name, p in model.named_parameters()}
    before = model(*batch())
    with mask_heads(model, heads):
        silent = model(*batch())
    assert torch.equal(model(*batch()), before)
    assert all(torch.equal(p, weights[name]) for name, p in model.named_parameters())
    assert hook_count(model) == 0
    torch.testing.assert_close(silent, with_columns_zeroed(model, heads)(*batch()))
    assert (heads == []) == torch.equal(silent, before)


def test_all_heads_of_a_block_leave_the_bias():
    config = TransformerConfig(d_model=D, n_heads=H, n_blocks=1)
    model = Transformer(config)
    block = model.blocks[0]
    nn.init.normal_(block.self_attention.W_o.bias)
    x = torch.randn(B, N, D)
    with mask_heads(model, [(0, h) for h in range(H)]):
        out = model(x)
    stream = x + block.self_attention.W_o.bias
    torch.testing.assert_close(out, model.final_norm(stream + block.mlp(block.mlp_norm(stream))))


def test_grouped_queries_and_gpt():
    torch.manual_seed(0)
    config = TransformerConfig(d_model=D, n_heads=H, n_blocks=M, n_kv_heads=1)
    model = GPT(config, VOCAB).eval()
    tokens = torch.randint(VOCAB, (B, N))
    with mask_heads(model, [(1, 2), (0, 0)]):
        silent = model(tokens)
    assert not torch.allclose(silent, model(tokens))
    torch.testing.assert_close(silent, with_columns_zeroed(model, [(1, 2), (0, 0)])(tokens))


def test_cross_attention_keeps_speaking():
    model = Transformer(TransformerConfig(d_model=D, n_heads=H, n_blocks=1, cross_attention=True))
    x, context = torch.randn(B, N, D), torch.randn(B, N, D)
    block = model.blocks[0]
    with mask_heads(model, [(0, h) for h in range(H)]):
        out = model(x, context, causal_mask(N))
    stream = x + block.self_attention.W_o.bias
    stream = stream + block.cross_attention(block.cross_attention_norm(stream), context)
    torch.testing.assert_close(out, model.final_norm(stream + block.mlp(block.mlp_norm(stream))))


def test_heads_of_layers_by_name():
    torch.manual_seed(0)
    model = Translator(TransformerConfig(d_model=D, n_heads=H, n_blocks=M), VOCAB).eval()
    source, target = torch.randint(3, VOCAB, (2, B, N))
    whole = model(source, target)
    name = "decoder.blocks.1.cross_attention"
    layer = model.decoder.blocks[1].cross_attention
    with mask_heads(model, [(name, 2), (name, 0)]):
        silent = model(source, target)
    assert not torch.allclose(silent, whole)
    columns = layer.W_o.weight.view(D, H, D // H)
    with torch.no_grad():
        columns[:, [0, 2]] = 0
    torch.testing.assert_close(silent, model(source, target))
    assert hook_count(model) == 0


def test_a_name_and_a_number_mean_the_same_layer():
    model = bert()
    with mask_heads(model, [(1, 2)]):
        numbered = model(*batch())
    with mask_heads(model, [("transformer.blocks.1.self_attention", 2)]):
        assert torch.equal(model(*batch()), numbered)
    with mask_heads(model, [(1, 0), ("transformer.blocks.1.self_attention", 2)]):
        both = model(*batch())
    with mask_heads(model, [(1, 0), (1, 2)]):
        assert torch.equal(model(*batch()), both)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (("blocks.9", 0), "no attention layer 'blocks.9'; the model's are 'transformer.blocks.0.self"),
        (("transformer.blocks.1.self_attention", H), f"no head {H} in .*self_attention: it has {H} heads"),
        (("transformer.blocks.1.self_attention", -1), "no head -1"),
    ],
)
def test_an_unknown_layer_is_refused(where, message):
    model = bert()
    with pytest.raises(ValueError, match=message), mask_heads(model, [where]):
        pass
    assert hook_count(model) == 0


def test_masks_nest_and_end_after_an_error():
    model = bert()
    with mask_heads(model, [(0, 0), (1, 1)]):
        both = model(*batch())
    with mask_heads(model, [(0, 0)]):
        one = model(*batch())
        with mask_heads(model, [(1, 1)]):
            torch.testing.assert_close(model(*batch()), both)
        assert torch.equal(model(*batch()), one)
        with pytest.raises(RuntimeError, match="mine"), mask_heads(model, [(1, 1)]):
            raise RuntimeError("mine")
        assert torch.equal(model(*batch()), one)
    assert hook_count(model) == 0


def test_a_silent_head_gets_no_gradient():
    model = bert()
    with mask_heads(model, [(0, 1)]):
        model(*batch()).square().sum().backward()
    layer = attention_layers(model)[0]
    part = layer.W_v.weight.grad.view(H, layer.d_head, D)
    assert (part[1] == 0).all()
    assert (part[0] != 0).any()


@pytest.mark.parametrize("head", [(M, 0), (0, H), (-1, 0), (0, -1)])
def test_heads_that_are_not_there(head):
    model = bert()
    with pytest.raises(ValueError, match="2 blocks with 3 heads"), mask_heads(model, [(0, 0), head]):
        pass
    assert hook_count(model) == 0


def test_there_must_be_one_transformer():
    stack = Transformer(TransformerConfig(d_model=D, n_heads=H, n_blocks=1))
    for model in (nn.Linear(2, 2), nn.ModuleList([stack, Transformer(stack.config)])):
        with pytest.raises(ValueError, match="counted in one Transformer"):
            attention_layers(model)


# Ablation


def test_ablation_by_hand():
    model = PretrainingBERT(bert()).train()
    inputs = batch()

    def loss(model):
        assert not model.training
        return model(*inputs)[0].square().mean()

    rise = ablation(model, loss)
    assert model.training
    assert rise.shape == (M, H)
    model.eval()
    whole = loss(model)
    for block in range(M):
        for head in range(H):
            with mask_heads(model, [(block, head)]):
                torch.testing.assert_close(rise[block, head], (loss(model) - whole).detach())


def test_a_head_whose_output_is_not_used_costs_nothing():
    model = with_columns_zeroed(bert(), [(1, 2)])
    rise = ablation(model, lambda m: float(m(*batch()).abs().mean()))
    assert rise[1, 2] == 0
    assert (rise.flatten()[:-1] != 0).all()


# Deletion


def test_deletion_by_hand():
    model = SequenceClassifier(bert(), 4).train()
    inputs = batch()
    found = attention_against_deletion(
        model, inputs, lambda m, b: m(*b), replacement=MASK, special=(PAD, CLS, SEP)
    )
    assert model.training
    model.eval()
    assert found.asked.tolist() == [[False, True, True, True, False], [False, True, False, False, False]]
    whole = model(*inputs).log_softmax(-1)
    for b in range(B):
        for n in range(N):
            if not found.asked[b, n]:
                assert found.change[b, n] == 0
                continue
            fewer = inputs[0].clone()
            fewer[b, n] = MASK
            best = whole[b].argmax()
            change = whole[b, best] - model(fewer, *inputs[1:]).log_softmax(-1)[b, best]
            torch.testing.assert_close(found.change[b, n], change.detach())
    weights = attention_weights(model, inputs)
    torch.testing.assert_close(found.attention, weights[:, :, :, 0])
    tau = found.tau(blocks=slice(1, 2))
    order = weights[0, 1, :, 0, 1:4].mean(0)
    torch.testing.assert_close(
        tau[:1], kendall_tau(order[None], found.change[:1, 1:4].abs(), order[None] > 0)
    )
    assert tau[1].isnan()  # one token has no order


def test_deletion_around_holes():
    tokens = torch.tensor([[CLS, 5, MASK, 7, SEP], [CLS, MASK, 6, 8, SEP]])
    places = torch.tensor([2, 1])
    model = PretrainingBERT(bert())
    found = attention_against_deletion(
        model,
        (tokens, None, None),
        lambda m, b: m(*b)[0][torch.arange(2), places],
        replacement=UNK,
        special=(CLS, SEP),
        places=places,
    )
    assert not found.asked[torch.arange(2), places].any()
    weights = attention_weights(model, (tokens,))
    torch.testing.assert_close(found.attention[1], weights[1, :, :, 1])


def test_a_model_that_reads_one_word_only():
    class FirstWord(nn.Module):
        def __init__(self):
            super().__init__()
            self.stack = Transformer(TransformerConfig(d_model=D, n_heads=H, n_blocks=M))

        def forward(self, tokens):
            self.stack(torch.randn(*tokens.shape, D))
            return torch.nn.functional.one_hot(tokens[:, 2], VOCAB).float()

    tokens = torch.tensor([[CLS, 5, 6, 7, SEP]])
    found = attention_against_deletion(
        FirstWord(), (tokens,), lambda m, b: m(*b), replacement=UNK, special=(CLS, SEP)
    )
    torch.testing.assert_close(found.change, torch.tensor([[0.0, 0.0, 1.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("a", "b", "tau"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1),
        ([1, 2, 3], [1, 3, 2], 1 / 3),
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(6)),
    ],
)
def test_tau_of_known_orders(a, b, tau):
    a, b = torch.tensor([a, a]).float(), torch.tensor([b, b]).float()
    asked = torch.ones_like(a, dtype=torch.bool)
    torch.testing.assert_close(kendall_tau(a, b, asked), torch.tensor([tau, tau]).float())


def test_tau_of_nothing():
    a = torch.ones(2, 3)
    asked = torch.tensor([[True, True, True], [True, False, False]])
    assert kendall_tau(a, a, asked).isnan().all()
