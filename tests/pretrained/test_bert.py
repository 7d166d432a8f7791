"""BERT's checkpoints: the reference's numbers from its saved folders, and errors that say why."""

import json
import random
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from tests.pretrained.reference import transformers
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.masks import padding_mask
from tformer_lib.models.bert import BERT, PretrainingBERT
from tformer_lib.pretrained import load

ACTIVATIONS = ["gelu", "gelu_new", "relu", "gelu_pytorch_tanh"]


def random_settings(seed):
    """Sizes and choices of a tiny BERT; no two sizes are equal, so that none can stand for another."""
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 5])
    return {
        "num_attention_heads": heads,
        "hidden_size": heads * draw.choice([4, 7, 10]),
        "num_hidden_layers": draw.randint(1, 4),
        "intermediate_size": draw.choice([19, 37, 71]),
        "hidden_act": ACTIVATIONS[seed % len(ACTIVATIONS)],
        "type_vocab_size": draw.randint(1, 4),
        "layer_norm_eps": draw.choice([1e-12, 1e-5, 1e-2]),
        "max_position_embeddings": draw.choice([23, 41]),
        "vocab_size": draw.choice([53, 97]),
        "initializer_range": 0.15,
    }


def reference(kind, seed=0, **settings):
    """A random model of transformers; gains and biases are random as well."""
    torch.manual_seed(seed)
    config = transformers.BertConfig(**{**random_settings(seed), **settings})
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.2 * torch.randn(parameter.shape)
    return model


def batch(config, seed=0):
    """Tokens and segments, with padding: none in the first row, all but one token in the last."""
    generator = torch.Generator().manual_seed(seed)
    shape = (4, 20)
    tokens = torch.randint(1, config.vocab_size, shape, generator=generator)
    segments = torch.randint(config.type_vocab_size, shape, generator=generator)
    lengths = torch.tensor([20, 13, 6, 1])
    tokens[torch.arange(20) >= lengths[:, None]] = 0
    return tokens, segments


def compare(folder, theirs, seed=0, **options):
    """Every output that the two models share, at the tokens that are there."""
    ours = load(folder, **options)
    tokens, segments = batch(theirs.config, seed)
    there = tokens != 0
    found, expected = {}, {}
    with torch.no_grad():
        given = {"attention_mask": there.long(), "token_type_ids": segments}
        outputs = theirs(tokens, output_hidden_states=True, **given)
        bert = ours if isinstance(ours, BERT) else ours.bert
        mask = padding_mask(tokens, 0)
        hidden = bert(tokens, segments, mask)
        expected["hidden"], found["hidden"] = outputs.hidden_states[-1][there], hidden[there]
        if bert.pooler is not None:
            pooler = theirs.base_model.pooler
            expected["pooled"], found["pooled"] = pooler(outputs.hidden_states[-1]), bert.pooled(hidden)
        if isinstance(ours, PretrainingBERT):
            logits, follows = ours(tokens, segments, mask)
            name = "prediction_logits" if "prediction_logits" in outputs else "logits"
            expected["tokens"], found["tokens"] = outputs[name][there], logits[there]
            if follows is not None:
                expected["follows"], found["follows"] = outputs["seq_relationship_logits"], follows
    for name in expected:
        assert expected[name].std() > 0.02  # there is something to compare
        assert_close(found[name], expected[name], atol=1e-5, rtol=0, msg=lambda said, n=name: f"{n}: {said}")
    return ours, set(expected)


PARTS = {
    "BertModel": {"hidden", "pooled"},
    "BertForMaskedLM": {"hidden", "tokens"},
    "BertForPreTraining": {"hidden", "pooled", "tokens", "follows"},
}


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.parametrize("kind", PARTS)
def test_the_numbers_are_those_of_the_reference(tmp_path, kind, seed):
    theirs = reference(kind, seed)
    theirs.save_pretrained(tmp_path)
    ours, compared = compare(tmp_path, theirs, seed)
    assert compared == PARTS[kind]
    assert not ours.training
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    assert {(p.device.type, p.dtype) for p in ours.parameters()} == {("cpu", torch.float32)}
    assert all(dropout.p == 0 for dropout in ours.modules() if isinstance(dropout, torch.nn.Dropout))


def test_the_settings_drawn_cover_what_differs():
    drawn = [random_settings(seed) for seed in range(14)]
    for name, least in {"hidden_act": 4, "type_vocab_size": 3, "layer_norm_eps": 3, "vocab_size": 2}.items():
        assert len({settings[name] for settings in drawn}) == least
    for name in ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size"):
        assert len({settings[name] for settings in drawn}) >= 3


@pytest.mark.parametrize("kind", PARTS)
def test_segments_padding_and_order_matter_to_the_reference(kind):
    theirs = reference(kind, 1, type_vocab_size=2)  # or the comparison could not see them go wrong
    tokens, segments = batch(theirs.config)
    with torch.no_grad():
        mask = (tokens != 0).long()

        def hidden(tokens, segments, mask):
            outputs = theirs(tokens, token_type_ids=segments, attention_mask=mask, output_hidden_states=True)
            return outputs.hidden_states[-1]

        before = hidden(tokens, segments, mask)
        for changed in (
            hidden(tokens, 1 - segments, mask),
            hidden(tokens, segments, torch.ones_like(mask)),
            hidden(tokens.roll(1, 1), segments.roll(1, 1), mask.roll(1, 1)).roll(-1, 1),
        ):
            assert (before - changed)[1, :13].abs().max() > 0.05


def test_shards(tmp_path):
    theirs = reference("BertForPreTraining", 3)
    theirs.save_pretrained(tmp_path, max_shard_size="8KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert compare(tmp_path, theirs)[1] == PARTS["BertForPreTraining"]


def test_a_backend_of_ones_own_and_another_precision(tmp_path):
    theirs = reference("BertForMaskedLM", 2)
    theirs.save_pretrained(tmp_path)
    compare(tmp_path, theirs, make_backend=FusedAttend)
    half = load(tmp_path, dtype=torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}


def test_the_loaded_model_trains(tmp_path):
    reference("BertForPreTraining").save_pretrained(tmp_path)
    model = load(tmp_path)
    tokens, segments = torch.randint(53, (2, 9)), torch.zeros(2, 9, dtype=torch.long)
    logits, follows = model(tokens, segments)
    (logits.logsumexp(-1).mean() + follows.logsumexp(-1).mean()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


# what files hold


def save(folder, kind="BertForPreTraining", **settings):
    """A checkpoint to be changed: its reference, its tensors, its settings."""
    theirs = reference(kind, **settings)
    theirs.save_pretrained(folder)
    return theirs, load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())


def write(folder, tensors, settings):
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def message(folder):
    with pytest.raises(ValueError, match=re.escape(str(folder))) as caught:
        load(folder)
    return str(caught.value)


def test_an_encoder_saved_with_or_without_prefix_and_pooler(tmp_path):
    theirs, tensors, settings = save(tmp_path, "BertModel")
    without = {name: tensor for name, tensor in tensors.items() if "pooler" not in name}
    for held, pooler in ((tensors, True), (without, False)):
        for start in ("", "bert."):
            write(tmp_path, {f"{start}{name}": tensor for name, tensor in held.items()}, settings)
            ours, compared = compare(tmp_path, theirs)
            assert isinstance(ours, BERT)
            assert compared == ({"hidden", "pooled"} if pooler else {"hidden"})
    with pytest.raises(ValueError, match="no pooler"):
        ours.pooled(torch.zeros(1, 2, ours.config.d_model))


def test_the_earliest_files_call_the_norms_parameters_gamma_and_beta(tmp_path):
    theirs, tensors, settings = save(tmp_path)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
        for name, t in tensors.items()
    }
    assert sum("gamma" in name for name in old) > 2
    assert compare(write(tmp_path, old, settings), theirs)[1] == PARTS["BertForPreTraining"]
    del old["bert.embeddings.LayerNorm.beta"]
    assert "missing bert.embeddings.LayerNorm.beta" in message(write(tmp_path, old, settings))


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_what_files_hold_besides(tmp_path, kind):
    theirs, tensors, settings = save(tmp_path, kind)
    start = "" if kind == "BertModel" else "bert."
    tensors[f"{start}embeddings.position_ids"] = torch.arange(23)[None]
    if kind == "BertForMaskedLM":
        tensors["cls.predictions.decoder.weight"] = tensors[
            f"{start}embeddings.word_embeddings.weight"
        ].clone()
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
    compare(write(tmp_path, tensors, settings), theirs)


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ],
)
def test_a_head_that_is_not_tied(tmp_path, name, original):
    _, tensors, settings = save(tmp_path)
    tensors[name] = tensors[original] + 1
    assert f"{name} should equal {original}" in message(write(tmp_path, tensors, settings))


def test_the_tensors_decide_and_the_settings_are_compared(tmp_path):
    theirs, tensors, settings = save(tmp_path)
    for stated in (["BertModel"], None, ["BertForSequenceClassification"]):
        write(tmp_path, tensors, settings | {"architectures": stated})
        assert isinstance(compare(tmp_path, theirs)[0], PretrainingBERT)
    rest = {name: tensor for name, tensor in tensors.items() if "seq_relationship" not in name}
    said = message(write(tmp_path, rest, settings))  # which names BertForPreTraining
    assert "missing cls.seq_relationship.weight; missing cls.seq_relationship.bias" in said
    ours = load(write(tmp_path, rest, settings | {"architectures": ["BertForMaskedLM"]}))
    assert ours.next_sentence is None
    assert ours.bert.pooler is not None
    rest = {name: tensor for name, tensor in tensors.items() if not name.startswith("cls.")}
    said = message(write(tmp_path, rest, settings | {"architectures": ["BertForMaskedLM"]}))
    assert said.count("missing cls.predictions.") == 5


@pytest.mark.parametrize("kind", PARTS)
def test_each_tensor_is_needed(tmp_path, kind):
    _, tensors, settings = save(tmp_path, kind, num_hidden_layers=1)
    for name in tensors:
        rest = {other: tensor for other, tensor in tensors.items() if other != name}
        assert f"missing {name}" in message(write(tmp_path, rest, settings))


def test_everything_that_does_not_fit_is_named_at_once(tmp_path):
    _, tensors, settings = save(tmp_path)
    d, f = settings["hidden_size"], settings["intermediate_size"]
    del tensors["bert.pooler.dense.bias"]
    tensors["bert.encoder.layer.0.output.dense.weight"] = torch.zeros(2, 3)
    tensors["cls.predictions.bias"] = tensors["cls.predictions.bias"].to(torch.int8)
    tensors["classifier.weight"] = torch.zeros(2, d)
    tensors["bert.embeddings.position_idss"] = torch.zeros(1, 2)
    said = message(write(tmp_path, tensors, settings))
    for part in (
        "missing bert.pooler.dense.bias",
        f"bert.encoder.layer.0.output.dense.weight has shape (2, 3), not ({d}, {f})",
        "cls.predictions.bias holds torch.int8",
        "left over classifier.weight",
        "left over bert.embeddings.position_idss",
    ):
        assert part in said


def test_classifiers_are_refused_by_the_tensors_left_over(tmp_path):
    for kind in ("BertForSequenceClassification", "BertForTokenClassification"):
        reference(kind).save_pretrained(tmp_path)
        said = message(tmp_path)
        assert said.endswith("left over classifier.bias; left over classifier.weight")
    reference("BertForNextSentencePrediction").save_pretrained(tmp_path)
    assert "left over cls.seq_relationship.weight" in message(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"position_embedding_type": "relative_key"},
            "position_embedding_type='relative_key' is not supported",
        ),
        ({"is_decoder": True}, "is_decoder=True is not supported here, only False"),
        ({"add_cross_attention": True}, "add_cross_attention=True is not supported"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=False is not supported here, only True"),
        ({"hidden_act": "silu"}, "hidden_act='silu' is not supported here, only 'gelu' or 'gelu_new'"),
        ({"hidden_size": None}, "hidden_size must be a positive whole number, got None"),
        ({"num_attention_heads": 3}, "n_heads must divide d_model, got d_model=20 and n_heads=3"),
        ({"type_vocab_size": 0}, "type_vocab_size must be a positive whole number, got 0"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps must be a positive number, got 'small'"),
        ({"architectures": 3}, "architectures must be a list of names, got 3"),
        ({"quantization_config": {}}, "quantised"),
        ({"model_type": "roberta"}, "supported are 'bert', 'gpt2'"),
        ({"model_type": "distilbert"}, "supported are 'bert', 'gpt2'"),
    ],
)
def test_settings_that_we_do_not_cover(tmp_path, change, said):
    _, tensors, settings = save(tmp_path, hidden_size=20, num_attention_heads=2)
    assert said in message(write(tmp_path, tensors, settings | change))


def test_an_encoder_alone_is_not_asked_about_the_head(tmp_path):
    _, tensors, settings = save(tmp_path, "BertModel")
    write(tmp_path, tensors, settings | {"tie_word_embeddings": False})
    assert isinstance(load(tmp_path), BERT)


def test_settings_that_may_be_left_out(tmp_path):
    settled = {"type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
    theirs, tensors, settings = save(tmp_path, **settled)
    write(tmp_path, tensors, {name: value for name, value in settings.items() if name not in settled})
    compare(tmp_path, theirs)
