"""The package of *Transformers by Construction*: what its chapters build, test and import."""

from tformer_lib.analysis.recording import record_attention
from tformer_lib.core.attention import Attend, FusedAttend, MultiHeadAttention, attention
from tformer_lib.core.masks import causal_mask, padding_mask
from tformer_lib.core.transformer import Block, Transformer, TransformerConfig
from tformer_lib.generation import beam_search, generate, translate
from tformer_lib.models.bert import BERT
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer, WordPieceTokenizer
from tformer_lib.training import count_parameters, fit, load_checkpoint, save_checkpoint, seed_everything

__version__ = "0.1.0"

__all__ = [
    "BERT",
    "GPT",
    "Attend",
    "BPETokenizer",
    "Block",
    "CharTokenizer",
    "FusedAttend",
    "MultiHeadAttention",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "ViT",
    "WordPieceTokenizer",
    "attention",
    "beam_search",
    "causal_mask",
    "count_parameters",
    "fit",
    "generate",
    "image_loss",
    "language_loss",
    "load_checkpoint",
    "padding_mask",
    "record_attention",
    "save_checkpoint",
    "seed_everything",
    "translate",
    "translator_loss",
]
