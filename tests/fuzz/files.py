"""Damaged files: checkpoints of training, pretrained weights, tokenizers."""

import contextlib
import itertools
import json
import math
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from tests.fuzz.judge import CHARACTERS, OURS, PIECES, VOCAB, judged
from tformer_lib import (
    TransformerConfig,
)
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.pretrained import bert, gpt2, llama, load, load_gguf, vit
from tformer_lib.pretrained.settings import Settings
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer, WordPieceTokenizer
from tformer_lib.training import fit, load_checkpoint, save_checkpoint, seed_everything
from tformer_lib.training.checkpoints import FILE

# Checkpoints of training


def run(folder=None, stop=None, **options):
    seed_everything(3)
    model = GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, dropout=0.2), VOCAB)
    first, count = [p.detach().clone() for p in model.parameters()], itertools.count()

    def loss(model, batch):
        if next(count) == stop:
            raise KeyboardInterrupt
        return language_loss(model, batch)

    data = [(torch.arange(12).view(2, 6) + i) % VOCAB for i in range(4)]
    options = {"steps": 9, "warmup": 2, "checkpoint": folder, "checkpoint_every": 3} | options
    try:
        history = fit(model, loss, data, **options)
    except OURS:
        assert all(torch.equal(p, q) for p, q in zip(first, model.parameters(), strict=True)), "overwritten"
        raise
    return [p.detach().clone() for p in model.parameters()], history.loss


@pytest.fixture(scope="module")
def stopped():
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(KeyboardInterrupt):
            run(folder, stop=7)
        whole = run()
        path = Path(folder) / FILE
        content = path.read_bytes()
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        yield path, content, load_file(path), metadata, whole


def resumed(stopped):
    """The damaged run is refused, or ends as the whole one."""
    path, _, _, _, (weights, losses) = stopped
    damaged = path.read_bytes()
    result, error = judged(lambda: run(path.parent))
    if error is None:
        assert result[1] == losses
        assert all(torch.equal(p, q) for p, q in zip(result[0], weights, strict=True))
    else:
        assert path.read_bytes() == damaged
    return error


@given(st.integers(0, 10**9), st.integers(0, 7), st.sampled_from(["flip", "zero", "cut", "double"]))
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
def test_damaged_checkpoints(stopped, place, bit, kind):
    path, content = stopped[:2]
    at, damaged = place % len(content), bytearray(content)
    if kind == "flip":
        damaged[at] ^= 1 << bit
    elif kind == "zero":
        damaged[at : at + 16] = bytes(len(damaged[at : at + 16]))
    elif kind == "cut":
        del damaged[at:]
    else:
        damaged[at:at] = damaged[at : at + 8]
    path.write_bytes(damaged)
    resumed(stopped)


@pytest.mark.parametrize("number", range(0, 60, 4))
def test_checkpoints_without_a_tensor(stopped, number):
    path, _, tensors, metadata, _ = stopped
    name = sorted(tensors)[number % len(tensors)]
    rest = {k: v for k, v in tensors.items() if k != name}
    for changed in (rest, rest | {f"{name}x": tensors[name]}, tensors | {name: tensors[name] + 1}):
        save_file(changed, path, metadata)
        assert resumed(stopped) is not None


HEADERS = {
    "format": [0, 2, 10**9, None, "2", 2.0, True],
    "step": [10**9, -1, 2.5, "6", None, 7, 0, True, 10**40],
    "seconds": [math.nan, -1, "x", None, math.inf],
    "settings": [None, [], {}, {"steps": 10**9}],
    "notes": [None, {}, {"passes": 10**9, "position": 1}, {"passes": 1.5, "position": 2}, {"passes": "2"}],
    "optimizers": [None, [], [None], [{}], 3],
}


@pytest.mark.parametrize("field", HEADERS)
def test_headers(stopped, field):
    """With a checksum that is right, as another program could write it."""
    from tformer_lib.training.checkpoints import _checksum

    path, _, tensors, metadata, _ = stopped
    for value in HEADERS[field]:
        text = json.dumps(json.loads(metadata["checkpoint"]) | {field: value})
        save_file(tensors, path, {"checkpoint": text, "sha256": _checksum(text, tensors)})
        assert resumed(stopped) is not None, value
    for text in ("[" * 100_000, "", "{", "3", "[]", "null"):
        save_file(tensors, path, {"checkpoint": text})
        assert resumed(stopped) is not None


def test_broken_generators(stopped):
    from tformer_lib.training.checkpoints import _checksum

    path, _, tensors, metadata, _ = stopped
    for name in [n for n in tensors if "random/" in n]:
        value = tensors[name]
        for other in (
            value[:-1] if value.ndim else value[None],
            value.new_full(value.shape, 200),
            value.bool(),
        ):
            if "gauss" in name and other.shape == value.shape:
                continue  # any number will do
            changed = tensors | {name: other}
            text = metadata["checkpoint"]
            save_file(changed, path, {"checkpoint": text, "sha256": _checksum(text, changed)})
            if name.endswith("/torch") and other.shape == value.shape and other.dtype == value.dtype:
                continue
            judged(lambda: load_checkpoint(path.parent, run_model()))


def run_model():
    return GPT(TransformerConfig(d_model=8, n_heads=2, n_blocks=1, dropout=0.2), VOCAB)


def test_settings_of_numpy_are_saved(tmp_path):
    options = {"lr": np.float32(1e-3), "warmup": np.int64(2), "clip": np.float64(1), "steps": np.int64(9)}
    weights, _ = run(tmp_path, **options)
    again, _ = run(tmp_path, **options)
    assert all(torch.equal(p, q) for p, q in zip(weights, again, strict=True))
    assert save_checkpoint(tmp_path / "other", nn.Linear(2, 2)).exists()


# Pretrained weights

SETTINGS = {
    "gpt2": {"n_embd": 8, "n_head": 2, "n_layer": 2, "vocab_size": 7, "n_positions": 5},
    "llama": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 12,
        "vocab_size": 7,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    },
    "bert": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "intermediate_size": 12,
        "vocab_size": 7,
        "max_position_embeddings": 6,
    },
    "vit": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "intermediate_size": 12,
        "image_size": 8,
        "patch_size": 4,
    },
}
FAMILIES = {"gpt2": gpt2, "llama": llama, "bert": bert, "vit": vit}


def tensors_of(kind):
    torch.manual_seed(0)
    names = {"gpt2": ["transformer."], "llama": ["model."], "bert": [], "vit": []}[kind]
    model = FAMILIES[kind].build(Settings("", SETTINGS[kind]), None, names)
    return {s.name: 0.1 * torch.randn(s.shape) for s in FAMILIES[kind].sources(model, names)}


def put(folder, kind, change=None, tensors=None):
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **SETTINGS[kind], **(change or {})}))
    save_file(tensors_of(kind) if tensors is None else tensors, folder / "model.safetensors")


def loaded(folder):
    model, error = judged(lambda: load(folder))
    if model is not None:
        assert all(p.isfinite().all() for p in model.parameters())
    return error


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_of_checkpoints(tmp_path, kind):
    put(tmp_path, kind)
    assert loaded(tmp_path) is None
    odd_ones = [10**9, 2**63, 10**40, -1, 0, 2.5, math.nan, math.inf, "8", None, [], {}, True, "x" * 10_000]
    for name, value in itertools.product(SETTINGS[kind], odd_ones):
        put(tmp_path, kind, {name: value})
        loaded(tmp_path)
    for name in ("layer_norm_epsilon", "rms_norm_eps", "layer_norm_eps", "rope_theta", "hidden_act"):
        for value in odd_ones:
            put(tmp_path, kind, {name: value})
            loaded(tmp_path)
    for value in (math.nan, math.inf, -math.inf):
        name = sorted(tensors_of(kind))[0]
        tensors = tensors_of(kind)
        tensors[name].view(-1)[0] = value
        put(tmp_path, kind, tensors=tensors)
        assert "NaN" in str(loaded(tmp_path))
    for text in (
        "[" * 100_000,
        '{"a":' * 100_000,
        "",
        "{",
        "[]",
        "nul",
        "\ud800".encode("utf8", "surrogatepass"),
    ):
        (tmp_path / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        assert loaded(tmp_path) is not None


@given(
    st.sampled_from(sorted(SETTINGS)), st.booleans(), st.integers(0, 10**9), st.integers(0, 7), st.booleans()
)
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_damaged_weights(kind, in_config, place, bit, cut):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put(folder, kind)
        path = folder / ("config.json" if in_config else "model.safetensors")
        content = bytearray(path.read_bytes())
        at = place % (len(content) if in_config or place % 2 else min(len(content), 2000))
        if cut:
            del content[at:]
        else:
            content[at] ^= 1 << bit
        path.write_bytes(content)
        loaded(folder)


def test_shards(tmp_path):
    tensors = tensors_of("gpt2")
    put(tmp_path, "gpt2")
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "folder").mkdir()
    odd_names = [
        "..",
        ".",
        "",
        "/etc/passwd",
        "../model.safetensors",
        "a\0b",
        "x" * 5_000,
        "folder",
        "nowhere",
        "\ud800",
    ]
    for shard in [*odd_names, 3, None, [], {}]:
        index = json.dumps({"weight_map": dict.fromkeys(tensors, shard)})
        (tmp_path / "model.safetensors.index.json").write_text(index)
        assert loaded(tmp_path) is not None
    for text in (
        "[" * 100_000,
        "{}",
        "[]",
        '{"weight_map": 3}',
        '{"weight_map": {}}',
        '{"weight_map": {"a": 1}}',
    ):
        (tmp_path / "model.safetensors.index.json").write_text(text)
        assert loaded(tmp_path) is not None


def gguf_file(path):
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    for name, value in {"block_count": 1, "embedding_length": 8, "feed_forward_length": 12}.items():
        writer.add_uint32(f"llama.{name}", value)
    writer.add_uint32("llama.attention.head_count", 2)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_array("tokenizer.ggml.tokens", list("abcdefg"))
    writer.add_array("tokenizer.ggml.token_type", [1] * 7)
    d, f = 8, 12
    shapes = {f"blk.0.attn_{n}.weight": (d, d) for n in ("q", "k", "v", "output")}
    shapes |= {
        "blk.0.ffn_gate.weight": (f, d),
        "blk.0.ffn_up.weight": (f, d),
        "blk.0.ffn_down.weight": (d, f),
    }
    shapes |= {"token_embd.weight": (7, d), "output_norm.weight": (d,)}
    shapes |= {"blk.0.attn_norm.weight": (d,), "blk.0.ffn_norm.weight": (d,)}
    for name, shape in shapes.items():
        writer.add_tensor(name, np.full(shape, 0.1, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def gguf_bytes(tmp_path_factory):
    pytest.importorskip("gguf")
    path = tmp_path_factory.mktemp("gguf") / "a.gguf"
    gguf_file(path)
    return path, path.read_bytes()


@given(st.integers(0, 10**9), st.integers(0, 255), st.sampled_from(["byte", "cut", "long"]))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore")
def test_damaged_gguf(gguf_bytes, place, byte, kind):
    path, content = gguf_bytes
    damaged = bytearray(content)
    at = place % min(len(content), 1500)
    if kind == "cut":
        del damaged[at:]
    elif kind == "byte":
        damaged[at] = byte
    else:
        damaged[at : at + 8] = (2**62 + byte).to_bytes(8, "little")
    path.write_bytes(damaged)
    model, _ = judged(lambda: load_gguf(path))
    if model is not None:
        assert all(p.isfinite().all() for p in model.parameters())
    path.write_bytes(content)
    assert load_gguf(path) is not None


@pytest.mark.parametrize("kind", [CharTokenizer, BPETokenizer, WordPieceTokenizer])
def test_damaged_tokenizers(tmp_path, kind):
    whole = {
        CharTokenizer: CHARACTERS,
        BPETokenizer: BPETokenizer.train("ab ab ab", 258),
        WordPieceTokenizer: PIECES,
    }
    path, dice = tmp_path / "t.json", random.Random(0)
    whole[kind].save(path)
    content = path.read_bytes()
    assert kind.load(path) == whole[kind]
    for _ in range(60):
        damaged = bytearray(content)
        damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged[: dice.choice([len(content), dice.randrange(len(content))])])
        judged(lambda: kind.load(path))
    for text in ("[" * 100_000, "{}", "[]", "", "3"):
        path.write_text(text)
        assert judged(lambda: kind.load(path))[1] is not None
