"""`table`: values under headings, the same in HTML and as text, and clear errors for what is no table."""

import re

import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup

from tformer_book import table
from tformer_book.kit.tables import Table

ROWS = [("GRU", 148_176, 2.4567), ("6-gram", 477_104, 2.4131)]
COLUMNS = ["model", "parameters", "loss"]


@pytest.fixture
def made():
    return table(ROWS, COLUMNS, formats=".2f", units={"loss": "bits"}, caption="Held out")


def cells(shown: Table) -> list[list[str]]:
    rows = BeautifulSoup(shown._repr_html_(), "lxml").select("tbody tr")
    return [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in rows]


def sides(shown: Table) -> list[str]:
    heads = BeautifulSoup(shown._repr_html_(), "lxml").select("thead th")
    return [re.search(r"text-align: (\w+)", head["style"])[1] for head in heads]


def test_the_text_is_aligned(made):
    assert (
        repr(made)
        == str(made)
        == (
            "Held out\n"
            "model   parameters  loss (bits)\n"
            "GRU        148,176         2.46\n"
            "6-gram     477,104         2.41"
        )
    )


def test_the_html_is_a_table_that_says_what_heads_what(made):
    page = BeautifulSoup(made._repr_html_(), "lxml")
    assert page.caption.get_text() == "Held out"
    assert [(h["scope"], h.get_text(" ")) for h in page.select("thead th")] == [
        ("col", "model"),
        ("col", "parameters"),
        ("col", "loss bits"),
    ]
    assert [(h["scope"], h.get_text()) for h in page.select("tbody th")] == [
        ("row", "GRU"),
        ("row", "6-gram"),
    ]
    assert cells(made) == [["GRU", "148,176", "2.46"], ["6-gram", "477,104", "2.41"]]
    assert "tformer-scroll" in page.div["class"]
    assert "overflow-x: auto" in page.div["style"]


def test_the_style_suits_light_and_dark(made):
    html = made._repr_html_()
    assert set(re.findall(r"#[0-9a-f]{3,6}|rgba?\([^)]*\)", html)) == {"rgba(128, 128, 128, .45)"}
    assert set(re.findall(r"(?<![-\w])(?:color|background)[\w-]*: *([^;\"]+)", html)) <= {"inherit"}


def test_it_is_the_same_each_time(made):
    again = table(ROWS, COLUMNS, formats=".2f", units={"loss": "bits"}, caption="Held out")
    assert (repr(again), again._repr_html_()) == (repr(made), made._repr_html_())
    assert "0x" not in repr(made)


def test_what_is_text_is_escaped():
    shown = table([("a < b & c", 1)], ["<i>", "n"], units={"n": "<u>"}, caption="<b>")
    assert cells(shown) == [["a < b & c", "1"]]
    assert not re.search("<[ibu]>", shown._repr_html_())


def test_numbers_stand_right_and_text_left():
    assert sides(table([("a", 1, 0.5, "x", None)], ["r", "i", "f", "s", "n"])) == [
        "left",
        "right",
        "right",
        "left",
        "right",
    ]
    assert sides(table([("a", 1)], ["r", "i"], align={"r": "center", "i": "left"})) == ["center", "left"]
    assert sides(table([("a", 1), ("b", "many")], ["r", "i"])) == ["left", "left"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345, "12,345"),
        (0.123456, "0.123"),
        (1e-7, "10⁻⁷"),
        (2.5e21, "2.5 × 10²¹"),
        (True, "yes"),
        (None, "–"),
        ("mean", "mean"),
        (torch.tensor(3), "3"),
        (torch.tensor([0.5]), "0.5"),
        (np.float32(0.25), "0.25"),
        (np.int64(1000), "1,000"),
        (-3.0, "-3"),
    ],
)
def test_values_without_a_format(value, text):
    assert cells(table([("a", value)], ["row", "value"])) == [["a", text]]


def test_one_format_is_for_all_numbers_that_are_not_whole():
    assert cells(table([(1000, 0.256, 0.5, "0.5")], list("abcd"), formats=".0%")) == [
        ["1,000", "26%", "50%", "0.5"]
    ]


def test_columns_have_formats_of_their_own():
    formats = {"b": ".1f", "c": lambda pair: f"{pair[0]} of {pair[1]}", "d": "d"}
    shown = table([("x", 3, (2, 5), 4000), ("y", None, (1, 5), 5)], list("abcd"), formats=formats)
    assert cells(shown) == [["x", "3.0", "2 of 5", "4000"], ["y", "–", "1 of 5", "5"]]


@pytest.mark.parametrize(("value", "text"), [(-0.001, "0.00"), (-0.01, "-0.01"), (-0.0, "0.00")])
def test_what_rounds_to_nothing_has_no_sign(value, text):
    assert cells(table([("a", value)], ["r", "v"], formats=".2f")) == [["a", text]]


def test_rows_may_be_mappings_in_any_order():
    assert cells(table([{"b": 2, "a": 1}], ["a", "b"])) == [["1", "2"]]
    assert cells(table(({"a": i} for i in range(2)), ["a"])) == [["0"], ["1"]]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([(1, 2), (1,)], ["a", "b"]), ValueError, r"row 1 has 1 values for the 2 columns \['a', 'b'\]"),
        (([(1, 2, 3)], ["a", "b"]), ValueError, "row 0 has 3 values"),
        (([{"a": 1}], ["a", "b"]), ValueError, r"row 0 lacks \['b'\]"),
        (([{"a": 1, "c": 2}], ["a"]), ValueError, r"has \['c'\] beside"),
        (([], ["a"]), ValueError, "at least one row"),
        (([()], []), ValueError, "columns with names"),
        (([(1, 2)], ["a", "a"]), ValueError, "names of their own"),
        ((["ab"], ["a", "b"]), TypeError, "row 0 is 'ab'"),
        (([1], ["a"]), TypeError, "row 0 is 1"),
        (("ab", ["a"]), TypeError, "sequence of rows"),
        (({"a": 1}, ["a"]), TypeError, "sequence of rows"),
        (([(1,)], "a"), TypeError, "sequence of columns"),
    ],
)
def test_what_is_no_table(arguments, error, words):
    with pytest.raises(error, match=words):
        table(*arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"formats": {"c": ".2f"}}, "formats names the column 'c', the table has"),
        ({"units": {"c": "s"}}, "units names the column 'c'"),
        ({"align": {"c": "left"}}, "align names the column 'c'"),
        ({"align": {"a": "middle"}}, "aligned 'middle'"),
        ({"formats": {"b": "d"}}, r"row 0, column 'b': the format 'd' does not fit 0\.5"),
        ({"formats": "x"}, "the format 'x' does not fit"),
    ],
)
def test_options_that_do_not_fit(options, words):
    with pytest.raises(ValueError, match=words):
        table([(1, 0.5)], ["a", "b"], **options)
