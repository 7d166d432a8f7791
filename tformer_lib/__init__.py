"""The package of *Transformers by Construction*: what its chapters build, test and import."""

from tformer_lib.analysis.recording import record_attention
from tformer_lib.core.attention import MultiHeadAttention, attention
from tformer_lib.core.masks import causal_mask, padding_mask
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.models.bert import BERT
from tformer_lib.models.gpt import GPT
from tformer_lib.models.translator import Translator
from tformer_lib.models.vit import ViT

__version__ = "0.1.0"

__all__ = [
    "BERT",
    "GPT",
    "MultiHeadAttention",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "ViT",
    "attention",
    "causal_mask",
    "padding_mask",
    "record_attention",
]
