"""Translators of number words that the book looks into."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tformer_book.inside.data.number_pairs import number_batches, with_end
from tformer_book.kit.data.number_words import NumberWords
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.training import fit, seed_everything

READS = ("all", "end", "words", "either")
BLANKS = 0.1  # share of words that training leaves out


class GatedTranslator(Translator):
    """Chapter 9's translator whose decoder may read only some places of what the encoder has made.

    "all": every place. "end": the end token alone, so that the encoder has to carry every word there.
    "words": every place but the end token. "either": in training one of these two, by the toss of a coin for
    each example; afterwards all. It then has two copies of each word, and each has had to suffice. What a
    trained model reads can be changed by setting its `reads`.

    Args:
        config: sizes and choices.
        vocab_size: the number of source tokens.
        reads: "all", "end", "words" or "either".
        **options: those of `Translator`.

    Raises:
        ValueError: if `reads` is none of these.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int, *, reads: str = "all", **options: Any):
        if reads not in READS:
            raise ValueError(f"reads must be one of {READS}, got {reads!r}")
        super().__init__(config, vocab_size, **options)
        self.reads = reads

    def encode(self, source: Int[Tensor, "B S"]) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B 1 1 S"]]:
        """What the encoder makes of the source, and the mask of what the decoder may read of it."""
        memory, mask = super().encode(source)
        end = (source == self.eos_id)[:, None, None]
        if self.reads == "end":
            return memory, end
        if self.reads == "words":
            return memory, mask & ~end
        if self.reads == "either" and self.training:
            tossed = torch.rand(len(source), 1, 1, 1) < 0.5
            return memory, torch.where(tossed, end, mask & ~end)
        return memory, mask


def trained_translator(
    data: NumberWords,
    seed: int,
    *,
    reads: str = "all",
    blocks: int = 2,
    steps: int = 600,
    batch: int = 32,
) -> GatedTranslator:
    """A translator 48 wide with four heads, trained on number words."""
    seed_everything(seed)
    config = TransformerConfig(d_model=48, n_heads=4, n_blocks=blocks, d_hidden=96, activation="relu")
    model = GatedTranslator(config, len(data.english), target_vocab_size=len(data.german), reads=reads)
    batches = number_batches(data, steps, batch, seed, blanks=BLANKS)
    fit(model, translator_loss, batches, steps=steps, lr=2e-2, warmup=30, optimizer="muon", progress=False)
    return model


@torch.no_grad()
def exact_share(model: Translator, data: NumberWords, numbers: list[int]) -> float:
    """The share of numbers that greedy decoding translates without a mistake.

    It does so exactly when every true word is the likeliest one after the true words before it, which takes
    one pass instead of one for each word.
    """
    source, target = data.encode(numbers)
    said: Tensor = model(with_end(source), target[:, :-1]).argmax(dim=-1)
    right = (said == target[:, 1:]) | (target[:, 1:] == model.pad_id)
    return right.all(dim=1).float().mean().item()
