"""The language models before the transformer against loops over single tokens."""

import pytest
import torch
from torch import nn

from tformer_lib.models.language import GRULanguageModel, MLPLanguageModel, language_loss

TIGHT = {"rtol": 0, "atol": 1e-10}
VOCAB = 7
TOKENS = torch.randint(VOCAB, (3, 9), generator=torch.Generator().manual_seed(0))


def mlp(context=4):
    torch.manual_seed(0)
    return MLPLanguageModel(VOCAB, context, 3, 5).double()


def gru():
    torch.manual_seed(0)
    return GRULanguageModel(VOCAB, 3, 5).double()


@pytest.mark.parametrize("context", [1, 2, 4, 12])
def test_the_mlp_is_the_loop_over_places(context):
    model = mlp(context)
    logits = model(TOKENS)
    assert logits.shape == (3, 9, VOCAB)
    for b in range(3):
        for n in range(9):
            seen = [int(TOKENS[b, i]) if i >= 0 else VOCAB for i in range(n - context + 1, n + 1)]
            x = torch.cat([model.embed.weight[i] for i in seen])
            hidden = torch.tanh(model.W_h.weight @ x + model.W_h.bias)
            torch.testing.assert_close(logits[b, n], model.W_o.weight @ hidden + model.W_o.bias, **TIGHT)


def test_the_gru_is_the_loop_over_steps():
    model = gru()
    cell = nn.GRUCell(3, 5).double()
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    cell.load_state_dict({name: getattr(model.gru, f"{name}_l0") for name in names})
    state, logits = torch.zeros(3, 5).double(), model(TOKENS)
    for n in range(9):
        state = cell(model.embed(TOKENS[:, n]), state)
        torch.testing.assert_close(logits[:, n], model.W_o(state), **TIGHT)


def test_the_gru_reads_on_from_its_state():
    model = gru()
    first, state = model.read(TOKENS[:, :4])
    rest, _ = model.read(TOKENS[:, 4:], state)
    torch.testing.assert_close(torch.cat((first, rest), dim=1), model(TOKENS), **TIGHT)


@pytest.mark.parametrize("make", [mlp, gru])
@pytest.mark.parametrize("place", [0, 5, 8])
def test_no_logit_sees_what_comes_later(make, place):
    model, changed = make(), TOKENS.clone()
    changed[:, place] = (changed[:, place] + 1) % VOCAB
    same = (model(TOKENS) - model(changed)).abs().amax(dim=(0, 2)) == 0
    assert same[:place].all()
    assert not same[place]


def test_the_mlp_forgets_what_leaves_its_window_and_the_gru_does_not():
    changed = TOKENS.clone()
    changed[:, 2] = (changed[:, 2] + 1) % VOCAB
    for model, sees in ((mlp(4), range(2, 6)), (gru(), range(2, 9))):
        different = (model(TOKENS) - model(changed)).abs().amax(dim=(0, 2)) > 0
        assert different.nonzero().flatten().tolist() == list(sees)


def test_gradients_reach_the_vector_before_the_text():
    model = mlp(4)
    language_loss(model, TOKENS).backward()
    assert (model.embed.weight.grad[VOCAB] != 0).any()
