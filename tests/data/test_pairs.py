"""Pairs of texts: what counts as the same text, and what is no pair at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib.data.pairs import check_language, distinct_pairs, normalise, tidy


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Delete %(count)s files?", "delete 3 files"),
        ("Hello, ${name}!", "HELLO {user_name}"),
        ("%s of %1", "OF"),
        ("on $date", "On “2025-03-01”"),
        ("Straße", "STRASSE"),
        ("10 km²", "20 km2"),
        ("save_as", "Save  as…"),
    ],
)
def test_texts_that_count_as_one(one, other):
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(("one", "other"), [("a file", "files"), ("100% sure", "sure thing"), ("é", "e")])
def test_texts_that_do_not(one, other):
    assert normalise(one) != normalise(other)


def test_a_percentage_is_no_placeholder():
    assert normalise("50%sure") == "sure"
    assert normalise("use %d pages and %ds") == "use pages and ds"


@given(st.text())
def test_normal_form_has_letters_and_single_spaces_only_and_stays(text):
    form = normalise(text)
    assert all(character.isalnum() or character == " " for character in form)
    assert form == " ".join(form.split())
    assert not any(character.isdecimal() for character in form)
    assert normalise(form.upper()) == normalise(form.upper().lower())


@given(st.text())
def test_tidy_twice_is_tidy_once(text):
    assert tidy(tidy(text)) == tidy(text)


def test_tidy():
    assert tidy(" a\u00a0\u202fb\n\nc\u00ad\u200ed ") == "a b cd"
    assert tidy("e\u0301") == "é"


def test_distinct_pairs():
    pairs = [
        ("Open", "Ouvrir"),
        ("Open ", "Ouverte"),  # the second translation of one text
        ("Italic", "italic"),  # only the case differs
        ("%(number)s:", "%(number)s :"),  # nothing to translate
        ("5 m", "5 m."),
        ("a\u00a0b cd", "x yz"),
        ("Name", ""),
        ("open", "ouvrir"),
    ]
    assert distinct_pairs(pairs) == [("Open", "Ouvrir"), ("a b cd", "x yz"), ("open", "ouvrir")]


def test_languages():
    check_language("fr")
    with pytest.raises(ValueError, match=r'into "fr" \(French\) or "de" \(German\), got \'es\''):
        check_language("es")
