import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib.tokenizers import CharTokenizer


def test_numbers_are_places_in_the_alphabet():
    tokenizer = CharTokenizer("cba")
    assert tokenizer.vocab_size == 3
    assert tokenizer.encode("abc") == [2, 1, 0]
    assert tokenizer.decode([2, 1, 0]) == tokenizer.decode(torch.tensor([2, 1, 0])) == "abc"
    assert tokenizer.encode("") == []


@given(st.text(min_size=1))
def test_a_text_gives_its_own_alphabet(text):
    tokenizer = CharTokenizer.from_text(text)
    assert tokenizer.alphabet == "".join(sorted(set(text)))
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_unknown_character_is_named_with_its_place():
    with pytest.raises(ValueError, match="character 2, 'é', is not in the alphabet"):
        CharTokenizer("ab").encode("abé")


@pytest.mark.parametrize("number", [-1, 2])
def test_numbers_of_no_token(number):
    with pytest.raises(ValueError, match=f"no token {number}: they are numbered 0 to 1"):
        CharTokenizer("ab").decode([0, number])


@pytest.mark.parametrize(("alphabet", "message"), [("", "is empty"), ("abca", "holds 'a' more than once")])
def test_wrong_alphabets(alphabet, message):
    with pytest.raises(ValueError, match=message):
        CharTokenizer(alphabet)


@given(alphabet=st.text(min_size=1).map(lambda text: "".join(sorted(set(text)))))
def test_save_and_load(tmp_path_factory, alphabet):
    path = tmp_path_factory.mktemp("char") / "char.json"
    CharTokenizer(alphabet).save(path)
    assert CharTokenizer.load(path) == CharTokenizer(alphabet)
    assert [p.name for p in path.parent.iterdir()] == ["char.json"]


def test_equality():
    assert CharTokenizer("ab") != CharTokenizer("ba")
    assert CharTokenizer("ab") != "ab"
    assert len({CharTokenizer("ab"), CharTokenizer("ab")}) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "character tokenizer"}, "'alphabet' is missing or is not of type"),
        ({"kind": "character tokenizer", "alphabet": 3}, "'alphabet' is missing or is not of type"),
        ({"kind": "character tokenizer", "alphabet": "aa"}, "holds 'a' more than once"),
        ({"kind": "byte-pair tokenizer", "alphabet": "ab"}, "is not a character tokenizer"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"broken\.json.*{message}"):
        CharTokenizer.load(path)
