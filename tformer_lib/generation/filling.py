"""Filling in: what a masked language model puts in the holes of a text."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import torch

from tformer_lib.core.modes import evaluation
from tformer_lib.core.precision import precise
from tformer_lib.models.bert import PretrainingBERT
from tformer_lib.numbers import whole


@runtime_checkable
class Tokenizer(Protocol):
    """What `fill_in` asks of a tokenizer; `WordPieceTokenizer` has it."""

    tokens: list[str]
    special_tokens: dict[str, int]

    def encode(self, text: str, allow_special: Iterable[str] = ()) -> list[int]:
        """The text's tokens."""
        ...


@torch.no_grad()
def fill_in(
    model: PretrainingBERT, tokenizer: Tokenizer, text: str, k: int = 5
) -> list[list[tuple[str, float]]]:
    """For each [MASK] of a text, from left to right, the `k` likeliest tokens with their probabilities.

    The model reads [CLS] text [SEP] once, so that several holes are filled independently of each other.

    Raises:
        ValueError: if there is no [MASK] in the text, the text is too long for the model, or `k` is not
            between 1 and the number of tokens.
    """
    vocab_size = model.bert.embed.num_embeddings
    if not 1 <= whole("k", k) <= vocab_size:
        raise ValueError(f"k is between 1 and the number of tokens, {vocab_size}; got {k}")
    names = tokenizer.special_tokens
    ids = [names["[CLS]"], *tokenizer.encode(text, allow_special=["[MASK]"]), names["[SEP]"]]
    holes = [place for place, token in enumerate(ids) if token == names["[MASK]"]]
    if not holes:
        raise ValueError(f"there is no [MASK] to fill in: {text!r}")
    if len(ids) > model.bert.max_len:
        raise ValueError(f"[CLS] text [SEP] are {len(ids)} tokens, and the model reads {model.bert.max_len}")
    tokens = torch.tensor([ids], device=model.bert.embed.weight.device)
    with evaluation(model):
        logits, _ = model(tokens)
    best = precise(logits[0, holes]).softmax(-1).topk(k)
    return [
        [(tokenizer.tokens[i], p) for i, p in zip(tokens, values, strict=True)]
        for tokens, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
