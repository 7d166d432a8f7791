"""Tokenizers: text becomes a list of numbers, and the numbers become the text again.

Three ways to cut: a character a token, byte-pair encoding (GPT), WordPiece (BERT).
"""

from tformer_lib.tokenizers.bpe import BPETokenizer
from tformer_lib.tokenizers.char import CharTokenizer
from tformer_lib.tokenizers.wordpiece import WordPieceTokenizer

__all__ = ["BPETokenizer", "CharTokenizer", "WordPieceTokenizer"]
