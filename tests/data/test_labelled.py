"""Labelled sentences: a word's label stands at its first piece and nowhere else, and batches repeat."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib.core.tokens import IGNORED
from tformer_lib.data.labelled import LabelledBatches, encode_sentences, label_first_pieces
from tformer_lib.tokenizers import WordPieceTokenizer

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "turn",
    "on",
    "the",
    "lamp",
    "##s",
    "play",
    "##ing",
    "-",
]
TOKENIZER = WordPieceTokenizer(TOKENS)
PAD, UNK, CLS, SEP = 0, 1, 2, 3


def names(row):
    return [TOKENS[i] for i in row.tolist()]


def test_words_of_several_pieces_and_padding():
    tokens, mask, first = encode_sentences([["playing", "the", "lamps"], ["on"]], TOKENIZER)
    assert names(tokens[0]) == ["[CLS]", "play", "##ing", "the", "lamp", "##s", "[SEP]"]
    assert first[0].tolist() == [-1, 0, -1, 1, 2, -1, -1]
    assert names(tokens[1]) == ["[CLS]", "on", "[SEP]", *["[PAD]"] * 4]
    assert first[1].tolist() == [-1, 0, -1, -1, -1, -1, -1]
    assert mask.shape == (2, 1, 1, 7)
    assert mask[1, 0, 0].tolist() == [True] * 3 + [False] * 4
    labels = label_first_pieces(first, [[7, 8, 9], [5]])
    assert labels[0].tolist() == [IGNORED, 7, IGNORED, 8, 9, IGNORED, IGNORED]
    assert labels[1].tolist() == [IGNORED, 5] + [IGNORED] * 5


def test_a_string_is_its_words():
    words, *_ = encode_sentences([["turn", "on", "lamps"]], TOKENIZER)
    for text in ("turn on lamps", "  Turn\ton lámps\n"):
        assert torch.equal(encode_sentences([text], TOKENIZER)[0], words)


def test_a_word_that_holds_a_sign_is_still_one_word():
    tokens, _, first = encode_sentences([["turn-on", "lamp"]], TOKENIZER)
    assert names(tokens[0]) == ["[CLS]", "turn", "-", "on", "lamp", "[SEP]"]
    assert first[0].tolist() == [-1, 0, -1, -1, 1, -1]


def test_unknown_words_have_a_place_and_empty_ones_none():
    tokens, _, first = encode_sentences([["xyz", "\u00ad", "lamp"]], TOKENIZER)  # a soft hyphen has no piece
    assert tokens[0].tolist() == [CLS, UNK, TOKENS.index("lamp"), SEP]
    assert first[0].tolist() == [-1, 0, 2, -1]
    assert label_first_pieces(first, [[4, 5, 6]])[0].tolist() == [IGNORED, 4, 6, IGNORED]


def test_a_name_of_a_special_token_in_a_sentence_is_text():
    tokens, *_ = encode_sentences([["[SEP]", "lamp"]], TOKENIZER)
    assert tokens[0].tolist().count(SEP) == 1


@pytest.mark.parametrize(
    ("length", "kept", "places"),
    [
        (7, ["play", "##ing", "the", "lamp", "##s"], [0, -1, 1, 2, -1]),
        (100, ["play", "##ing", "the", "lamp", "##s"], [0, -1, 1, 2, -1]),
        (6, ["play", "##ing", "the", "lamp"], [0, -1, 1, 2]),  # half of the last word: still labelled
        (5, ["play", "##ing", "the"], [0, -1, 1]),
        (3, ["play"], [0]),
    ],
)
def test_a_long_sentence_loses_its_end(length, kept, places):
    tokens, mask, first = encode_sentences([["playing", "the", "lamps"]], TOKENIZER, length=length)
    assert names(tokens[0]) == ["[CLS]", *kept, "[SEP]"]
    assert first[0].tolist() == [-1, *places, -1]
    assert mask.all()
    labels = label_first_pieces(first, [[1, 2, 3]])
    assert labels[labels != IGNORED].tolist() == list(range(1, 1 + sum(p >= 0 for p in places)))


@given(
    st.lists(st.lists(st.sampled_from(["turn", "lamps", "playing", "xyz", "on-the"]), max_size=6), min_size=1)
)
def test_every_word_is_labelled_once(sentences):
    tokens, mask, first = encode_sentences(sentences, TOKENIZER)
    tags = [[10 * b + i for i in range(len(words))] for b, words in enumerate(sentences)]
    labels = label_first_pieces(first, tags)
    assert [row[row != IGNORED].tolist() for row in labels] == tags
    assert torch.equal(mask[:, 0, 0], tokens != PAD)
    for row, words in zip(tokens, sentences, strict=True):
        pieces = [i for word in words for i in TOKENIZER.encode(word)]
        assert row[: len(pieces) + 2].tolist() == [CLS, *pieces, SEP]


def test_errors_of_encoding():
    with pytest.raises(ValueError, match="no sentences"):
        encode_sentences([], TOKENIZER)
    with pytest.raises(ValueError, match="3 or more, got 2"):
        encode_sentences(["on"], TOKENIZER, length=2)
    with pytest.raises(ValueError, match=r"no special token '\[CLS\]'"):
        encode_sentences(
            ["on"], WordPieceTokenizer(["[PAD]", "[UNK]", "[SEP]", "on"], ["[PAD]", "[UNK]", "[SEP]"])
        )


def test_errors_of_labels():
    _, _, first = encode_sentences([["on", "lamps"], ["the"]], TOKENIZER)
    with pytest.raises(ValueError, match="2 sentences and tags for 1"):
        label_first_pieces(first, [[1, 2]])
    with pytest.raises(ValueError, match="sentence 0 has a word 1, and its tags end at 0"):
        label_first_pieces(first, [[1], [2]])


def rows(n=10, width=6):
    """Row r holds the token r + 1, r % 4 + 2 times; its label is r."""
    tokens = torch.zeros(n, width, dtype=torch.int64)
    for r in range(n):
        tokens[r, : r % 4 + 2] = r + 1
    return tokens, (tokens != 0)[:, None, None, :], torch.arange(n)


def test_batches_keep_rows_together_and_drop_common_padding():
    tokens, mask, labels = rows()
    batches = LabelledBatches(tokens, mask, labels, batch=3, steps=20)
    assert len(batches) == len(list(batches)) == 20
    for some, its, numbers in batches:
        assert some.shape[0] == 3
        assert some.shape[1] == max(int(n) % 4 + 2 for n in numbers)
        assert its.shape == (3, 1, 1, some.shape[1])
        assert torch.equal(its[:, 0, 0], some != 0)
        assert torch.equal(some[:, 0], numbers + 1)


def test_labels_of_tokens_are_cut_along():
    tokens, mask, _ = rows()
    for some, _, labels in LabelledBatches(tokens, mask, tokens * 10, batch=2, steps=5):
        assert torch.equal(labels, some * 10)


def test_each_epoch_has_every_row_once_in_another_order():
    tokens, mask, labels = rows()
    seen = torch.cat([b[2] for b in LabelledBatches(tokens, mask, labels, batch=4, steps=10, seed=1)])
    epochs = seen.view(4, 10)
    assert all(sorted(epoch.tolist()) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch.tolist()) for epoch in epochs}) == 4


def test_the_same_batches_in_each_pass_whatever_else_is_drawn():
    tokens, mask, labels = rows()

    def order(batches):
        return torch.cat([b[2] for b in batches]).tolist()

    batches = LabelledBatches(tokens, mask, labels, batch=4, steps=6, seed=1)
    one = order(batches)
    torch.manual_seed(9)
    assert order(batches) == one
    assert order(LabelledBatches(tokens, mask, labels, batch=4, steps=6, seed=2)) != one


def test_a_batch_larger_than_the_data():
    tokens, mask, labels = rows(2)
    for _, _, numbers in LabelledBatches(tokens, mask, labels, batch=5, steps=2):
        assert sorted(numbers.tolist()) in ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])


def test_errors_of_batches():
    tokens, mask, labels = rows()
    with pytest.raises(ValueError, match="a label each or one a token"):
        LabelledBatches(tokens, mask, labels[:9], batch=1, steps=1)
    with pytest.raises(ValueError, match="a label each or one a token"):
        LabelledBatches(tokens[:0], mask[:0], labels[:0], batch=1, steps=1)
    for batch, steps in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="must be positive"):
            LabelledBatches(tokens, mask, labels, batch=batch, steps=steps)
