"""Weights that others trained, read into this package's models."""

from tformer_lib.pretrained.folder import load
from tformer_lib.pretrained.gguf import load_gguf
from tformer_lib.pretrained.marian_tokens import MarianTokens
from tformer_lib.pretrained.minilm import load_minilm, sentence_embeddings
from tformer_lib.pretrained.smollm2 import load_smollm2
from tformer_lib.pretrained.vocabulary import gguf_tokenizer

__all__ = [
    "MarianTokens",
    "gguf_tokenizer",
    "load",
    "load_gguf",
    "load_minilm",
    "load_smollm2",
    "sentence_embeddings",
]
