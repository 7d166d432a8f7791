"""Published architectures: built counts against closed formulae and other libraries' exact counts."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tformer_book.kit.published import (
    COMPONENTS,
    PUBLISHED,
    count_by_component,
    forward_flops_per_token,
    training_flops,
    training_flops_per_token,
)
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss

EXACT = {  # as Hugging Face's transformers and torchvision count their own models
    "BERT base": 109_482_240,
    "BERT large": 335_141_888,
    "GPT-2 small": 124_439_808,
    "GPT-2 medium": 354_823_168,
    "GPT-2 large": 774_030_080,
    "GPT-2 XL": 1_557_611_200,
    "Llama 3 8B": 8_030_261_248,
    "ViT-B/16": 86_567_656,
    "ViT-L/16": 304_326_632,
    "ViT-H/14": 632_045_800,
}


def parameter_count(family, depth, d, vocab, length, classes):
    """By arithmetic alone: F = 4 D, linears and norms with biases."""
    attention, mlp, norm = 4 * d * (d + 1), 8 * d * d + 5 * d, 2 * d
    block = attention + mlp + 2 * norm
    if family == "seq2seq":
        return vocab * d + depth * block + depth * (block + attention + norm)
    if family == "bert":
        return (vocab + length + 2) * d + norm + depth * block + d * (d + 1)
    if family == "llama":  # RMSNorm, SwiGLU, no biases, eight heads of keys and values of 32
        hidden, shared = 7 * d // 2, d // 4
        return 2 * vocab * d + depth * (2 * d * d + 2 * d * shared + 3 * d * hidden + 2 * d) + d
    if family == "vit":
        return (vocab + 1) * d + d + length * d + depth * block + norm + (d + 1) * classes
    return (vocab + length) * d + depth * block + norm + d * classes


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_built_count_is_the_formula(name):
    spec = PUBLISHED[name]
    assert spec.name == name
    config = spec.config
    expected = parameter_count(
        spec.family, config.n_blocks, config.d_model, spec.vocab_size, spec.length, spec.classes
    )
    assert spec.parameters() == expected == sum(p.numel() for p in spec.build().parameters())
    assert all(p.is_meta for p in spec.build().parameters())
    assert tuple(spec.by_component()) == COMPONENTS
    assert spec.difference == expected - spec.published
    assert abs(spec.difference) / spec.published < 0.065
    assert spec.source
    assert spec.note


@pytest.mark.parametrize("name", EXACT)
def test_exact_counts_of_other_libraries(name):
    assert PUBLISHED[name].parameters() == EXACT[name]


def test_differences_are_as_the_notes_explain_them():
    def millions(name, *without):
        parts = PUBLISHED[name].by_component()
        return round((sum(parts.values()) - sum(parts[w] for w in without)) / 1e6, 1)

    assert [n for n, s in PUBLISHED.items() if s.agrees] == [
        "BERT base",
        "BERT large",
        "Llama 3 8B",
        "ViT-H/14",
        "iGPT-L",
    ]
    assert [millions(f"GPT-2 {n}") for n in ("small", "medium", "large", "XL")] == [
        124.4,
        354.8,
        774.0,
        1557.6,
    ]
    assert round(PUBLISHED["GPT-3 175B"].parameters() / 1e6, -2) == 174_600
    assert millions("ViT-B/16", "head") == 85.8
    assert [millions(f"iGPT-{n}", "head") for n in "SML"] == [76.4, 455.0, 1362.3]
    large = PUBLISHED["ViT-L/16"]
    coarse = replace(large, vocab_size=3 * 32 * 32, length=(224 // 32) ** 2 + 1)
    assert coarse.parameters() == 306_535_400
    assert coarse.agrees
    for name, vocab in (("Transformer base", 40_700), ("Transformer big", 35_800)):
        spec = PUBLISHED[name]
        rest = spec.parameters() - spec.by_component()["embeddings"]
        assert round((spec.published - rest) / spec.config.d_model, -2) == vocab


def test_a_shared_parameter_counts_once_and_a_strange_one_is_refused():
    model = nn.ModuleDict({"embed": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
    assert count_by_component(model)["head"] == 15
    model["head"].weight = model["embed"].weight
    assert (count_by_component(model)["head"], count_by_component(model)["embeddings"]) == (0, 15)
    with pytest.raises(ValueError, match=r"other.weight belongs to none"):
        count_by_component(nn.ModuleDict({"other": nn.Linear(2, 2)}))


@pytest.mark.parametrize(
    "options",
    [{}, {"n_kv_heads": 2}, {"activation": "swiglu", "d_hidden": 20}, {"bias": False, "n_blocks": 3}],
)
def test_flops_against_pytorchs_counter(options):
    config = TransformerConfig(**({"d_model": 16, "n_heads": 4, "n_blocks": 2} | options))
    model, batch, n, vocab = GPT(config, vocab_size=11), 3, 8, 11
    with FlopCounterMode(display=False) as counter:
        language_loss(model, torch.zeros(batch, n + 1, dtype=torch.long))
    assert counter.get_total_flops() == batch * n * forward_flops_per_token(config, n, vocab_size=vocab)
    total = 3 * batch * n * forward_flops_per_token(config, n, vocab_size=vocab)
    assert total == batch * n * training_flops_per_token(config, n, vocab_size=vocab)
    with FlopCounterMode(display=False) as counter:
        language_loss(model, torch.zeros(batch, n + 1, dtype=torch.long)).backward()
    assert counter.get_total_flops() == total


def test_flops_of_cross_attention_are_refused():
    with pytest.raises(ValueError, match="two lengths"):
        forward_flops_per_token(TransformerConfig(d_model=16, n_heads=4, n_blocks=1, cross_attention=True), 8)


def test_flops_of_gpt3():
    """Brown et al. (2020), table D.1: 174,600M parameters, 300 billion tokens, 3.14e23 operations."""
    spec = PUBLISHED["GPT-3 175B"]
    assert training_flops(spec.parameters(), 300e9) == pytest.approx(3.14e23, rel=2e-3)
    exact = training_flops_per_token(spec.config, 2048, vocab_size=spec.vocab_size) * 300e9
    assert exact == pytest.approx(3.14e23, rel=0.03)  # attention's products are the rest


def test_the_core_is_what_is_counted():
    assert isinstance(PUBLISHED["GPT-3 175B"].build().transformer, Transformer)
