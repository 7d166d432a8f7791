"""The vocabulary beside Marian's translators: pieces of words, by SentencePiece, and their numbers."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Int
from torch import Tensor

from tformer_lib.data.buckets import padded
from tformer_lib.files import read_json

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"


class MarianTokens:
    """Sentences to numbers and back, as `translate` asks of a data set (Kudo and Richardson 2018).

    The package sentencepiece cuts a sentence into pieces, by `source.spm` or `target.spm`; `vocab.json`
    numbers the pieces of both languages. A source is its pieces and the end token; a target begins with the
    padding. What a model for several languages asks for, such as ">>deu<<" at the beginning of a source,
    stays one piece. Punctuation is not normalised, which `transformers` does if sacremoses is installed.

    Args:
        folder: where the three files lie.

    Raises:
        ImportError: if the package sentencepiece is not installed.
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, or the vocabulary lacks the end token, the padding or the token for
            unknown pieces.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            raise ImportError(
                "the .spm files are read by the package sentencepiece: pip install 'tformer-lib[marian]'"
            ) from error
        folder = Path(folder)
        missing = [n for n in ("source.spm", "target.spm", "vocab.json") if not (folder / n).is_file()]
        if missing:
            raise FileNotFoundError(f"{folder} has no {', '.join(missing)}")
        self.vocab = _vocabulary(folder / "vocab.json")
        self.pieces = {number: piece for piece, number in self.vocab.items()}
        self.pad_id, self.eos_id = self.vocab[PADDING], self.vocab[END]

        def cutter(path: Path) -> Any:
            try:
                return SentencePieceProcessor(model_file=str(path))
            except (OSError, RuntimeError) as error:
                raise ValueError(f"{path} is no model of SentencePiece: {error}") from error

        self.source, self.target = cutter(folder / "source.spm"), cutter(folder / "target.spm")

    def _numbers(self, cutter: Any, text: str) -> list[int]:
        code, mark, rest = text.partition("<<")
        pieces = cutter.encode(text, out_type=str)
        if text.startswith(">>") and mark:
            pieces = [code + mark, *cutter.encode(rest, out_type=str)]
        return [self.vocab.get(piece, self.vocab[UNKNOWN]) for piece in pieces]

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"]]:
        """Sources and targets as padded rows of numbers."""
        sources = [[*self._numbers(self.source, text), self.eos_id] for text, _ in pairs]
        targets = [[self.pad_id, *self._numbers(self.target, text), self.eos_id] for _, text in pairs]
        return padded(sources, self.pad_id), padded(targets, self.pad_id)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of a target, without its end token and padding.

        Raises:
            ValueError: if a number is not in the vocabulary.
        """
        ids = list(ids)
        unknown = [number for number in ids if number not in self.pieces]
        if unknown:
            raise ValueError(f"no token has the number {unknown[0]}: there are {len(self.pieces)}")
        return self.target.decode([self.pieces[n] for n in ids if n not in (self.eos_id, self.pad_id)])


def _vocabulary(path: Path) -> dict[str, int]:
    """Pieces and their numbers, each number once."""
    vocab = read_json(path)
    if not isinstance(vocab, dict) or sorted(vocab.values(), key=repr) != sorted(range(len(vocab)), key=repr):
        raise ValueError(f"{path} must number its pieces from 0, each number once")
    lacking = [token for token in (END, UNKNOWN, PADDING) if token not in vocab]
    if lacking:
        raise ValueError(f"{path} has no {', '.join(lacking)}")
    return vocab
