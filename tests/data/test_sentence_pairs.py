"""Pairs: how they are packed, that they follow or not as labelled, and that lengths do not tell."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.kit.data.text import wikipedia_sentences
from tformer_lib.data.sentence_pairs import fitted, next_sentence_pairs, pack
from tformer_lib.data.sentence_spans import NEGATIVES
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.tokenizers.wordpiece import SPECIALS

TINY = WordPieceTokenizer([*SPECIALS, *"abcdefgh"])
PAD, CLS, SEP = (TINY.special_tokens[name] for name in ("[PAD]", "[CLS]", "[SEP]"))

# word w of sentence s of document d is the token d*s*w*; sentences of 1 to 9 words
DOCUMENTS = [
    [" ".join(f"d{d}s{s}w{w}" for w in range(1 + (7 * d + 4 * s * s) % 9)) for s in range(20 + d)]
    for d in range(4)
]
WORDS = [word for sentences in DOCUMENTS for sentence in sentences for word in sentence.split()]
KNOWN = WordPieceTokenizer([*SPECIALS, *WORDS])


def test_a_pair_that_fits_is_padded():
    tokens, segments = pack([5, 6], [7], TINY, 8)
    assert tokens.tolist() == [CLS, 5, 6, SEP, 7, SEP, PAD, PAD]
    assert segments.tolist() == [0, 0, 0, 0, 1, 1, 0, 0]
    assert tokens.dtype == segments.dtype == torch.long


def test_a_pair_that_does_not_fit_loses_its_outer_ends():
    tokens, segments = pack([5, 6, 7, 8], [9, 10, 11], TINY, 8)
    assert tokens.tolist() == [CLS, 6, 7, 8, SEP, 9, 10, SEP]
    assert segments.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]


def test_one_span():
    assert pack([5, 6], None, TINY, 5)[0].tolist() == [CLS, 5, 6, SEP, PAD]
    tokens, segments = pack([5, 6, 7, 8], None, TINY, 5)
    assert tokens.tolist() == [CLS, 5, 6, 7, SEP]
    assert segments.tolist() == [0] * 5


@given(st.integers(1, 40), st.integers(1, 40), st.integers(2, 50))
def test_tokens_leave_the_longer_one_by_one(n_first, n_second, room):
    first, second = n_first, n_second
    while first + second > room:  # the paper's loop
        if first > second:
            first -= 1
        else:
            second -= 1
    assert fitted(n_first, n_second, room) == (first, second)


@given(st.lists(st.integers(5, 12), min_size=1), st.lists(st.integers(5, 12), min_size=1), st.integers(5, 40))
def test_packing_keeps_what_meets_in_the_middle(first, second, length):
    tokens, segments = (x.tolist() for x in pack(first, second, TINY, length))
    assert len(tokens) == len(segments) == length
    assert tokens.count(CLS) == 1
    assert tokens.count(SEP) == 2
    middle = tokens.index(SEP)
    end = tokens.index(SEP, middle + 1)
    assert first[-(middle - 1) :] == tokens[1:middle]
    assert second[: end - middle - 1] == tokens[middle + 1 : end]
    assert end - 2 == min(len(first) + len(second), length - 3)
    assert [i for i, segment in enumerate(segments) if segment] == list(range(middle + 1, end + 1))


def test_packing_errors():
    with pytest.raises(ValueError, match="length of 4 leaves no place for 2 spans"):
        pack([5], [6], TINY, 4)
    with pytest.raises(ValueError, match="length of 2 leaves no place for 1 span"):
        pack([5], None, TINY, 2)
    for first, second in (([], None), ([], [5]), ([5], [])):
        with pytest.raises(ValueError, match="span without tokens"):
            pack(first, second, TINY, 9)
    with pytest.raises(ValueError, match=r"with \[PAD\]: its special tokens are \[UNK\]"):
        pack([1], None, WordPieceTokenizer(["[UNK]", "a"], ["[UNK]"]), 9)


def spans(pairs):
    """(words of A, words of B, label) of each row."""
    for row, label in zip(pairs[0], pairs[3].tolist(), strict=True):
        words = [KNOWN.tokens[i] for i in row if i != KNOWN.special_tokens["[PAD]"]]
        middle = words.index("[SEP]")
        yield words[1:middle], words[middle + 1 : -1], label


def place(word):
    document, sentence = word[1:].split("w")[0].split("s")
    return int(document), int(sentence)


@pytest.mark.parametrize("negatives", NEGATIVES)
@pytest.mark.parametrize("length", [8, 16, 40])
def test_pairs_are_what_their_labels_say(negatives, length):
    pairs = next_sentence_pairs(DOCUMENTS, KNOWN, count=301, length=length, seed=3, negatives=negatives)
    tokens, segments, mask, labels = pairs
    assert tokens.shape == segments.shape == (301, length)
    assert mask.shape == (301, 1, 1, length)
    assert torch.equal(mask[:, 0, 0], tokens != KNOWN.special_tokens["[PAD]"])
    assert labels.sum() == 150
    assert not (labels[:20] == labels[0]).all()  # mixed
    for first, second, label in spans(pairs):
        for span in (first, second):
            assert all(WORDS.index(b) == WORDS.index(a) + 1 for a, b in pairwise(span))
        (d, s), (e, t) = place(first[-1]), place(second[0])
        assert second[0].endswith("w0")
        assert first[-1] == DOCUMENTS[d][s].split()[-1]
        if label == 0:
            assert (e, t) == (d, s + 1)
        elif negatives == "other document":
            assert e != d
        elif negatives == "same document":
            assert e == d
            assert t > s + 2 or place(second[-1])[1] < place(first[0])[1] - 1
        else:  # the end of the second and the beginning of the first have met before they were cut
            assert e == d
            assert t <= s
            assert place(second[-1])[1] < place(first[0])[1] + 1


def test_swapped_spans_that_fit_follow_each_other_the_other_way_round():
    pairs = next_sentence_pairs(DOCUMENTS, KNOWN, count=200, length=200, seed=3, negatives="swapped")
    swapped = [(first, second) for first, second, label in spans(pairs) if label]
    assert len(swapped) == 100
    for first, second in swapped:
        assert WORDS.index(first[0]) == WORDS.index(second[-1]) + 1


def test_pairs_follow_their_seed():
    def draw(seed):
        return next_sentence_pairs(DOCUMENTS, KNOWN, count=20, length=16, seed=seed)

    torch.manual_seed(0)
    first = draw(1)
    torch.manual_seed(1)
    assert all(torch.equal(x, y) for x, y in zip(first, draw(1), strict=True))
    assert not torch.equal(first[0], draw(2)[0])


def test_a_second_span_that_begins_like_the_true_one_is_passed_over():
    documents = [["a", "b"], ["c", "b"], ["d", "e"]]
    pairs = next_sentence_pairs(documents, TINY, count=200, length=5)
    rows = {
        (TINY.tokens[row[1]], TINY.tokens[row[3]])
        for row, label in zip(*(pairs[i].tolist() for i in (0, 3)), strict=True)
        if label
    }
    assert rows == {("a", "e"), ("c", "e"), ("d", "b")}


def test_a_document_too_short_for_a_span_elsewhere_is_left_out():
    documents = [["a", "b", "c"], list("abcdefgh")]
    pairs = next_sentence_pairs(documents, TINY, count=40, length=5, negatives="same document")
    assert pairs[3].sum() == 20
    with pytest.raises(ValueError, match="too few documents or sentences"):
        next_sentence_pairs(documents[:1], TINY, count=2, length=5, negatives="same document")


def test_pair_errors():
    with pytest.raises(ValueError, match=r"negatives is one of 'other document', .*got 'random'"):
        next_sentence_pairs(DOCUMENTS, KNOWN, count=2, length=9, negatives="random")
    with pytest.raises(ValueError, match="2 or more, got 1"):
        next_sentence_pairs(DOCUMENTS, KNOWN, count=1, length=9)
    with pytest.raises(ValueError, match="too few documents or sentences"):
        next_sentence_pairs(DOCUMENTS[:1], KNOWN, count=2, length=9)


@pytest.fixture(scope="module")
def wikipedia():
    documents = wikipedia_sentences("validation")
    text = "\n".join(sentence for sentences in documents for sentence in sentences[:100])
    return documents, WordPieceTokenizer.train(text, 700)


@pytest.mark.parametrize("negatives", NEGATIVES)
@pytest.mark.parametrize("length", [32, 96])
def test_on_real_text_lengths_do_not_tell_the_label(wikipedia, negatives, length):
    documents, tokenizer = wikipedia
    n = 4_000
    tokens, segments, mask, labels = next_sentence_pairs(
        documents, tokenizer, count=2 * n, length=length, negatives=negatives
    )
    n_second = segments.sum(dim=1)
    n_all = mask[:, 0, 0].sum(dim=1)
    for lengths in (n_second, n_all - n_second, n_all):
        shares = torch.stack(
            [lengths[labels == label].bincount(minlength=length + 1) / n for label in (0, 1)]
        )
        gap = shares.cumsum(dim=1).diff(dim=0).abs().max()  # Kolmogorov and Smirnov's
        assert gap < 2.2 * (2 / n) ** 0.5  # reached by chance once in 8,000 times
    assert (n_all == length).float().mean() > 0.99  # rows are full
    second = tokens[segments.bool() & (tokens != SEP)]
    assert not torch.isin(second, torch.tensor([PAD, CLS])).any()
