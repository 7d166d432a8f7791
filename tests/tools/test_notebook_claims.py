"""What the site makes of claims: numbers rounded to their bands, and code that only checks."""

import pytest
from notebook_claims import number_text, only_checks, rounded_text

ROUNDED = {
    (0.63718, "", 0.61, 0.67): "0.64",
    (0.18243, "nats", 0.18, 0.19): "0.182 nats",
    (0.89921, "", 0.84, 0.94): "0.90",  # the zero tells something
    (148_176.3, "", 140_000, 160_000): "148,000",
    (1_234_567.0, "", 1e6, 2e6): "1,200,000",
    (231.2, "", 150, 700): "230",  # two digits at least
    (4.178e-6, "", 0, 1e-5): "4.2 × 10⁻⁶",
    (96.27, "%", 95, 98): "96.3%",
    (5.4, "times", 1.4, 15): "5.4 times",
    (-1.433, "points", -10, 8): "-1 points",  # a band of both signs says little of the number
    (0.00004, "", -0.006, 0.006): "0.000",
    (-0.00004, "", -0.006, 0.006): "0.000",
    (0.0, "", 0, 1e-5): "0",
    (7.0, "of 12 seeds", 6, 12): "7 of 12 seeds",
    (0.009912, "", 0.002, 0.00995): "0.0099",
    (0.99996, "", 0.9, 0.99997): "0.99996",  # 1.000 would be outside of its band
    (1.54e14, "", 1e14, 2e14): "1.5 × 10¹⁴",
}


@pytest.mark.parametrize(("claim", "text"), ROUNDED.items(), ids=ROUNDED.values())
def test_a_number_has_the_digits_that_its_band_tells(claim, text):
    assert rounded_text(*claim) == text


@pytest.mark.parametrize("value", [0.0, 13.0, 0.123456, 148_176.0, 1.5e-7])
def test_an_exact_number_stays_exact(value):
    assert rounded_text(value, "%", value, value) == number_text(value, "%")


@pytest.mark.parametrize("value", [0.61, 0.6149, 0.64, 0.6651, 0.67, 1e-3 + 0.61])
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1, 1e3])
def test_a_rounded_number_is_in_its_band(value, scale):
    low, high = 0.61 * scale, 0.67 * scale
    digits, _, power = rounded_text(value * scale, "", low, high).replace(",", "").partition(" × 10")
    shown = float(digits) * 10 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)
    assert low * (1 - 1e-9) <= shown <= high * (1 + 1e-9)


@pytest.mark.parametrize(
    "source",
    [
        "assert a == b",
        "import torch\n\ntorch.testing.assert_close(a, b)",
        'claim("a.b", 1, (0, 2), "one")',
        'check("a.f", f)',
        "for a in found:\n    if a:\n        assert a == b",
        "assert a\nassert b\nlater = f(a)\nassert later == a\nassert later != b",
        "%matplotlib inline\nassert a",
    ],
)
def test_code_that_only_checks_is_known(source):
    assert only_checks(source)


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "y = f(x)\ntorch.testing.assert_close(y, x)",
        "def f(x):\n    return x\n\n\nassert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3\nassert f(4) == 4",
        "for a in found:\n    b = f(a)\n    assert a == b",
        "assert a\nassert b\nassert c\nassert d\nprint(a)",
    ],
)
def test_code_that_computes_or_shows_does_not_only_check(source):
    assert not only_checks(source)
