import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.pretrained.reference import GPT2, LLAMA3, reference, tokens, transformers
from tformer_lib.core.attention import FusedAttend
from tformer_lib.generation import generate
from tformer_lib.pretrained import load

CASES = {
    "gpt2": ("gpt2", {}),
    "gpt2, narrow MLP": ("gpt2", {"n_inner": 50}),
    "gpt2, odd sizes": ("gpt2", {"n_embd": 33, "n_head": 3, "vocab_size": 67, "n_positions": 61}),
    "gpt2, exact GELU": ("gpt2", {"activation_function": "gelu"}),
    "gpt2, ReLU, other eps": ("gpt2", {"activation_function": "relu", "layer_norm_epsilon": 1e-2}),
    "gpt2, untied": ("gpt2", {"tie_word_embeddings": False}),
    "llama": ("llama", {}),
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, all heads": ("llama", {"num_key_value_heads": 6}),
    "llama, one head of keys": ("llama", {"num_key_value_heads": 1, "rms_norm_eps": 1e-2}),
    "llama, biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, base": ("llama", {"rope_theta": 5e5}),
    "llama, linear": ("llama", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "llama, llama3": ("llama", {"rope_scaling": LLAMA3, "rope_theta": 1e3}),
    "llama, odd sizes": (
        "llama",
        {"hidden_size": 30, "num_attention_heads": 3, "num_key_value_heads": 3, "intermediate_size": 37},
    ),
    "mistral": ("mistral", {}),
}


@pytest.fixture(scope="module", params=CASES, ids=str)
def pair(request, tmp_path_factory):
    family, settings = CASES[request.param]
    theirs = reference(family, **settings)
    folder = tmp_path_factory.mktemp("checkpoint")
    theirs.save_pretrained(folder)
    return theirs, load(folder)


def test_logits_are_those_of_the_reference(pair):
    theirs, ours = pair
    with torch.no_grad():
        expected = theirs(tokens()).logits
        assert expected.std() > 0.3  # there is something to compare
        assert_close(ours(tokens()), expected, atol=1e-5, rtol=0)


def test_places_and_order_matter_to_the_reference(pair):
    with torch.no_grad():  # or the comparison would not see a wrong rotation
        logits = pair[0](tokens(), use_cache=False).logits
        turned = pair[0](tokens().flip(1), use_cache=False).logits
    assert (logits[:, -1] - turned[:, 0]).abs().max() > 0.05


@pytest.mark.usefixtures("unchecked")
def test_logits_by_the_cache_are_those_without(pair):
    x = tokens((3, 40), seed=2)
    with torch.no_grad():
        cache = pair[1].new_cache()
        pieces = [pair[1](piece, cache) for piece in x.split([7, *[1] * 20, 13], dim=1)]
        assert_close(torch.cat(pieces, dim=1), pair[1](x), atol=1e-5, rtol=0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("length", [1, 5, 12])
def test_greedy_generation_is_that_of_the_reference(pair, length):
    theirs, ours = pair
    for seed in range(3):
        prompt = tokens((1, length), seed=10 * length + seed)
        expected = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=30, do_sample=False, pad_token_id=0
        )
        assert generate(ours, prompt[0].tolist(), 30, temperature=0) == expected[0].tolist()


def test_the_whole_model_is_there_and_ready(pair):
    theirs, ours = pair
    assert not ours.training
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    for parameter in ours.parameters():
        assert (parameter.device.type, parameter.dtype) == ("cpu", torch.float32)
        assert parameter.requires_grad
        assert parameter.is_contiguous() or parameter.mT.is_contiguous()
    storages = [p.untyped_storage().data_ptr() for p in ours.parameters()]
    assert len(set(storages)) == len(storages)
    assert not list(ours.buffers())


def save(folder, family="llama", **settings):
    """A checkpoint in a folder, to be changed; returns its reference, its tensors and its settings."""
    theirs = reference(family, **settings)
    theirs.save_pretrained(folder)
    return theirs, load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())


def compare(folder, theirs, **options):
    with torch.no_grad():
        assert_close(load(folder, **options)(tokens()), theirs(tokens()).logits, atol=1e-5, rtol=0)


def test_shards(tmp_path):
    theirs = reference("llama")
    theirs.save_pretrained(tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    compare(tmp_path, theirs)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_stack_saved_without_its_head_and_prefix(tmp_path, family):
    theirs = reference(family, tie_word_embeddings=True)
    theirs.base_model.save_pretrained(tmp_path)
    assert not any(
        n.startswith(("transformer.", "model.")) for n in load_file(tmp_path / "model.safetensors")
    )
    compare(tmp_path, theirs)


@pytest.mark.parametrize(
    ("family", "original", "extra"),
    [
        ("gpt2", "transformer.wte.weight", ["transformer.h.0.attn.bias", "transformer.h.2.attn.masked_bias"]),
        ("llama", "model.embed_tokens.weight", ["model.layers.1.self_attn.rotary_emb.inv_freq"]),
    ],
)
def test_what_older_files_hold_besides(tmp_path, family, original, extra):
    theirs, tensors, _ = save(tmp_path, family, tie_word_embeddings=True)
    tensors["lm_head.weight"] = tensors[original].clone()
    save_file(tensors | {name: torch.ones(3, 3) for name in extra}, tmp_path / "model.safetensors")
    compare(tmp_path, theirs)


@pytest.mark.parametrize("scaling", [None, {"type": "linear", "factor": 4.0}, LLAMA3])
def test_the_older_layout_of_rotary_settings(tmp_path, scaling):
    theirs, _, settings = save(tmp_path, rope_scaling=scaling, rope_theta=1e3)
    settings = {
        k: v for k, v in settings.items() if k not in ("rope_parameters", "head_dim", "attention_bias")
    }
    (tmp_path / "config.json").write_text(json.dumps(settings | {"rope_theta": 1e3, "rope_scaling": scaling}))
    compare(tmp_path, theirs)


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16])
def test_half_precision_is_converted(tmp_path, stored):
    reference("llama").to(stored).save_pretrained(tmp_path)
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    compare(tmp_path, theirs)
    half = load(tmp_path, dtype=stored)
    assert {p.dtype for p in half.parameters()} == {stored}
    with torch.no_grad():
        assert_close(half(tokens()).float(), theirs(tokens()).logits, atol=0.15, rtol=0)


def test_double_precision_and_a_backend_of_ones_own(tmp_path):
    theirs, _, _ = save(tmp_path, "gpt2")
    compare(tmp_path, theirs, make_backend=FusedAttend)
    assert load(tmp_path, dtype=torch.float64)(tokens()).dtype == torch.float64


def test_a_path_may_be_a_string(tmp_path):
    theirs, _, _ = save(tmp_path, "gpt2")
    compare(str(tmp_path), theirs)


def test_the_loaded_model_trains(tmp_path):
    save(tmp_path)
    model = load(tmp_path)
    model(tokens()).logsumexp(-1).mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_the_limit_of_learned_positions_is_kept(tmp_path):
    save(tmp_path, "gpt2")
    assert load(tmp_path).max_len == GPT2["n_positions"]
