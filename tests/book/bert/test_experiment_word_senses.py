"""One word, two senses: the sentences keep their rules, and the comparison is that of a plain loop."""

import pytest
import torch

from tformer_book.kit.records import recorded
from tformer_lib.tokenizers import WordPieceTokenizer


@pytest.fixture(scope="module")
def word_senses():
    """The script."""
    from tformer_book.bert.experiments import word_senses

    return word_senses


def prepared(script, word, texts):
    """The rows of a tokenizer whose vocabulary is the words."""
    known = sorted({piece for text in texts for piece in text.lower().replace(".", " .").split()})
    tokenizer = WordPieceTokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *known])
    return word, texts, [[2, *tokenizer.encode(text), 3] for text in texts], tokenizer


def test_the_sentences_keep_the_rules(word_senses):
    for word, senses in word_senses.SENTENCES.items():
        assert [len(texts) for texts in senses.values()] == [5, 5]
        texts = [text for group in senses.values() for text in group]
        word_senses.check(*prepared(word_senses, word, texts))


def test_a_sentence_that_breaks_a_rule_is_named(word_senses):
    late = prepared(word_senses, "bank", ["The bank lent.", "Now we left the bank."])
    with pytest.raises(ValueError, match=r"'Now we left the bank\.': expected 'the bank' at places 1 and 2"):
        word_senses.check(*late)
    shared = prepared(word_senses, "bank", ["The bank lent money.", "The bank kept money."])
    with pytest.raises(ValueError, match=r"share \['money'\]"):
        word_senses.check(*shared)


def test_pairs_at_one_place_are_not_compared(word_senses):
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))

    def cosine(a, b):
        return torch.cosine_similarity(x[a].double(), x[b].double(), dim=0).item()

    pairs = [(a, b) for a in range(6) for b in range(a) if (a - b) % 3]
    same = [cosine(a, b) for a, b in pairs if (a < 3) == (b < 3)]
    different = [cosine(a, b) for a, b in pairs if (a < 3) != (b < 3)]
    found = word_senses.compared(x)
    assert len(same) == len(different) == 6
    assert found["same"] == pytest.approx(sum(same) / 6, abs=1e-4)
    assert found["different"] == pytest.approx(sum(different) / 6, abs=1e-4)


def test_vectors_of_places_alone_say_nothing_and_those_of_senses_all(word_senses):
    places = torch.eye(4)[:3].repeat(2, 1) + 0.5
    found = word_senses.compared(places)
    assert found["same"] == found["different"]
    assert (found["nearest_same"], found["as_far"], found["ways"]) == (3.0, 4, 4)
    apart = places + 9 * torch.tensor([[0, 0, 0, 1.0]] * 3 + [[0.0] * 4] * 3)
    found = word_senses.compared(apart)
    assert (found["nearest_same"], found["as_far"]) == (6.0, 1)


def test_at_the_input_nothing_is_apart_as_recorded():
    for found in recorded("word_senses")["results"]["cosines"].values():
        for first, *_ in found.values():
            assert first["same"] == first["different"]
