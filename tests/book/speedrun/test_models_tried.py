"""Each trial of the speedrun differs from its entry by the one thing that it is named for."""

from dataclasses import replace

import pytest
import torch

from tformer_book.speedrun.models import tried as speedrun_tried
from tformer_book.speedrun.models.entries import Fast, FastDecoder, Settings, windows
from tformer_book.speedrun.models.tried import (
    TRIED,
    Averaged,
    Capped,
    Half,
    ValueResidual,
    compiled,
    short_windows_first,
    small_batches_first,
)

VOCAB = 5
TINY = replace(Settings(), width=16, hidden=16, rows=7, steps=3, batch=2, warmup=1)
pytestmark = pytest.mark.usefixtures("one_thread")


def pair(build, settings=TINY):
    """The entry's model and the trial's, with the same weights, none of them zero."""
    plain, other = FastDecoder(VOCAB, settings), build(VOCAB, settings)
    torch.manual_seed(0)
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        one.data.normal_(std=0.5)
        two.data.copy_(one)
    return plain.eval(), other.eval(), torch.randint(VOCAB, (2, 10))


def test_capped():
    plain, other, tokens = pair(Capped)
    logits = 100 * plain(tokens)
    other.readout.data *= 100
    torch.testing.assert_close(other(tokens), 15 * torch.tanh(logits / 15))
    assert other(tokens).abs().max() <= 15 < logits.abs().max()


def test_averaged():
    plain, other, tokens = pair(Averaged)
    before = {name: p.clone() for name, p in plain.named_parameters()}
    other.train()
    other(tokens)
    for p in other.parameters():
        p.data += 1
    other(tokens)
    torch.testing.assert_close(other.readout.data, before["readout"] + 1)
    other.eval()
    for name, p in other.named_parameters():
        torch.testing.assert_close(p.data, before[name] + 0.1)
    other.eval()  # a second time changes nothing
    torch.testing.assert_close(other.readout.data, before["readout"] + 0.1)


def test_values_of_the_first_block():
    plain, other, tokens = pair(ValueResidual, replace(TINY, blocks=2))
    assert not torch.allclose(other(tokens), plain(tokens))
    # with the first block's W_v zero the second reads half of its own values
    for model, factor in ((plain, 0.5), (other, 1.0)):
        model.squares.data[0, 2] = 0
        model.squares.data[1, 2] *= factor
    torch.testing.assert_close(other(tokens), plain(tokens))
    one, same, tokens = pair(ValueResidual)
    torch.testing.assert_close(same(tokens), one(tokens))


def test_half():
    plain, other, tokens = pair(Half)
    assert other(tokens).dtype == torch.float32
    torch.testing.assert_close(other(tokens), plain(tokens), atol=0.2, rtol=0.1)
    assert not torch.equal(other(tokens), plain(tokens))


@pytest.mark.parametrize("there", [False, True])
def test_without_a_compiler_the_model_is_as_it_is(monkeypatch, there):
    asked = []
    monkeypatch.setattr(speedrun_tried, "has_compiler", lambda: there)
    monkeypatch.setattr(FastDecoder, "compile", lambda model: asked.append(model))
    assert type(compiled(VOCAB, TINY)) is FastDecoder
    assert len(asked) == there


def test_no_compiler(monkeypatch):
    def refuse(function):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", refuse)
    assert not speedrun_tried.has_compiler()


@pytest.mark.parametrize(
    ("batches", "first", "then"),
    [
        (windows, (16, 65), (16, 65)),
        (short_windows_first, (32, 33), (16, 65)),
        (small_batches_first, (8, 65), (24, 65)),
    ],
    ids=["entry", "short rows first", "small batches first"],
)
def test_schedules_have_as_many_steps_and_tokens_as_the_entry(batches, first, then):
    text = torch.arange(5000)
    made = list(batches(text, Settings(), 0))
    assert [tuple(batch.shape) for batch in made] == [first] * 65 + [then] * 65
    assert sum(batch[:, 1:].numel() for batch in made) == 130 * 16 * 64
    for batch in made:
        assert torch.equal(batch[:, 1:], batch[:, :-1] + 1)  # each is a piece of the text
    assert not torch.equal(made[0][:8, 0], made[65][:8, 0])  # and the second half has new ones
    again = list(batches(text, Settings(), 0))
    assert all(torch.equal(one, two) for one, two in zip(made, again, strict=True))


@pytest.mark.parametrize("name", [name for name in TRIED if name != "compiled"])
def test_each_trains_and_is_restored(name):
    settings = replace(TINY, blocks=2) if "two" in name else TINY
    entry = Fast(settings, TRIED[name].model, TRIED[name].batches)
    tensors = entry.train(torch.arange(400) % VOCAB, VOCAB, 0)
    model = entry.build(VOCAB)
    model.load_state_dict(tensors)
    assert isinstance(model, FastDecoder)
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    assert model.eval()(torch.arange(10)[None] % VOCAB).isfinite().all()
