import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.reference import LLAMA3, reference
from tformer_lib.pretrained import load
from tformer_lib.pretrained.foreign_weights import Source, fill


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    reference(request.param).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    return tensors, json.loads((folder / "config.json").read_text())


@pytest.fixture(scope="module")
def llama_settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    reference("llama").save_pretrained(folder)
    return json.loads((folder / "config.json").read_text())


def write(folder, tensors=None, settings=None):
    if tensors is not None:
        save_file(tensors, folder / "model.safetensors")
    if settings is not None:
        (folder / "config.json").write_text(json.dumps(settings))
    return folder


def message(folder, error=ValueError):
    with pytest.raises(error) as caught:
        load(folder)
    return str(caught.value)


def test_everything_that_does_not_fit_is_named_at_once(tmp_path, saved):
    tensors, settings = dict(saved[0]), saved[1]
    names = sorted(tensors)
    missing, misshapen, counted = names[0], names[3], names[5]
    del tensors[missing]
    shape = tuple(tensors[misshapen].shape)
    tensors[misshapen] = torch.zeros(*shape, 2)
    tensors[counted] = tensors[counted].to(torch.int8)
    tensors["adapter.weight"] = torch.zeros(2)
    said = message(write(tmp_path, tensors, settings))
    assert said.startswith(str(tmp_path))
    assert f"missing {missing}" in said
    assert f"{misshapen} has shape {(*shape, 2)}, not {shape}" in said
    assert f"{counted} holds torch.int8" in said
    assert "left over adapter.weight" in said


def test_each_tensor_is_needed(tmp_path, saved):
    for name in saved[0]:
        rest = {other: tensor for other, tensor in saved[0].items() if other != name}
        assert f"missing {name}" in message(write(tmp_path, rest, saved[1]))


def test_a_transposed_tensor_is_noticed(tmp_path, saved):
    for name, tensor in saved[0].items():
        if tensor.ndim == 2 and tensor.shape[0] != tensor.shape[1]:
            turned = saved[0] | {name: tensor.T.contiguous()}
            assert f"{name} has shape" in message(write(tmp_path, turned, saved[1]))


def test_a_further_block_in_the_file_is_left_over(tmp_path, saved):
    tensors, settings = saved
    field = "n_layer" if "n_layer" in settings else "num_hidden_layers"
    said = message(write(tmp_path, tensors, settings | {field: 2}))
    assert said.count("left over") == len([name for name in tensors if re.search(r"\.2\.", name)]) > 0
    assert "missing" not in said


def test_a_mask_of_a_name_like_the_ignored_is_left_over(tmp_path, saved):
    extra = {"transformer.h.0.attn.biases": torch.ones(2), "model.layers.0.inv_freq": torch.ones(2)}
    assert message(write(tmp_path, saved[0] | extra, saved[1])).count("left over") == 2


def test_a_head_that_is_said_to_be_tied_and_is_not(tmp_path, saved):
    tensors, settings = saved
    embed = tensors.get("transformer.wte.weight", tensors.get("model.embed_tokens.weight"))
    untied = tensors | {"lm_head.weight": embed + 1}
    said = message(write(tmp_path, untied, settings | {"tie_word_embeddings": True}))
    assert "lm_head.weight should equal" in said


@pytest.mark.parametrize(
    "kind",
    ["roberta", "distilbert", "qwen2", "qwen3", "gemma", "phi3", "gpt_neox", None, 7, ["llama"], {"a": 1}],
)
def test_other_families_are_refused_with_a_list_of_ours(tmp_path, kind):
    said = message(write(tmp_path, {}, {"model_type": kind}))
    assert "model_type" in said
    assert "'bert', 'gpt2', 'llama', 'marian', 'mistral'" in said


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pth"])
def test_a_pickle_is_not_opened(tmp_path, saved, name):
    torch.save({"a": torch.ones(1)}, write(tmp_path, settings=saved[1]) / name)
    said = message(tmp_path, FileNotFoundError)
    assert name in said
    assert "runs any code" in said


def test_missing_files_are_named(tmp_path, saved):
    assert "config.json is missing" in message(tmp_path, FileNotFoundError)
    assert "config.json is missing" in message(tmp_path / "nowhere", FileNotFoundError)
    said = message(write(tmp_path, settings=saved[1]), FileNotFoundError)
    assert "neither model.safetensors nor" in said
    assert "pickle" not in said


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"3", b'"llama"'])
def test_a_damaged_config_is_named(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    assert "config.json" in message(tmp_path)


@pytest.mark.parametrize("keep", [0, 5, 200, -1, -1000])
def test_a_damaged_file_of_tensors_is_named(tmp_path, saved, keep):
    path = write(tmp_path, *saved) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    assert "model.safetensors is no safetensors file, or not a whole one" in message(tmp_path)


def test_a_pickle_under_the_right_name_is_not_opened(tmp_path, saved):
    torch.save({"a": torch.ones(1)}, write(tmp_path, settings=saved[1]) / "model.safetensors")
    assert "is no safetensors file" in message(tmp_path)


# settings


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scale_attn_weights": False}, "scale_attn_weights=False is not supported"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True is not supported"),
        ({"add_cross_attention": True}, "add_cross_attention=True"),
        (
            {"activation_function": "silu"},
            "activation_function='silu' is not supported here, only 'gelu'",
        ),
        ({"n_head": 5}, "n_heads must divide d_model, got d_model=48 and n_heads=5"),
        ({"n_embd": None}, "n_embd must be a positive whole number, got None"),
        ({"n_layer": "three"}, "n_layer must be a positive whole number, got 'three'"),
        ({"n_positions": 0}, "n_positions must be a positive whole number, got 0"),
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon must be a positive number, got 'small'"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false, got 1"),
        ({"quantization_config": {}}, "quantised"),
    ],
)
def test_settings_of_gpt2_that_we_do_not_cover(tmp_path, change, said):
    settings = {
        "model_type": "gpt2",
        "n_embd": 48,
        "n_head": 4,
        "n_layer": 3,
        "n_positions": 70,
        "vocab_size": 9,
    }
    found = message(write(tmp_path, {}, settings | change))
    assert said in found
    assert "config.json" in found


NESTED = {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_act": "gelu"}, "hidden_act='gelu' is not supported here, only 'silu' or 'swish'"),
        ({"head_dim": 16}, "hidden_size=48 must be num_attention_heads=6 times head_dim, got head_dim=16"),
        ({"num_attention_heads": 5}, "hidden_size=48 must be num_attention_heads=5 times head_dim"),
        ({"num_key_value_heads": 4}, "n_kv_heads must divide n_heads"),
        ({"attention_bias": True}, "attention_bias and mlp_bias must agree, got True and False"),
        ({"model_type": "mistral", "sliding_window": 4096}, "sliding_window=4096 is not supported"),
        ({"model_type": "mistral"}, "sliding_window=4096 is not supported"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, "scaling 'yarn' is not supported"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "scaling 'dynamic' is not supported"),
        ({"rope_parameters": {"rope_type": "linear"}}, "factor must be a positive number, got None"),
        ({"rope_parameters": {**LLAMA3, "low_freq_factor": 4.0}}, "low_freq_factor must be less than"),
        (
            {"rope_parameters": {**LLAMA3, "high_freq_factor": None}},
            "high_freq_factor must be a positive number",
        ),
        (
            {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
            "partial_rotary_factor=0.5",
        ),
        ({"rope_parameters": NESTED}, "'full_attention' is a set of its own"),
        ({"rope_parameters": [1]}, "must be an object, got [1]"),
        ({"hidden_size": 18, "head_dim": 3}, "the width must be even, got 3"),
    ],
)
def test_settings_of_llama_that_we_do_not_cover(tmp_path, llama_settings, change, said):
    found = message(write(tmp_path, {}, llama_settings | change))
    assert said in found
    assert "config.json" in found


# shards


@pytest.fixture
def sharded(tmp_path):
    reference("llama").save_pretrained(tmp_path, max_shard_size="40KB")
    index = tmp_path / "model.safetensors.index.json"
    return tmp_path, index, json.loads(index.read_text())


def test_a_missing_shard(sharded):
    folder, _, content = sharded
    first = min(content["weight_map"].values())
    (folder / first).unlink()
    assert f"names {first}, which is missing" in message(folder, FileNotFoundError)


@pytest.mark.parametrize("change", ["moved", "unnamed"])
def test_shards_that_are_not_as_the_index_says(sharded, change):
    folder, index, content = sharded
    places = content["weight_map"]
    name = min(places)
    other = next(place for place in places.values() if place != places[name])
    places = {k: v for k, v in places.items() if k != name} | ({name: other} if change == "moved" else {})
    index.write_text(json.dumps({"weight_map": places}))
    said = message(folder)
    assert "disagree" in said
    assert name in said


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": 3}}'])
def test_a_damaged_index(sharded, content):
    sharded[1].write_text(content)
    assert "is no index of shards" in message(sharded[0])


@pytest.mark.parametrize("place", ["../elsewhere.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_an_index_stays_in_its_folder(sharded, place):
    sharded[1].write_text(json.dumps({"weight_map": {"a": place}}))
    assert "points out of its folder" in message(sharded[0])


# the part that fills


def test_a_parameter_that_nothing_fills():
    with torch.device("meta"):
        model = torch.nn.Linear(2, 3)
    source = Source("w", (3, 2), ("weight",))
    with pytest.raises(ValueError, match=r"here does not fit .*: nothing fills bias"):
        fill(model, {"w": torch.ones(3, 2)}, [source], where="here")
    assert model.weight.is_meta
