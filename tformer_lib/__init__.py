"""The package of *Transformers by Construction*: what its chapters build, test and import."""

from tformer_lib.checks import claim
from tformer_lib.core.attention import MultiHeadAttention, attention
from tformer_lib.core.masks import causal_mask, padding_mask
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.exercises import check
from tformer_lib.hooks import record_attention
from tformer_lib.show import show_source

__version__ = "0.1.0"

__all__ = [
    "MultiHeadAttention",
    "Transformer",
    "TransformerConfig",
    "attention",
    "causal_mask",
    "check",
    "claim",
    "padding_mask",
    "record_attention",
    "show_source",
]
