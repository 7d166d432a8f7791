"""`claim`: holds a number to its band, shows a line, and leaves a record that a program can read."""

import json
import re
import warnings

import nbformat
import notebook_claims
import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tformer_book import claim
from tformer_book.kit.claims import MIME, Claim, ClaimError, band_text, number_text

HELD = ((0.5, 2.0), "the loss of a small model", "nats")
RECORD = {"low": 0.5, "high": 2.0, "unit": "nats", "text": "the loss of a small model"}


@pytest.fixture
def shown():
    """Runs a claim in an IPython shell and returns its output's bundle."""
    InteractiveShell.instance()

    def run(*args, **kwargs):
        with capture_output() as captured:
            assert claim(*args, **kwargs) is None
        (output,) = captured.outputs
        return output.data

    yield run
    InteractiveShell.clear_instance()


def test_the_line(shown):
    data = shown("test.loss", 1.23456, *HELD)
    assert data["text/plain"] == ("the loss of a small model: 1.235 nats · held within 0.5 to 2 [test.loss]")


def test_a_pure_number_has_no_unit(shown):
    data = shown("test.ratio", 1, (0, 2), "a ratio")
    assert data["text/plain"] == "a ratio: 1 · held within 0 to 2 [test.ratio]"


def test_the_record(shown):
    data = shown("test.loss", 1.23456, *HELD)
    assert data[MIME] == {"name": "test.loss", "value": 1.23456, **RECORD}
    assert MIME == "application/vnd.tformer.claim+json"


def test_the_html_is_escaped(shown):
    data = shown("test.<b>", 1.0, (0.0, 2.0), 'x < y & "z"')
    line = BeautifulSoup(data["text/html"], "lxml").div
    assert (line["id"], line["title"]) == ("claim-test.<b>", "test.<b>")
    assert line.get_text() == 'x < y & "z" 1 · held within 0 to 2'
    assert line.strong.get_text() == "1"


def test_meaning_comes_first_and_the_name_only_on_hover(shown):
    line = BeautifulSoup(shown("test.loss", 1.23456, *HELD)["text/html"], "lxml").div
    assert line.get_text() == "the loss of a small model 1.235 nats · held within 0.5 to 2"
    assert line["class"] == ["tformer-claim"]


def test_the_style_suits_light_and_dark(shown):
    """The only colour is a grey that both grounds show; the text has the page's own."""
    html = shown("test.loss", 1.5, *HELD)["text/html"]
    assert re.findall(r"(?<![-\w])(?:color|background)[^;\"]*:", html) == []
    assert set(re.findall(r"#[0-9a-f]{3,6}|rgba?\([^)]*\)", html)) == {"rgba(128, 128, 128, .5)"}


NUMBERS = {
    (0.35477, ""): "0.3548",
    (148_176.0, ""): "148,176",
    (2_672_448.0, "parameters"): "2,672,448 parameters",
    (4.178e-05, ""): "4.178 × 10⁻⁵",
    (1.5e23, ""): "1.5 × 10²³",
    (1e-20, ""): "10⁻²⁰",
    (1e12, ""): "10¹²",
    (-0.0, ""): "0",
    (-0.05556, "nats"): "-0.05556 nats",
    (96.25, "%"): "96.25%",
    (12345.678, ""): "12,346",
}


@pytest.mark.parametrize(("number", "text"), NUMBERS.items(), ids=NUMBERS.values())
def test_numbers_are_written_as_a_reader_writes_them(number, text):
    assert number_text(*number) == text
    assert notebook_claims.number_text(*number) == text  # the site's, which has no PyTorch


@pytest.mark.parametrize(
    ("band", "text"),
    [((0.25, 0.6), "0.25 to 0.6"), ((13.0, 13.0), "exactly"), ((-1.0, 1e6), "-1 to 1,000,000")],
)
def test_a_band_in_words(band, text):
    assert band_text(*band) == notebook_claims.band_text(*band) == text


def test_a_band_of_one_number_is_exact(shown):
    assert shown("test.exact", 13, (13, 13), "all")["text/plain"] == "all: 13 · held exactly [test.exact]"


def test_the_record_survives_a_notebook(shown, tmp_path):
    """Into a notebook's output, to disk and back, and valid by the format's schema."""
    output = nbformat.v4.new_output("display_data", data=shown("test.loss", 1.5, *HELD))
    cell = nbformat.v4.new_code_cell("claim(...)", execution_count=1, outputs=[output])
    path = tmp_path / "claims.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].outputs[0].data[MIME] == {"name": "test.loss", "value": 1.5, **RECORD}


@pytest.mark.parametrize(
    "value", [torch.tensor(1.5), torch.tensor([[1.5]]), np.float32(1.5), np.array(1.5), 1.5], ids=type
)
def test_whatever_float_takes(shown, value):
    record = shown("test.value", value, *HELD)[MIME]
    assert type(record["value"]) is float
    assert record["value"] == 1.5
    json.dumps(record)


def test_a_tensor_with_a_gradient_makes_no_warning(shown):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shown("test.value", torch.tensor(1.5, requires_grad=True), *HELD)[MIME]["value"] == 1.5


@pytest.mark.parametrize("value", [0.5, 2.0])
def test_the_band_includes_its_ends(shown, value):
    assert shown("test.value", value, *HELD)[MIME]["value"] == value


def test_a_band_may_be_one_number(shown):
    assert shown("test.exact", 100, (100, 100), "all of them", "%")[MIME]["value"] == 100.0


@pytest.mark.parametrize(
    "value", [0.49, 2.01, -1.0, float("nan"), float("inf"), -float("inf"), torch.tensor(3.0)]
)
def test_out_of_band(value):
    with (
        pytest.raises(
            ClaimError, match=r"'test\.loss' does not hold: got .* nats.*\[0\.5, 2\].*small model"
        ) as e,
        capture_output() as captured,
    ):
        claim("test.loss", value, *HELD)
    assert f"{float(value):.6g}" in str(e.value)
    assert not captured.outputs
    assert isinstance(e.value, AssertionError)


@pytest.mark.parametrize(
    ("low", "high"), [(2.0, 1.0), (float("nan"), 1.0), (0.0, float("nan")), (0.0, float("inf"))]
)
def test_a_band_that_holds_nothing_or_anything(low, high):
    with pytest.raises(ValueError, match=r"'test\.loss' needs a finite band with low <= high"):
        claim("test.loss", 1.0, (low, high), "")


@pytest.mark.parametrize("band", [1.0, (1.0,), (0.0, 1.0, 2.0), "01"])
def test_a_band_is_a_pair(band):
    with pytest.raises(TypeError, match="band"):
        claim("test.loss", 1.0, band, "")


def test_not_a_number():
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        claim("test.loss", torch.ones(3), *HELD)


def test_outside_ipython_the_line_is_printed(capsys):
    claim("test.loss", 1.5, *HELD)
    assert capsys.readouterr().out.startswith("the loss of a small model: 1.5 nats")


def test_a_claim_has_no_address_in_its_text():
    record = Claim("a", 1.0, (0.0, 2.0), "t")
    assert "0x" not in "".join(str(v) for v in record._repr_mimebundle_().values())
