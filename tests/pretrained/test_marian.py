"""Marian's checkpoints: the reference's logits and translations, and errors that say why."""

import json
import random
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.pretrained.reference import transformers
from tformer_lib.core.attention import FusedAttend
from tformer_lib.generation import beam_search, greedy_search
from tformer_lib.pretrained import load
from tformer_lib.pretrained.marian import HalvedPositions, Marian

ACTIVATIONS = ["swish", "gelu", "relu", "silu", "gelu_new"]


def random_settings(seed):
    """Sizes and choices of a tiny Marian; no two sizes are equal, so that none can stand for another."""
    draw = random.Random(seed)
    heads, vocab = draw.choice([1, 2, 3]), draw.choice([53, 97])
    hidden = draw.choice([19, 37, 71])
    return {
        "d_model": heads * draw.choice([4, 8, 10]),
        "encoder_layers": draw.randint(1, 3),
        "decoder_layers": draw.randint(1, 3),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": hidden,
        "decoder_ffn_dim": hidden,
        "activation_function": ACTIVATIONS[seed % len(ACTIVATIONS)],
        "scale_embedding": bool(seed % 3),
        "max_position_embeddings": 41,
        "vocab_size": vocab,
        "pad_token_id": vocab - 1 if seed % 2 else 1,
        "decoder_start_token_id": vocab - 1 if seed % 2 else 1,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "init_std": 0.2,
    }


def reference(seed=0, pad=0.0, **settings):
    """A random model of transformers; gains and all biases are random, and `pad` is the padding's bias."""
    torch.manual_seed(seed)
    model = transformers.MarianMTModel(transformers.MarianConfig(**{**random_settings(seed), **settings}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.2 * torch.randn(parameter.shape)
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, model.config.pad_token_id] = pad
    return model.eval()


def batch(config, seed=0):
    """Sources and targets, with padding: none in the first row, all but one token in the last."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.tensor([n for n in range(config.vocab_size) if n not in (0, config.pad_token_id)])
    source = words[torch.randint(len(words), (4, 9), generator=generator)]
    source[torch.arange(9) >= torch.tensor([9, 6, 3, 1])[:, None]] = config.pad_token_id
    target = words[torch.randint(len(words), (4, 7), generator=generator)]
    target[:, 0] = config.pad_token_id
    return source, target


def compare(folder, theirs, seed=0, **options):
    """The logits of all tokens but the padding, after each token of a target."""
    ours = load(folder, **options)
    source, target = batch(theirs.config, seed)
    pad = theirs.config.pad_token_id
    with torch.no_grad():
        mask = (source != pad).long()
        expected = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
        found = ours(source, target)
    assert found[..., pad].eq(float("-inf")).all()
    kept = torch.arange(theirs.config.vocab_size) != pad
    assert expected.std() > 0.2  # there is something to compare
    assert_close(found[..., kept], expected[..., kept], atol=1e-5, rtol=0)
    return ours


@pytest.mark.parametrize("seed", range(12))
def test_the_logits_are_those_of_the_reference(tmp_path, seed):
    theirs = reference(seed)
    theirs.save_pretrained(tmp_path)
    ours = compare(tmp_path, theirs, seed)
    assert type(ours) is Marian
    assert not ours.training
    count = sum(p.numel() for p in theirs.parameters() if p.requires_grad) + theirs.config.vocab_size
    assert sum(p.numel() for p in ours.parameters()) == count  # its final bias is a buffer there
    assert ours.embed_target is ours.embed
    assert {(p.device.type, p.dtype) for p in ours.parameters()} == {("cpu", torch.float32)}
    assert all(dropout.p == 0 for dropout in ours.modules() if isinstance(dropout, torch.nn.Dropout))


@pytest.mark.parametrize("seed", range(3))
def test_in_float64_they_agree_to_the_precision_of_the_references_table(tmp_path, seed):
    theirs = reference(seed).double()
    theirs.save_pretrained(tmp_path)
    compare(tmp_path, theirs, seed, dtype=torch.float64)


def test_the_settings_drawn_cover_what_differs():
    drawn = [random_settings(seed) for seed in range(12)]
    for name, least in {"activation_function": 5, "scale_embedding": 2, "vocab_size": 2}.items():
        assert len({settings[name] for settings in drawn}) == least
    assert any(settings["encoder_layers"] != settings["decoder_layers"] for settings in drawn)


def test_padding_and_order_matter_to_the_reference():
    theirs = reference(1)  # or the comparison could not see them go wrong
    source, target = batch(theirs.config)
    pad = theirs.config.pad_token_id

    def logits(source, mask):
        with torch.no_grad():
            return theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits[1]

    mask = (source != pad).long()
    before = logits(source, mask)
    for changed in (logits(source, torch.ones_like(mask)), logits(source.roll(1, 1), mask.roll(1, 1))):
        assert (before - changed).abs().max() > 0.05


def test_positions_are_all_sines_and_then_all_cosines():
    table = transformers.models.marian.modeling_marian.MarianSinusoidalPositionalEmbedding(30, 12)
    expected = table.create_weight()
    positions = HalvedPositions(12)
    assert_close(positions(torch.zeros(1, 30, 12))[0], expected, atol=1e-6, rtol=0)
    assert_close(positions(torch.zeros(1, 4, 12), 9)[0], expected[9:13], atol=1e-6, rtol=0)
    with pytest.raises(ValueError, match="the width must be even, got 5"):
        HalvedPositions(5)


def written(theirs, source, steps, **options):
    """What the reference's generate writes, without the begin token and what follows the end token."""
    pad, eos = theirs.config.pad_token_id, theirs.config.eos_token_id
    mask = (source != pad).long()
    rules = {"bad_words_ids": [[pad]], "do_sample": False, "max_new_tokens": steps, **options}
    rows = theirs.generate(input_ids=source, attention_mask=mask, **rules)[:, 1:].tolist()
    return [tuple(row[: row.index(eos) + 1] if eos in row else row) for row in rows]


@pytest.mark.parametrize("pad", [0.0, 4.0])
@pytest.mark.parametrize("seed", range(8))
def test_greedy_search_writes_what_the_reference_writes(tmp_path, seed, pad):
    theirs = reference(seed, pad)  # with a bias of 4 it would often write the padding, if it might
    theirs.save_pretrained(tmp_path)
    source, _ = batch(theirs.config, seed)
    found = [one.tokens for one in greedy_search(load(tmp_path), source, 12)]
    assert found == written(theirs, source, 12, num_beams=1)
    assert all(theirs.config.pad_token_id not in tokens for tokens in found)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_beam_search_finds_what_the_reference_finds(tmp_path, seed, penalty):
    theirs = reference(
        seed, pad=-40.0
    )  # no share goes to the padding, which the reference does not take back
    theirs.save_pretrained(tmp_path)
    source, _ = batch(theirs.config, seed)
    options = {"num_beams": 3, "length_penalty": penalty}
    found = beam_search(load(tmp_path), source, 10, with_greedy=False, **options)
    expected = written(theirs, source, 10, early_stopping="never", **options)
    assert [best.tokens for (best,) in found] == expected


def test_a_cache_changes_nothing(tmp_path):
    theirs = reference(2)
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path)
    source, target = batch(theirs.config)
    with torch.no_grad():
        memory, mask = ours.encode(source)
        cache = ours.new_cache()
        steps = [ours.decode(target[:, t : t + 1], memory, mask, cache) for t in range(target.shape[1])]
        assert_close(torch.cat(steps, dim=1), ours(source, target), atol=1e-5, rtol=0)


def test_a_backend_of_ones_own_and_another_precision(tmp_path):
    theirs = reference(4)
    theirs.save_pretrained(tmp_path)
    compare(tmp_path, theirs, make_backend=FusedAttend)
    assert {p.dtype for p in load(tmp_path, dtype=torch.bfloat16).parameters()} == {torch.bfloat16}


def test_the_loaded_model_trains(tmp_path):
    theirs = reference()
    theirs.save_pretrained(tmp_path)
    model = load(tmp_path)
    source, target = batch(theirs.config)
    logits = model(source, target[:, :-1])
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


# what files hold


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    reference(1, d_model=12, encoder_attention_heads=2, decoder_attention_heads=2).save_pretrained(folder)
    return load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())


def write(folder, tensors, settings):
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def message(folder):
    with pytest.raises(ValueError, match=re.escape(str(folder))) as caught:
        load(folder)
    return str(caught.value)


def test_each_tensor_is_needed(tmp_path, saved):
    tensors, settings = saved
    for name in tensors:
        rest = {other: tensor for other, tensor in tensors.items() if other != name}
        assert f"missing {name}" in message(write(tmp_path, rest, settings))


def test_everything_that_does_not_fit_is_named_at_once(tmp_path, saved):
    tensors, settings = dict(saved[0]), saved[1]
    del tensors["model.encoder.layers.0.fc1.bias"]
    tensors["final_logits_bias"] = torch.zeros(settings["vocab_size"])
    tensors["model.encoder.layers.0.fc2.weight"] = torch.zeros(2, 3)
    tensors["model.decoder.layers.0.encoder_attn.q_proj.bias"] = torch.zeros(12, dtype=torch.int8)
    tensors["model.encoder.layernorm_embedding.weight"] = torch.zeros(12)
    said = message(write(tmp_path, tensors, settings))
    for part in (
        "missing model.encoder.layers.0.fc1.bias",
        f"final_logits_bias has shape ({settings['vocab_size']},), not (1, {settings['vocab_size']})",
        f"model.encoder.layers.0.fc2.weight has shape (2, 3), not (12, {settings['encoder_ffn_dim']})",
        "model.decoder.layers.0.encoder_attn.q_proj.bias holds torch.int8",
        "left over model.encoder.layernorm_embedding.weight",
    ):
        assert part in said


def test_what_files_hold_besides(tmp_path, saved):
    tensors, settings = dict(saved[0]), saved[1]
    for name in ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        tensors[f"{name}.weight"] = tensors["model.shared.weight"].clone()
    tensors["model.encoder.embed_positions.weight"] = torch.zeros(41, 12)
    assert isinstance(load(write(tmp_path, tensors, settings)), Marian)
    tensors["lm_head.weight"] += 1
    said = message(write(tmp_path, tensors, settings))
    assert "lm_head.weight should equal model.shared.weight" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"normalize_before": True}, "normalize_before=True is not supported here, only False"),
        ({"normalize_embedding": True}, "normalize_embedding=True is not supported here, only False"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm=True is not supported"),
        ({"static_position_embeddings": False}, "static_position_embeddings=False is not supported"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings=False is not"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=False is not supported"),
        ({"decoder_attention_heads": 3}, "decoder_attention_heads=3 is not supported here, only 2"),
        ({"decoder_ffn_dim": 5}, "decoder_ffn_dim=5 is not supported here, only"),
        ({"decoder_vocab_size": 5}, "decoder_vocab_size=5 is not supported here, only"),
        ({"decoder_start_token_id": 3}, "decoder_start_token_id=3 is not supported here, only"),
        ({"activation_function": "tanh"}, "activation_function='tanh' is not supported here, only 'gelu'"),
        ({"pad_token_id": None}, "pad_token_id must be a token's number below"),
        ({"eos_token_id": [0, 1]}, "eos_token_id must be a token's number below"),
        ({"eos_token_id": 10**9}, "eos_token_id must be a token's number below"),
        ({"d_model": None}, "d_model must be a positive whole number, got None"),
        ({"d_model": 9}, "n_heads must divide d_model, got d_model=9 and n_heads=2"),
        ({"encoder_layers": 10**6}, "encoder_layers is 1000000, far more than the tensors there can fill"),
        ({"scale_embedding": "yes"}, "scale_embedding must be true or false, got 'yes'"),
    ],
)
def test_settings_that_we_do_not_cover(tmp_path, saved, change, said):
    tensors, settings = saved
    assert said in message(write(tmp_path, tensors, settings | change))
