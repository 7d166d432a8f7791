"""A model as a script for the page: what is packed comes back, nearly or exactly."""

import pytest
import torch
from torch import nn

from tformer_lib import TransformerConfig
from tformer_lib.book.live import as_script, from_script, packed, quantise_, quantised_rows, unpacked
from tformer_lib.models.gpt import GPT


def small_model() -> GPT:
    torch.manual_seed(0)
    return GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, norm="rms", bias=False), 11)


def test_an_entry_is_wrong_by_half_a_step_at_most():
    weight = torch.randn(7, 30) * torch.logspace(-4, 4, 7)[:, None]
    whole, scale = quantised_rows(weight)
    assert whole.dtype == torch.int8
    assert whole.abs().amax(dim=1).eq(127).all()
    error = (whole * scale[:, None] - weight).abs()
    assert (error <= 0.5001 * scale[:, None]).all()


def test_a_row_of_zeros_stays_one():
    whole, scale = quantised_rows(torch.zeros(2, 3))
    assert not whole.any()
    assert scale.eq(1).all()


@pytest.mark.parametrize(
    ("weight", "why"),
    [
        (torch.ones(3), "no matrix|shape"),
        (torch.full((2, 2), torch.nan), "NaN"),
        (torch.full((1, 2), torch.inf), "inf"),
    ],
)
def test_what_cannot_be_quantised_is_refused(weight, why):
    with pytest.raises(ValueError, match=why):
        quantised_rows(weight)


def test_what_is_unpacked_is_the_quantised_model():
    model = small_model()
    found = unpacked(*packed(model))
    quantise_(model)
    assert found.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.detach(), rtol=0, atol=0)


def test_quantising_twice_changes_nothing():
    once = quantise_(small_model())
    twice = quantise_(quantise_(small_model()))
    for a, b in zip(once.parameters(), twice.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0)


def test_a_tied_parameter_is_packed_once():
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 3, bias=False))
    model[1].weight = model[0].weight
    listed, _ = packed(model)
    assert [name for name, _ in listed] == ["0.weight"]


def test_a_script_comes_back():
    model = small_model()
    content = from_script(as_script(model, "abc\n</script>é", {"D": 8, "context": 16}))
    assert (content["D"], content["context"], content["letters"]) == (8, 16, "abc\n</script>é")
    model.load_state_dict(content["weights"])


@pytest.mark.parametrize("cut", [1, -1])
def test_bytes_that_do_not_fit_are_refused(cut):
    listed, data = packed(small_model())
    with pytest.raises(ValueError, match=f"take {len(data):,} bytes, got"):
        unpacked(listed, data[:-1] if cut < 0 else data + b"\0")


def test_another_script_is_refused():
    with pytest.raises(ValueError, match=r"window.TformerModel"):
        from_script("var a = 1;")
