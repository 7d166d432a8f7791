"""Tiny random models of transformers, which serves as the reference."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="the reference for loaded weights: transformers")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

SIZES = {"vocab_size": 61, "bos_token_id": None, "eos_token_id": None, "initializer_range": 0.1}
LLAMA = SIZES | {
    "hidden_size": 48,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "intermediate_size": 72,
}
GPT2 = SIZES | {"n_embd": 48, "n_head": 4, "n_layer": 3, "n_positions": 70}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
FAMILIES = {
    "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel, GPT2),
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, LLAMA),
    "mistral": (
        transformers.MistralConfig,
        transformers.MistralForCausalLM,
        LLAMA | {"sliding_window": None},
    ),
}


def reference(family, seed=0, **settings):
    """A random model of transformers; gains and biases, which begin as ones and zeros, are random as well."""
    config, model, sizes = FAMILIES[family]
    torch.manual_seed(seed)
    built = model(config(**sizes | settings)).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            if parameter.ndim == 1:
                parameter += 0.2 * torch.randn(parameter.shape)
    return built


def tokens(shape=(2, 60), seed=1, vocab=61):
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(seed))
