"""Marian's vocabulary: with the package sentencepiece where it is installed, and with a small stand-in."""

import json
import sys
from types import ModuleType

import pytest

from tests.pretrained.test_marian import reference
from tformer_lib.generation import translate
from tformer_lib.pretrained import MarianTokens, load

VOCAB = ["</s>", "<unk>", "▁the", "▁dog", "▁der", "▁Hund", ">>deu<<", "▁", "<pad>"]


class StandIn:
    """Cuts at spaces."""

    def __init__(self, model_file):
        with open(model_file, encoding="utf8") as file:
            if file.read() != "spaces":
                raise RuntimeError("could not parse")

    def encode(self, text, out_type):
        assert out_type is str
        return ["▁" + word for word in text.split()]

    def decode(self, pieces):
        return "".join(pieces).replace("▁", " ").strip()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    module = ModuleType("sentencepiece")
    module.SentencePieceProcessor = StandIn
    monkeypatch.setitem(sys.modules, "sentencepiece", module)
    for side in ("source", "target"):
        (tmp_path / f"{side}.spm").write_text("spaces", encoding="utf8")
    (tmp_path / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(VOCAB)}))
    return tmp_path


def test_sentences_to_numbers_and_back(folder):
    tokens = MarianTokens(folder)
    source, target = tokens.encode([("the dog", "der Hund"), ("cat", "")])
    assert source.tolist() == [[2, 3, 0], [1, 0, 8]]
    assert target.tolist() == [[8, 4, 5, 0], [8, 0, 8, 8]]
    assert tokens.decode(target[0].tolist()) == "der Hund"
    assert tokens.decode([]) == ""
    with pytest.raises(ValueError, match="no token has the number 9: there are 9"):
        tokens.decode([4, 9])


def test_the_language_that_is_asked_for_stays_one_piece(folder):
    tokens = MarianTokens(folder)
    source, _ = tokens.encode([(">>deu<< the dog", ""), ("the << dog", "")])
    assert source.tolist() == [[6, 2, 3, 0], [2, 1, 3, 0]]


def test_a_loaded_model_translates_with_it(folder):
    settings = {"vocab_size": 9, "pad_token_id": 8, "decoder_start_token_id": 8}
    reference(3, **settings).save_pretrained(folder)
    model, tokens = load(folder), MarianTokens(folder)
    assert (model.pad_id, model.eos_id) == (tokens.pad_id, tokens.eos_id)
    found = translate(model, tokens, ["the dog", "dog the dog"], num_beams=2, max_len=6)
    assert len(found) == 2
    assert all("<pad>" not in text for text in found)


def test_files_that_are_missing_or_damaged(folder):
    (folder / "source.spm").write_text("else")
    with pytest.raises(ValueError, match=r"source.spm is no model of SentencePiece: could not parse"):
        MarianTokens(folder)
    for text, said in (
        ("{", "vocab.json is not a JSON file"),
        ("[]", "must number its pieces from 0, each number once"),
        ('{"a": 0, "b": 0}', "must number its pieces from 0, each number once"),
        ('{"a": "0"}', "must number its pieces from 0, each number once"),
        ('{"</s>": 0}', "vocab.json has no <unk>, <pad>"),
    ):
        (folder / "vocab.json").write_text(text)
        with pytest.raises(ValueError, match=said):
            MarianTokens(folder)
    (folder / "target.spm").unlink()
    (folder / "vocab.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no target.spm, vocab.json"):
        MarianTokens(folder)


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ImportError, match=r"pip install 'tformer-lib\[marian\]'"):
        MarianTokens(tmp_path)


def test_with_the_package_itself(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece", reason="not in requirements.txt: reads .spm files")
    text = ["the dog bit the man", "a dog and a man", "the man bit a dog", "dogs and men"] * 20
    (tmp_path / "text").write_text("\n".join(text))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "m"), vocab_size=20, model_type="unigram"
    )
    cutter = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    pieces = [cutter.id_to_piece(i) for i in range(3, cutter.vocab_size())]
    vocab = {piece: i for i, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    for side in ("source", "target"):
        (tmp_path / f"{side}.spm").write_bytes((tmp_path / "m.model").read_bytes())
    tokens = MarianTokens(tmp_path)
    for sentence in set(text):
        source, target = tokens.encode([(sentence, sentence)])
        assert tokens.decode(target[0].tolist()) == sentence
        assert source[0].tolist() == [vocab[p] for p in cutter.encode(sentence, out_type=str)] + [0]
    (tmp_path / "source.spm").write_bytes(b"else")
    with pytest.raises(ValueError, match=r"source.spm is no model of SentencePiece"):
        MarianTokens(tmp_path)
