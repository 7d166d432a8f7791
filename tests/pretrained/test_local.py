"""Our own models of BERT survive the disk, and `transformers` computes with them what we compute."""

import json

import pytest
import torch

from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config
from tformer_lib.pretrained.local import load_bert, save_bert
from tformer_lib.tokenizers import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##c"])
TOKENS = torch.tensor([[2, 5, 4, 7, 3, 6, 3]])
SEGMENTS = torch.tensor([[0, 0, 0, 0, 0, 1, 1]])


def model(next_sentence=True, config=None):
    torch.manual_seed(0)
    config = config or bert_config(d_model=8, n_heads=2, n_blocks=2, dropout=0.1)
    bert = BERT(config, TOKENIZER.vocab_size, max_len=9, pooler=next_sentence)
    m = PretrainingBERT(bert, next_sentence=next_sentence)
    for p in m.parameters():
        torch.nn.init.normal_(p, std=0.3)
    return m.eval()


@pytest.mark.parametrize("next_sentence", [True, False])
def test_what_is_saved_is_loaded(tmp_path, next_sentence):
    saved = model(next_sentence)
    assert save_bert(tmp_path / "new" / "bert", saved, TOKENIZER) == tmp_path / "new" / "bert"
    loaded, tokenizer = load_bert(tmp_path / "new" / "bert")
    assert tokenizer == TOKENIZER
    assert not loaded.training
    assert loaded.bert.max_len == 9
    assert loaded.state_dict().keys() == saved.state_dict().keys()
    with torch.no_grad():
        for ours, theirs in zip(loaded(TOKENS, SEGMENTS), saved(TOKENS, SEGMENTS), strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("next_sentence", [True, False])
def test_transformers_reads_it_too(tmp_path, next_sentence):
    transformers = pytest.importorskip("transformers")
    saved = model(next_sentence)
    kind = transformers.BertForPreTraining if next_sentence else transformers.BertForMaskedLM
    reference = kind.from_pretrained(save_bert(tmp_path, saved, TOKENIZER)).eval()
    with torch.no_grad():
        theirs = reference(TOKENS, token_type_ids=SEGMENTS)
        logits, follows = saved(TOKENS, SEGMENTS)
    torch.testing.assert_close(
        theirs.prediction_logits if next_sentence else theirs.logits, logits, rtol=0, atol=1e-5
    )
    if next_sentence:
        torch.testing.assert_close(theirs.seq_relationship_logits, follows, rtol=0, atol=1e-5)


def test_saving_again_replaces_and_leaves_nothing_else(tmp_path):
    save_bert(tmp_path, model(), TOKENIZER)
    save_bert(tmp_path, model(next_sentence=False), TOKENIZER)
    assert load_bert(tmp_path)[0].next_sentence is None
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_what_does_not_fit_is_refused(tmp_path):
    other = WordPieceTokenizer(TOKENIZER.tokens[:-1])
    with pytest.raises(ValueError, match="8 tokens, and the tokenizer 7"):
        save_bert(tmp_path, model(), other)
    swiglu = TransformerConfig(d_model=8, n_heads=2, n_blocks=1, norm_placement="post", activation="swiglu")
    with pytest.raises((ValueError, KeyError), match="swiglu"):
        save_bert(tmp_path, model(config=swiglu), TOKENIZER)
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        load_bert(tmp_path)
    save_bert(tmp_path, model(), TOKENIZER)
    other.save(tmp_path / "tokenizer.json")
    with pytest.raises(ValueError, match="8 tokens, and the tokenizer 7"):
        load_bert(tmp_path)


def test_an_encoder_alone_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    save_bert(tmp_path, model(), TOKENIZER)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({k: v for k, v in tensors.items() if k.startswith("bert.")}, tmp_path / "model.safetensors")
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(settings | {"architectures": ["BertModel"]}))
    with pytest.raises(ValueError, match="BERT, and no head"):
        load_bert(tmp_path)
