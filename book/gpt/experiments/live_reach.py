"""How far back the model reads that writes in this site's figures, by kind of character.

The measure of `gpt_stages.py`, at the same 3,000 held-out places and beside the same n-grams, for the GPT of
letters that the package holds (`tformer_book.kit.live`): what it pays when it may read the last 1, 2, 4, ...,
127 characters. At places of more kinds, with standard errors of paired differences: what it saves from 8 and
from 127 characters against each n-gram, and what it saves from 127 against itself from 8.

`python -m tformer_book.gpt.experiments.live_reach`: less than a minute of one core.
"""

import time
from typing import Any

import torch
from torch import Tensor

from tformer_book.gpt.experiments.gpt_stages import (
    HELD_OUT,
    ORDERS,
    TOKENIZER,
    bits_at_places,
    by_kind,
    kinds_of,
)
from tformer_book.kit.live import live_model
from tformer_book.kit.records import record
from tformer_lib.core.attention import FusedAttend


def finer_kinds(places: Tensor) -> dict[str, Tensor]:
    """Which of these places are of which kind; line breaks and first letters by what stands before them."""
    here, before = ([HELD_OUT[i + shift] for i in places.tolist()] for shift in (0, -1))
    is_space, is_break = (torch.tensor([letter == sign for letter in here]) for sign in " \n")
    after_space, after_break, after_colon = (
        torch.tensor([letter == sign for letter in before]) for sign in " \n:"
    )
    kinds = kinds_of(places)
    first = kinds["first letters"]
    return {
        "first letters": first,
        "first letters after a space": first & after_space,
        "first letters of a line": first & after_break,
        "spaces": is_space,
        "marks": kinds["no letters"] & ~is_space & ~is_break,
        "line breaks": is_break,
        "line breaks after text": is_break & ~after_break & ~after_colon,
        "line breaks after a line break": is_break & after_break,
        "line breaks after a colon": is_break & after_colon,
    }


def saved(places: Tensor, bits: dict[str, Tensor]) -> dict[str, Any]:
    """For each kind of place: bits saved, each with its standard error."""

    def pair(more: str, less: str, chosen: Tensor) -> list[float]:
        difference = (bits[more] - bits[less])[chosen]
        return [difference.mean().item(), (difference.std() / len(difference) ** 0.5).item()]

    return {
        kind: {"places": int(chosen.sum()), "memory": pair("GPT, 8", "GPT, 127", chosen)}
        | {
            f"GPT, {n}, from {order}-gram": pair(f"{order}-gram", f"GPT, {n}", chosen)
            for n in (8, 127)
            for order in ORDERS
        }
        | {"6-gram, from 8-gram": pair("8-gram", "6-gram", chosen)}
        for kind, chosen in finer_kinds(places).items()
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    started = time.process_time()
    model, letters = live_model()
    if letters.alphabet != TOKENIZER.alphabet:
        raise SystemExit("the model has other letters than the plays")
    blocks: Any = model.transformer.blocks
    for block in blocks:
        block.self_attention.backend = FusedAttend()
    measured = bits_at_places(model)
    results = by_kind(*measured) | {"saved": saved(*measured)}
    print(record("live_reach", results, seeds=[0], cpu_seconds=time.process_time() - started))
