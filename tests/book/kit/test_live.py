"""A model as data of the package and as a script for the page: what is packed comes back."""

import json

import pytest
import torch
from torch import nn

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.live import (
    FILE,
    as_json,
    as_script,
    from_json,
    from_script,
    live_model,
    packed,
    quantise_,
    quantised_rows,
    unpacked,
)
from tformer_book.kit.records import recorded
from tformer_lib import TransformerConfig
from tformer_lib.analysis.weights import attention_weights
from tformer_lib.measures.language import bits_per_character
from tformer_lib.models.gpt import GPT
from tformer_lib.training import count_parameters


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
    content = from_script(as_script(as_json(model, "abc\n</script>é", {"D": 8, "context": 16})))
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


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"parameters": [], "data": ""}', "3"])
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match="as_json"):
        from_json(text)


def test_the_live_model_predicts_as_was_recorded():
    model, tokenizer = live_model()
    results = recorded("live_model")["results"]
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    assert bits_per_character(model, held_out, 64) == pytest.approx(results["held_out_eight_bits"], abs=1e-3)
    assert count_parameters(model) == results["parameters"]
    assert not model.training
    assert attention_weights(model, (held_out[None, :8],)).shape == (1, 4, 4, 8, 8)


def test_the_live_model_exported_again_is_the_same_file(tmp_path):
    model, tokenizer = live_model()
    content = json.loads(FILE.read_text("utf8"))
    facts = {name: value for name, value in content.items() if name not in ("letters", "parameters", "data")}
    again = tmp_path / "again.json"
    again.write_text(as_json(model, tokenizer.alphabet, facts), "utf8")
    copy, _ = live_model(again)
    for a, b in zip(model.parameters(), copy.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0)
    assert facts == {"D": 128, "H": 4, "M": 4, "F": 341, "base": 100.0, "context": 128}


def test_loading_the_live_model_draws_no_random_numbers():
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    live_model()
    assert torch.equal(torch.rand(2), wanted)


def test_a_file_with_another_model_is_refused(tmp_path):
    other = tmp_path / "other.json"
    other.write_text(as_json(small_model(), "abcdefghijk", {}), "utf8")
    with pytest.raises(ValueError, match=r"other\.json holds another model"):
        live_model(other)
    with pytest.raises(FileNotFoundError):
        live_model(tmp_path / "none.json")
