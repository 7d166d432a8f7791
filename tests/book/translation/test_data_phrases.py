"""Phrases of CLDR: many, distinct, the same everywhere, and with word orders that differ."""

import random
import re
import subprocess
import sys

import pytest

from tformer_book.translation.data.phrase_names import both, counts, leaves
from tformer_book.translation.data.phrases import phrase_pairs


@pytest.mark.parametrize("language", ["fr", "de"])
def test_more_than_nine_thousand_digits_aside(language):
    pairs = phrase_pairs(language)
    assert len({re.sub(r"\d+", "0", english) for english, _ in pairs}) > 9_000
    assert len({english for english, _ in pairs}) == len(pairs)
    for english, other in pairs:
        assert english.casefold() != other.casefold()
        for text in (english, other):
            assert re.search(r"[^\W\d_]{2}", text)
            assert not re.search(r"[{}\n\u00a0\u2009\u202f]| {2}|^ | $|None", text)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "fr",
            [
                ("South Korea", "Corée du Sud"),
                ("1 square mile", "1 mille carré"),
                ("French (Canada)", "français (Canada)"),
                ("in 1 week", "dans 1 semaine"),
            ],
        ),
        (
            "de",
            [
                ("South Korea", "Südkorea"),
                ("1 square mile", "1 Quadratmeile"),
                ("French (Canada)", "Französisch (Kanada)"),
                ("in 1 week", "in 1 Woche"),
            ],
        ),
    ],
)
def test_known_names(language, expected):
    found = dict(phrase_pairs(language))
    for english, other in expected:
        assert found[english] == other


@pytest.mark.parametrize(
    ("language", "day"), [("fr", r"\w+ (\d+) \w+ (\d+)"), ("de", r"\w+, (\d+)\. \w+ (\d+)")]
)
def test_dates_put_the_day_before_the_month(language, day):
    dates = [
        (re.fullmatch(r"(\w+day), (\w+) (\d+), (\d{4})", english), other)
        for english, other in phrase_pairs(language)
    ]
    dates = [(english, other) for english, other in dates if english]
    assert len({english[1] + english[2] for english, _ in dates}) == 84  # every weekday in every month
    for english, other in dates:
        written = re.fullmatch(day, other)
        assert written
        assert written.groups() == (english[3], english[4])


@pytest.mark.parametrize("language", ["fr", "de"])
def test_clocks_of_twelve_and_of_twenty_four_hours_agree(language):
    clocks = 0
    for english, other in phrase_pairs(language):
        if clock := re.search(r"\b(\d+):(\d\d) ([AP])M ", english):
            clocks += 1
            hour = int(clock[1]) % 12 + (12 if clock[3] == "P" else 0)
            assert f"{hour:02}:{clock[2]} " in other
    assert clocks > 500


def test_lists_name_the_same_things():
    names = dict(phrase_pairs("de"))
    seen = 0
    for english, other in names.items():
        if three := re.fullmatch(r"([\w ]+), ([\w ]+), (and|or) ([\w ]+)", english):
            theirs = [names.get(three[i], three[i]) for i in (1, 2, 4)]
            seen += other == f"{theirs[0]}, {theirs[1]} {'und' if three[3] == 'and' else 'oder'} {theirs[2]}"
    assert seen > 300


def test_the_same_in_another_process():
    script = "from tformer_book.translation.data.phrases import *; print(ascii(phrase_pairs('de')[::97]))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ascii(phrase_pairs("de")[::97])


def test_counting():
    assert counts("one", random.Random(0)) == ["1"]
    assert all(2 <= int(number) <= 99 for number in counts("other", random.Random(0)))


def test_leaves_are_where_both_have_a_text():
    one = {"a": "x", "b": {"c": "y", "d": 3}, "e": "z"}
    other = {"a": "X", "b": {"c": "Y", "d": "D"}, "f": "F"}
    assert list(leaves(one, other)) == [(("a",), "x", "X"), (("b", "c"), "y", "Y")]


def test_both():
    assert both("fr", lambda *things, locale: f"{locale}{things}", 1, 2) == ("en(1, 2)", "fr(1, 2)")
    assert both("fr", lambda *, locale: None) == ("", "")


def test_errors():
    with pytest.raises(ValueError, match="got 'es'"):
        phrase_pairs("es")
