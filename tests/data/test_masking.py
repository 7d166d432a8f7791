"""Holes: how many, where, and what stands in them; and the batches of pre-training."""

import os
import random
import subprocess
import sys
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_lib.core.tokens import IGNORED
from tformer_lib.data.masking import PretrainingBatches, mask_tokens
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config, pretraining_loss
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.tokenizers.wordpiece import SPECIALS

N_WORDS = 100
TOKENIZER = WordPieceTokenizer([*(f"w{i}" for i in range(50)), *SPECIALS, *(f"w{i}" for i in range(50, 100))])
SPECIAL = torch.tensor(list(TOKENIZER.special_tokens.values()))
ORDINARY = torch.tensor([i for i in range(TOKENIZER.vocab_size) if i not in SPECIAL])
MASK = TOKENIZER.special_tokens["[MASK]"]
SIGMAS = 4.5


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def near(count, n, p):
    """Whether `count` successes in `n` trials are within the band around n p."""
    return abs(count - n * p) < SIGMAS * (n * p * (1 - p)) ** 0.5


def even(tokens):
    """Whether the ordinary tokens are equally frequent: their chi-square is within the band."""
    counts = tokens.bincount(minlength=TOKENIZER.vocab_size)[ORDINARY].double()
    n_cells, expected = len(counts), counts.mean()
    chi_square = ((counts - expected) ** 2 / expected).sum()
    return abs(chi_square - (n_cells - 1)) < SIGMAS * (2 * (n_cells - 1)) ** 0.5


@pytest.fixture(scope="module")
def many():
    """256,000 tokens, an eighth of them special, with what became of them."""
    tokens = torch.randint(TOKENIZER.vocab_size, (2_000, 128), generator=seeded(1))
    special = torch.isin(tokens, SPECIAL) | (torch.rand(tokens.shape, generator=seeded(2)) < 0.1)
    tokens = torch.where(special, SPECIAL[tokens % len(SPECIAL)], tokens)
    inputs, targets = mask_tokens(tokens, TOKENIZER, generator=seeded(3))
    return tokens, special, inputs, targets


def test_fifteen_in_a_hundred_are_chosen_whatever_they_are(many):
    tokens, special, _, targets = many
    chosen = targets != IGNORED
    assert special.sum() > 30_000
    assert not chosen[special].any()
    assert near(chosen.sum().item(), (~special).sum().item(), 0.15)
    assert even(tokens[chosen])
    ordinary_pair = ~special[:, 1:] & ~special[:, :-1]
    both = chosen[:, 1:] & chosen[:, :-1]
    assert near(
        both.sum().item(), ordinary_pair.sum().item(), 0.15**2
    )  # neighbours do not know of each other


def test_of_the_chosen_eighty_ten_and_ten_in_a_hundred(many):
    tokens, _, inputs, targets = many
    chosen = targets != IGNORED
    n = chosen.sum().item()
    masked, stayed = inputs[chosen] == MASK, inputs[chosen] == tokens[chosen]
    drawn = ~masked & ~stayed
    assert near(masked.sum().item(), n, 0.8)
    assert near(stayed.sum().item(), n, 0.1 + 0.1 / N_WORDS)  # a random token may be the same again
    assert near(drawn.sum().item(), n, 0.1 - 0.1 / N_WORDS)
    for group in (masked, drawn):  # the lot falls without regard to the token
        assert even(tokens[chosen][group])


def test_random_tokens_are_ordinary_and_all_alike(many):
    tokens, _, inputs, targets = many
    drawn = inputs[(targets != IGNORED) & (inputs != MASK) & (inputs != tokens)]
    assert not torch.isin(drawn, SPECIAL).any()
    assert even(drawn)


def test_places_that_are_not_chosen_stay_and_targets_are_the_truth(many):
    tokens, _, inputs, targets = many
    chosen = targets != IGNORED
    assert torch.equal(targets[chosen], tokens[chosen])
    assert torch.equal(inputs[~chosen], tokens[~chosen])


@given(
    rows=st.integers(1, 4),
    length=st.integers(1, 9),
    share=st.floats(1e-6, 1.0),
    seed=st.integers(0, 99),
)
def test_masking_holds_at_any_shape_and_share(rows, length, share, seed):
    tokens = torch.randint(TOKENIZER.vocab_size, (rows, length), generator=seeded(seed))
    tokens[0, 0] = 0  # an ordinary one
    before, state = tokens.clone(), torch.get_rng_state()
    inputs, targets = mask_tokens(tokens, TOKENIZER, share=share, generator=seeded(seed))
    assert torch.equal(tokens, before)
    assert torch.equal(state, torch.get_rng_state())
    chosen = targets != IGNORED
    assert chosen.any()
    assert not chosen[torch.isin(tokens, SPECIAL)].any()
    assert torch.equal(torch.where(chosen, targets, inputs), tokens)
    assert not torch.isin(inputs[chosen], SPECIAL[SPECIAL != MASK]).any()
    again = mask_tokens(tokens, TOKENIZER, share=share, generator=seeded(seed))
    assert all(torch.equal(x, y) for x, y in zip(again, (inputs, targets), strict=True))
    if share == 1:
        assert torch.equal(chosen, ~torch.isin(tokens, SPECIAL))


def test_without_a_generator_the_global_one_draws():
    tokens = torch.zeros(4, 50, dtype=torch.long)
    torch.manual_seed(0)
    first = mask_tokens(tokens, TOKENIZER)
    second = mask_tokens(tokens, TOKENIZER)
    torch.manual_seed(0)
    assert torch.equal(first[0], mask_tokens(tokens, TOKENIZER)[0])
    assert not torch.equal(first[1], second[1])


def test_the_one_place_of_a_batch_without_any_is_drawn():
    tokens = torch.tensor([[int(SPECIAL[2]), 7, 8, 9, int(SPECIAL[3])]])
    places = [
        (mask_tokens(tokens, TOKENIZER, share=1e-9, generator=seeded(s))[1] != IGNORED) for s in range(300)
    ]
    counts = torch.cat(places).sum(dim=0)
    assert counts.sum() == 300
    assert (counts[1:4] > 70).all()


@pytest.mark.parametrize("share", [0, -0.1, 1.01, float("nan")])
def test_share_is_a_probability(share):
    with pytest.raises(ValueError, match=r"probability in \(0, 1\]"):
        mask_tokens(torch.zeros(1, 2, dtype=torch.long), TOKENIZER, share=share)


def test_masking_errors():
    with pytest.raises(ValueError, match=r"\(B, N\) of torch.long, got \(3,\)"):
        mask_tokens(torch.zeros(3, dtype=torch.long), TOKENIZER)
    with pytest.raises(ValueError, match=r"got .* of torch.int32"):
        mask_tokens(torch.zeros(1, 3, dtype=torch.int32), TOKENIZER)
    for bad in (-1, TOKENIZER.vocab_size):
        with pytest.raises(ValueError, match="numbered 0 to 104"):
            mask_tokens(torch.tensor([[0, bad]]), TOKENIZER)
    for empty in (SPECIAL[None], torch.zeros(0, 4, dtype=torch.long)):
        with pytest.raises(ValueError, match="no ordinary token"):
            mask_tokens(empty, TOKENIZER)
    with pytest.raises(ValueError, match=r"with \[MASK\]: its special tokens are \[UNK\]"):
        mask_tokens(torch.zeros(1, 2, dtype=torch.long), WordPieceTokenizer(["[UNK]", "a"], ["[UNK]"]))


# A corpus that knows itself: word w of sentence s of document d is the token d*s*w*.
LENGTHS = [[2 + (3 * d + 5 * s * s) % 9 for s in range(6 + d)] for d in range(5)]
DOCUMENTS = [
    [" ".join(f"d{d}s{s}w{w}" for w in range(n)) for s, n in enumerate(lengths)]
    for d, lengths in enumerate(LENGTHS)
]
WORDS = [word for sentences in DOCUMENTS for sentence in sentences for word in sentence.split()]
KNOWN = WordPieceTokenizer([*SPECIALS, *WORDS])


def batches(seed=0, steps=4, **other):
    settings = {"batch": 32, "length": 24, **other}
    return PretrainingBatches(DOCUMENTS, KNOWN, steps=steps, seed=seed, **settings)


def originals(batch):
    """Each row's spans as words, with its label, after filling the holes."""
    inputs, segments, mask, targets, labels = batch
    tokens = torch.where(targets != IGNORED, targets, inputs)
    for row, ids, here, label in zip(tokens, segments, mask[:, 0, 0], labels.tolist(), strict=True):
        words = [KNOWN.tokens[i] for i in row[here]]
        assert words[0] == "[CLS]"
        assert words[-1] == "[SEP]"
        assert (row[~here] == KNOWN.special_tokens["[PAD]"]).all()
        middle = words.index("[SEP]")
        assert ids.tolist() == [0] * (middle + 1) + [1] * (len(words) - middle - 1) + [0] * int((~here).sum())
        yield words[1:middle], words[middle + 1 : -1], label


def next_to(words):
    return all(WORDS.index(b) == WORDS.index(a) + 1 for a, b in pairwise(words))


def test_half_of_the_second_spans_follow_and_half_are_of_another_document():
    labels, room, seen = 0, 24 - 3, set()
    for batch in batches(steps=60):
        for first, second, label in originals(batch):
            assert next_to(first)
            assert next_to(second)
            assert second[0].endswith("w0")
            assert (len(first) + len(second)) <= room
            if label == 0:
                assert next_to([first[-1], second[0]])
                assert first[0][:2] == second[0][:2]
            else:
                assert first[0][:2] != second[0][:2]
            labels += label
            seen |= {*first, *second}
    assert near(labels, 60 * 32, 0.5)
    assert seen == set(WORDS)


def test_the_same_batches_on_every_pass_and_others_for_another_seed():
    data = batches(seed=7)
    random.seed(1)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = list(data)
    assert torch.equal(state, torch.get_rng_state())
    random.seed(2)
    torch.manual_seed(2)
    assert len(data) == len(first) == 4
    for again in (list(data), list(batches(seed=7))):
        for a, b in zip(first, again, strict=True):
            assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert not torch.equal(first[0][0], next(iter(batches(seed=8)))[0])
    assert not torch.equal(first[0][0], first[1][0])


def test_the_batches_neither_depend_on_the_hash_seed_nor_draw_from_the_global_generator():
    code = (
        "import random; from tformer_lib.data.masking import PretrainingBatches as P;"
        "from tformer_lib.tokenizers import WordPieceTokenizer as W;"
        "d = [['a cat sat.', 'the dog ran.', 'it was late.'], ['we read.', 'they wrote.']];"
        "t = W.train(' '.join(s for x in d for s in x), 60);"
        "before = random.getstate();"
        "print([x[0].tolist() for x in P(d, t, batch=4, length=16, steps=3)]);"
        "assert random.getstate() == before"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1
    assert len(printed.pop()) > 100


def test_without_pairs_a_row_is_one_span():
    pads = 0
    for inputs, segments, mask, targets, labels in batches(pairs=False, steps=20):
        assert not segments.any()
        assert not labels.any()
        tokens = torch.where(targets != IGNORED, targets, inputs)
        for row, here in zip(tokens, mask[:, 0, 0], strict=True):
            words = [KNOWN.tokens[i] for i in row[here]]
            assert (words[0], words[-1]) == ("[CLS]", "[SEP]")
            assert next_to(words[1:-1])
            assert words[1].endswith("w0")
            assert len({word[:2] for word in words[1:-1]}) == 1
            pads += int((~here).sum())
    assert pads > 0  # at the end of a document


def test_the_share_of_the_tokens_chosen():
    def chosen(**options):
        asked = words = 0
        for inputs, _, _, targets, _ in batches(steps=40, **options):
            tokens = torch.where(targets != IGNORED, targets, inputs)
            words += int((tokens >= len(SPECIALS)).sum())
            asked += int((targets != IGNORED).sum())
        return asked / words

    assert chosen() == pytest.approx(0.15, abs=0.02)
    assert chosen(share=0.4) == pytest.approx(0.4, abs=0.03)
    assert chosen(share=1) == 1


def test_a_batch_is_what_the_loss_takes():
    torch.manual_seed(0)
    model = PretrainingBERT(
        BERT(bert_config(d_model=8, n_heads=2, n_blocks=1, dropout=0.0), KNOWN.vocab_size, max_len=24)
    )
    loss = pretraining_loss(model, next(iter(batches())))
    assert 0 < loss.item() < 20


def test_what_cannot_be_drawn_is_found_out_at_once():
    def make(documents, tokenizer=KNOWN, **other):
        PretrainingBatches(documents, tokenizer, **{"batch": 2, "length": 24, "steps": 1, **other})

    for bad in ({"batch": 0}, {"steps": 0}):
        with pytest.raises(ValueError, match="batch and steps are 1 or more"):
            make(DOCUMENTS, **bad)
    for share in (0, 1.5):
        with pytest.raises(ValueError, match="share is a probability"):
            make(DOCUMENTS, share=share)
    with pytest.raises(ValueError, match="length of 4 leaves no place"):
        make(DOCUMENTS, length=4)
    make(DOCUMENTS, length=5)
    with pytest.raises(ValueError, match="too few documents"):
        make(DOCUMENTS[:1])
    make(DOCUMENTS[:1], pairs=False)
    with pytest.raises(ValueError, match="two sentences or more"):
        make([["d0s0w0"], ["d1s0w0"]])
    with pytest.raises(ValueError, match="one of these is a string"):
        make(DOCUMENTS[0])
    with pytest.raises(ValueError, match="hold no sentence"):
        make([[""], []], pairs=False)
    with pytest.raises(ValueError, match=r"a tokenizer with \[MASK\]"):
        make(DOCUMENTS, WordPieceTokenizer([*SPECIALS, *WORDS], SPECIALS[:4]))
