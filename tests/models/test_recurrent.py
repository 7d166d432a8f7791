"""The encoder-decoder against PyTorch's GRU, loops over single pairs, and its own single steps."""

import pytest
import torch
from torch import nn

from tformer_book.kit.data.toy import reversal
from tformer_lib.data import BOS, EOS, PAD
from tformer_lib.models.recurrent import (
    AdditiveAttention,
    EncoderDecoder,
    FinalState,
    GRUEncoder,
    encoder_decoder_loss,
    exact_match,
    final_state,
)
from tformer_lib.training import fit

TIGHT = {"rtol": 0, "atol": 1e-10}
VOCAB, H = 9, 5


@pytest.fixture(params=["additive", "final"])
def model(request):
    torch.manual_seed(0)
    context = AdditiveAttention(H, 2 * H, 4) if request.param == "additive" else FinalState()
    return EncoderDecoder(VOCAB, VOCAB, 4, H, context=context).double()


@pytest.fixture
def batch():
    return reversal(6, (1, 7), VOCAB - 3, torch.Generator().manual_seed(1))


def random_attention():
    torch.manual_seed(0)
    attend = AdditiveAttention(3, 4, 6).double()
    query, keys = torch.randn(2, 3).double(), torch.randn(2, 5, 4).double()
    mask = torch.tensor([[True] * 5, [True, True, False, True, False]])
    return attend, query, keys, mask


def test_additive_attention_is_the_loop_over_pairs():
    attend, query, keys, mask = random_attention()
    context, weights = attend(query, keys, mask)
    W_q, W_k, w = attend.W_q.weight, attend.W_k.weight, attend.w.weight[0]
    for b in range(2):
        seen = [j for j in range(5) if mask[b, j]]
        scores = {j: w @ torch.tanh(W_q @ query[b] + W_k @ keys[b, j]) for j in seen}
        total = sum(scores[j].exp() for j in seen)
        expected = torch.stack(
            [scores[j].exp() / total if j in seen else torch.tensor(0.0).double() for j in range(5)]
        )
        torch.testing.assert_close(weights[b], expected, **TIGHT)
        torch.testing.assert_close(context[b], sum(expected[j] * keys[b, j] for j in range(5)), **TIGHT)
    assert (weights[~mask] == 0).all()


def test_projecting_the_keys_ahead_changes_nothing():
    attend, query, keys, mask = random_attention()
    for with_mask in (None, mask):
        ahead = attend(query, keys, with_mask, attend.project(keys))
        torch.testing.assert_close(ahead, attend(query, keys, with_mask), **TIGHT)


def test_the_decoder_projects_the_keys_once(batch):
    model = EncoderDecoder(VOCAB, VOCAB, 4, H, context=AdditiveAttention(H, 2 * H, 4))
    calls = []
    model.context.W_k.register_forward_hook(lambda *_: calls.append(1))
    model(batch[0], batch[1][:, :-1])
    assert len(calls) == 1


def test_additive_attention_gradients():
    attend, query, keys, mask = random_attention()
    inputs = (query.requires_grad_(), keys.requires_grad_())
    assert torch.autograd.gradcheck(lambda q, k: attend(q, k, mask), inputs)


def test_additive_attention_over_nothing_is_zero():
    attend, query, keys, mask = random_attention()
    context, weights = attend(query, keys, torch.zeros_like(mask))
    assert not context.any()
    assert not weights.any()


def test_additive_attention_does_not_care_for_the_order_of_keys():
    attend, query, keys, mask = random_attention()
    order = torch.tensor([3, 0, 4, 1, 2])
    context, weights = attend(query, keys, mask)
    context_2, weights_2 = attend(query, keys[:, order], mask[:, order])
    torch.testing.assert_close(context_2, context, **TIGHT)
    torch.testing.assert_close(weights_2, weights[:, order], **TIGHT)


@pytest.mark.parametrize(("which", "shape"), [("query", (2, 7)), ("keys", (2, 5, 7))])
def test_additive_attention_names_the_wrong_width(which, shape):
    attend, query, keys, _ = random_attention()
    inputs = {"query": query, "keys": keys, which: torch.randn(shape).double()}
    with pytest.raises(ValueError, match=rf"AdditiveAttention was built for {which} of width ., got .*7"):
        attend(**inputs)


@pytest.mark.parametrize(("d_query", "d_key", "which"), [(H, H, "keys"), (2 * H, 2 * H, "query")])
def test_a_context_of_the_wrong_widths_is_named(d_query, d_key, which, batch):
    model = EncoderDecoder(VOCAB, VOCAB, 4, H, context=AdditiveAttention(d_query, d_key, 4))
    with pytest.raises(ValueError, match=f"AdditiveAttention was built for {which} of width"):
        model(batch[0], batch[1][:, :-1])


def test_additive_attention_wants_a_boolean_mask():
    attend, query, keys, mask = random_attention()
    with pytest.raises(TypeError, match=r"(?i)bool"):
        attend(query, keys, mask.float())
    with pytest.raises(ValueError, match="does not broadcast"):
        attend(query, keys, mask[:, :3])


def test_final_state_reads_both_ends_and_nothing_between():
    states = torch.randn(2, 5, 6)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    context, weights = FinalState()(torch.randn(2, 6), states, mask)
    torch.testing.assert_close(context[0], torch.cat((states[0, 4, :3], states[0, 0, 3:])))
    torch.testing.assert_close(context[1], torch.cat((states[1, 2, :3], states[1, 0, 3:])))
    assert not weights.any()
    changed = states.clone()
    changed[:, 1] += 1
    changed[0, 2:4] += 1
    changed[1, 3:] += 1  # padding
    torch.testing.assert_close(FinalState()(torch.randn(2, 6), changed, mask)[0], context)


def test_final_state_is_what_the_gru_calls_its_last_hidden_state():
    torch.manual_seed(0)
    encoder = GRUEncoder(VOCAB, 4, H).double()
    source = torch.randint(3, VOCAB, (3, 6))
    states, mask = encoder(source)
    _, hidden = encoder.gru(encoder.embed(source))
    torch.testing.assert_close(final_state(states, mask), torch.cat((hidden[0], hidden[1]), dim=-1), **TIGHT)
    torch.testing.assert_close(final_state(states), final_state(states, mask), **TIGHT)


def test_the_encoder_is_pytorchs_gru_on_each_sequence_alone(batch):
    torch.manual_seed(0)
    encoder = GRUEncoder(VOCAB, 4, H).double()
    reference = nn.GRU(4, H, batch_first=True, bidirectional=True).double()
    reference.load_state_dict(encoder.gru.state_dict())
    states, mask = encoder(batch[0])
    for row, row_states, row_mask in zip(batch[0], states, mask, strict=True):
        alone = row[row != PAD]
        expected, _ = reference(encoder.embed(alone)[None])
        torch.testing.assert_close(row_states[: len(alone)], expected[0], **TIGHT)
        assert not row_states[len(alone) :].any()
        assert row_mask.sum() == len(alone)


def test_padding_does_not_leak(model, batch):
    source, target = batch
    logits, weights = model(source, target[:, :-1])
    for b in range(len(source)):
        alone = source[b : b + 1, : (source[b] != PAD).sum()]
        alone_logits, alone_weights = model(alone, target[b : b + 1, :-1])
        torch.testing.assert_close(logits[b], alone_logits[0], **TIGHT)
        torch.testing.assert_close(weights[b, :, : alone.shape[1]], alone_weights[0], **TIGHT)
        assert not weights[b, :, alone.shape[1] :].any()


def test_teacher_forcing_on_its_own_output_is_greedy_decoding(model, batch):
    tokens, weights = model.greedy(batch[0], max_len=9)
    begin = torch.full((len(tokens), 1), BOS)
    logits, forced_weights = model(batch[0], torch.cat((begin, tokens[:, :-1]), dim=1))
    alive = torch.cat((begin, tokens), dim=1)[:, :-1].ne(EOS).cumprod(dim=1).bool()
    assert (logits.argmax(dim=-1) == tokens)[alive].all()
    torch.testing.assert_close(forced_weights[alive], weights[alive], **TIGHT)


def test_a_later_target_token_changes_no_earlier_logits(model, batch):
    source, target = batch
    changed = target[:, :-1].clone()
    changed[:, 3] = (changed[:, 3] + 1) % VOCAB
    before, after = model(source, target[:, :-1])[0], model(source, changed)[0]
    torch.testing.assert_close(before[:, :3], after[:, :3], **TIGHT)
    assert (before[:, 3] != after[:, 3]).any()


def test_weights_sum_to_one_over_the_source(batch):
    model = EncoderDecoder(VOCAB, VOCAB, 4, H, context=AdditiveAttention(H, 2 * H, 4)).double()
    _, weights = model(batch[0], batch[1][:, :-1])
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:2]).double(), **TIGHT)


def test_greedy_stops_at_the_end_token(model, batch):
    with torch.no_grad():
        model.W_o.weight.zero_()
        model.W_o.bias.zero_()
        model.W_o.bias[EOS] = 1.0
    tokens, weights = model.greedy(batch[0], max_len=9)
    assert tokens.tolist() == [[EOS]] * len(batch[0])
    assert weights.shape == (len(batch[0]), 1, batch[0].shape[1])


def test_greedy_pads_what_ended_and_stops_at_max_len(model, batch):
    script = {0: [5, EOS, 6, 7], 1: [4, 4, 4, 4]}  # what each of two rows would say, step by step
    steps = iter(range(4))

    def step(token, state, memory):
        t = next(steps)
        logits = torch.zeros(2, VOCAB).double()
        logits[0, script[0][t]], logits[1, script[1][t]] = 1.0, 1.0
        return logits, state, torch.zeros(2, batch[0].shape[1])

    model.step = step
    tokens, _ = model.greedy(batch[0][:2], max_len=3)
    assert tokens.tolist() == [[5, EOS, PAD], [4, 4, 4]]


def test_greedy_wants_a_length(model, batch):
    with pytest.raises(ValueError, match="max_len must be at least 1, got 0"):
        model.greedy(batch[0], max_len=0)


@pytest.mark.parametrize("source", [[[3, 0, 4]], [[0, 3, 4]], [[3, 4, 5], [0, 0, 0]]])
def test_padding_stands_at_the_end(model, source):
    with pytest.raises(ValueError, match=r"padding \(0\) at the end"):
        model(torch.tensor(source), torch.ones(len(source), 2, dtype=torch.long))


def test_the_loss_is_the_mean_over_real_tokens(model, batch):
    source, target = batch
    logits, _ = model(source, target[:, :-1])
    surprises = [
        -logits[b, t].log_softmax(dim=-1)[target[b, t + 1]]
        for b in range(len(target))
        for t in range(target.shape[1] - 1)
        if target[b, t + 1] != PAD
    ]
    torch.testing.assert_close(encoder_decoder_loss(model, batch), sum(surprises) / len(surprises), **TIGHT)


def test_the_loss_reaches_every_parameter(model, batch):
    encoder_decoder_loss(model, batch).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_the_loss_gradient_is_the_slope(batch):
    torch.manual_seed(0)
    model = EncoderDecoder(VOCAB, VOCAB, 3, 2, context=AdditiveAttention(2, 4, 3)).double()
    pair = (batch[0][:2], batch[1][:2])
    for parameter in (model.context.w.weight, model.context.W_k.weight, model.cell.weight_hh):
        value = parameter.detach().clone().requires_grad_()
        name = next(n for n, p in model.named_parameters() if p is parameter)

        def loss(value, name=name):
            return torch.func.functional_call(Loss(model), {f"model.{name}": value}, (pair,))

        assert torch.autograd.gradcheck(loss, (value,))


class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pair):
        return encoder_decoder_loss(self.model, pair)


def test_a_small_batch_is_learned_by_heart():
    torch.manual_seed(0)
    model = EncoderDecoder(VOCAB, VOCAB, 16, 24, context=AdditiveAttention(24, 48, 24))
    source, target = reversal(8, (1, 5), VOCAB - 3, torch.Generator().manual_seed(2))
    assert exact_match(model, source, target).float().mean() < 0.5
    history = fit(model, encoder_decoder_loss, [(source, target)], steps=150, lr=1e-2, warmup=10)
    assert history.loss[-1] < 0.05 < history.loss[0]
    assert exact_match(model, source, target).all()


def test_exact_match_wants_the_whole_sequence(model, batch):
    source, target = batch
    truth = target[:, 1:]

    def says(answer):
        model.greedy = lambda source, max_len: (answer, torch.zeros(*answer.shape, source.shape[1]))
        return exact_match(model, source, target).tolist()

    assert says(truth) == [True] * len(source)
    wrong = truth.clone()
    wrong[0, 0] = 3 + (wrong[0, 0] - 2) % (VOCAB - 3)
    assert says(wrong) == [False] + [True] * (len(source) - 1)
    short = truth[:, :2]  # greedy may stop early: right only where the target ends there too
    assert says(short) == [(row[2:] == PAD).all().item() for row in truth]
