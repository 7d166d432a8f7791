"""The division of pairs: no text comes back in another part, and what is near is measured rightly."""

import re
import unicodedata
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer_book.translation.data.nearness import near_duplicates, nearest_similarity
from tformer_book.translation.data.pair_split import components, split_pairs
from tformer_book.translation.data.translation import KINDS

PLACEHOLDERS = (r"%\(\w+\)\w", r"\$\{[^}]*\}", r"\{[^{}\s]*\}", r"\$[a-z_]\w*", r"%\d+", r"%[sdrif]\b")


def letters(text):
    """What should not come back: the letters, one by one, without anything between them."""
    for pattern in PLACEHOLDERS:
        text = re.sub(pattern, " ", text)
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalpha, text))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["fr", "de"])
def test_no_part_shares_a_text_of_either_side_with_another(kind, language):
    pairs = KINDS[kind].pairs(language)
    parts = split_pairs(pairs)
    assert sorted(pair for part in parts for pair in part) == sorted(pairs)
    assert [len(part) for part in parts] == [len(pairs) - 1_000, 500, 500]
    for side in (0, 1):
        for one, other in combinations(parts, 2):
            assert {letters(pair[side]) for pair in one}.isdisjoint(letters(pair[side]) for pair in other)


def test_the_seed_decides():
    pairs = [(f"{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}", f"x{n}y" * (n + 1)) for n in range(100)]
    assert split_pairs(pairs, held_out=10, seed=3) == split_pairs(list(pairs), held_out=10, seed=3)
    assert split_pairs(pairs, held_out=10, seed=3)[2] != split_pairs(pairs, held_out=10, seed=4)[2]


def test_links_run_through_either_side_and_through_others():
    pairs = [("Log in", "Ouvrir"), ("login!", "Ouvert"), ("Unlocked", "ouvert 2"), ("Close", "Fermer")]
    assert sorted(map(sorted, components(pairs))) == [[0, 1, 2], [3]]


def test_what_is_empty_after_normalisation_stays_together():
    assert len(components([("1", "2"), ("%s", "3"), ("a", "?")])) == 1


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("stuvwxyz")), max_size=30))
def test_components_are_those_of_a_flood(pairs):
    left, flooded = set(range(len(pairs))), []
    while left:
        group = {left.pop()}
        while more := {
            i for i in left for j in group if pairs[i][0] == pairs[j][0] or pairs[i][1] == pairs[j][1]
        }:
            left -= more
            group |= more
        flooded.append(sorted(group))
    assert sorted(map(sorted, components(pairs))) == sorted(flooded)


def test_a_large_group_is_trained_on():
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    many = [(f"file {number}", f"x{a}{b}") for number, (a, b) in enumerate(combinations(alphabet, 2))]
    single = [(f"{a}{b}{c}", f"{c}{b}{a}") for a, b, c in combinations(alphabet, 3)]
    train, *held_out = split_pairs([*single, *many], held_out=100)
    assert set(many) <= set(train)
    assert [len(part) for part in held_out] == [100, 100]


def test_what_nearly_is_a_held_out_text_is_not_trained_on():
    pairs = KINDS["interface"].pairs("de")
    train, validation, test = split_pairs(pairs)
    thinned, *held_out = split_pairs(pairs, apart=0.7)
    assert held_out == [validation, test]
    assert 50 < len(train) - len(thinned) < 500
    for side in ("english", "other"):
        assert near_duplicates(train, test, threshold=0.7, side=side) > 0.05
        assert near_duplicates(thinned, test, threshold=0.7, side=side) == 0
        assert near_duplicates(thinned, validation, threshold=0.7, side=side) == 0
    with pytest.raises(ValueError, match=r"apart must lie between 0 and 1, got 1\.1"):
        split_pairs(pairs, apart=1.1)


def test_too_little_to_divide():
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    assert [len(part) for part in split_pairs(pairs, held_out=1)] == [1, 1, 1]
    with pytest.raises(ValueError, match=r"3 pairs in 3 groups cannot spare two parts of 2"):
        split_pairs(pairs, held_out=2)
    with pytest.raises(
        ValueError, match=r"2 pairs in 1 groups cannot spare two parts of 1, they gave \(2, 0, 0\)"
    ):
        split_pairs([("a", "b"), ("A", "c")], held_out=1)
    with pytest.raises(ValueError, match="held_out must be 1 or more, got 0"):
        split_pairs(pairs, held_out=0)


def jaccard(one, other):
    one, other = ({f" {text} "[i : i + 3] for i in range(len(text))} for text in (one, other))
    return len(one & other) / len(one | other)


@settings(max_examples=30)
@given(
    st.lists(st.text("abc ", min_size=1), min_size=1, max_size=5),
    st.lists(st.text("abc", min_size=1), min_size=1),
)
def test_similarity_against_sets(train, test):
    train = [" ".join(text.split()) or "a" for text in train]
    expected = [max(jaccard(text, other) for other in train) for text in test]
    torch.testing.assert_close(nearest_similarity((train, test)), torch.tensor(expected))


def test_near_duplicates_by_side():
    train = [("Save the file", "Enregistrer"), ("Nothing", "Fermer la fenêtre")]
    test = [("save the files", "Fermer la fenêtre 2"), ("Something else", "Autre chose")]
    assert near_duplicates(train, test, threshold=0.7) == 0.5
    assert near_duplicates(train, test, threshold=0.99) == 0
    assert near_duplicates(train, test, threshold=1.0, side="other") == 0.5
    assert near_duplicates(train, test, threshold=0.7, side="both") == 0  # near two different pairs
    assert near_duplicates(train, test, threshold=0.0) == 1


def test_near_duplicates_errors():
    pairs = [("a", "b")]
    with pytest.raises(ValueError, match='"english", "other" or "both", got \'left\''):
        near_duplicates(pairs, pairs, side="left")
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        near_duplicates(pairs, pairs, threshold=1.5)
    with pytest.raises(ValueError, match="texts to train on and texts to test"):
        near_duplicates([], pairs)
    with pytest.raises(ValueError, match="texts to train on and texts to test"):
        nearest_similarity()
