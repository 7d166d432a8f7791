"""Text with holes: which tokens BERT is asked for, and the batches on which it is pre-trained."""

import random
from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from tformer_lib.core.masks import padding_mask
from tformer_lib.core.tokens import IGNORED
from tformer_lib.data.sentence_pairs import pack_lists, special
from tformer_lib.data.sentence_spans import DOES_NOT, FOLLOWS, Documents, SentenceSpans
from tformer_lib.tokenizers import WordPieceTokenizer

MASKED, RANDOM = 0.8, 0.1  # of the chosen tokens; the rest stay as they are


def mask_tokens(
    tokens: Int[Tensor, "*shape"],
    tokenizer: WordPieceTokenizer,
    *,
    share: float | int = 0.15,
    generator: torch.Generator | None = None,
) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B N"]]:
    """(inputs, targets): each ordinary token is chosen with probability `share`, and most of them hidden.

    Of the tokens chosen, 80% become [MASK], 10% a random ordinary token (by chance the same again), 10%
    stay. Each token is chosen for itself, and each of the chosen falls to one of the three in one draw.
    Special tokens, [UNK] among them, are neither chosen nor drawn. If nothing at all is chosen, one
    token, drawn at random, is.

    Args:
        tokens: (B, N); not changed.
        tokenizer: for the number of [MASK] and of the other special tokens.
        share: the probability, 0.15 in the paper.
        generator: of what is drawn; PyTorch's own if None.

    Returns:
        What the model reads, and the targets, which are the true token where one was chosen and `IGNORED`
        elsewhere.

    Raises:
        ValueError: if `share` is outside (0, 1], the tokens are not (B, N) numbers of the vocabulary or
            special without exception, or the tokenizer has no [MASK] or nothing but special tokens.

    Source:
        Devlin et al. 2019, section 3.1 and appendix A.1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is a probability in (0, 1], got {share}")
    if tokens.ndim != 2 or tokens.dtype != torch.long:
        raise ValueError(f"tokens are (B, N) of torch.long, got {tuple(tokens.shape)} of {tokens.dtype}")
    mask = special(tokenizer, "[MASK]")
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < tokenizer.vocab_size:
        got = f"{int(tokens.min())} to {int(tokens.max())}"
        raise ValueError(f"tokens are numbered 0 to {tokenizer.vocab_size - 1}, got {got}")
    is_ordinary = torch.ones(tokenizer.vocab_size, dtype=torch.bool)
    is_ordinary[list(tokenizer.special_tokens.values())] = False
    ordinary = is_ordinary.nonzero().flatten()
    free = is_ordinary[tokens.cpu()]
    if not free.any():
        raise ValueError("there is no ordinary token to choose")
    device = "cpu" if generator is None else generator.device
    draws = torch.rand(2, *tokens.shape, generator=generator, device=device).cpu()
    others = ordinary[torch.randint(len(ordinary), tokens.shape, generator=generator, device=device).cpu()]
    chosen = free & (draws[0] < share)
    if not chosen.any():
        chosen.view(-1)[draws[0].masked_fill(~free, 2.0).argmin()] = True
    chosen, fate, others = (x.to(tokens.device) for x in (chosen, draws[1], others))
    inputs = torch.where(chosen & (fate < MASKED), mask, tokens)
    inputs = torch.where(chosen & (fate >= MASKED) & (fate < MASKED + RANDOM), others, inputs)
    return inputs, torch.where(chosen, tokens, IGNORED)


class PretrainingBatches:
    """`steps` batches (tokens, segments, mask, targets, labels), as `pretraining_loss` takes them.

    Tokens, segments and targets are (B, N), the mask is (B, 1, 1, N), labels are (B,). A row is
    [CLS] A [SEP] B [SEP]; B follows A (label 0) or, with probability 1/2, comes from another document
    (label 1); see `SentenceSpans` for how the spans are drawn and `mask_tokens` for the holes. To loop
    over it a second time gives the same batches again, whatever else draws random numbers.

    The paper has 10% of the sequences shorter than the others; here all are as long as fits.

    Args:
        documents: the sentences of each document, such as `wikipedia_sentences` gives.
        tokenizer: cuts them; with [PAD], [CLS], [SEP] and [MASK].
        batch: the number B of rows.
        length: the number N of places in a row.
        steps: the number of batches.
        seed: of what is drawn.
        pairs: if False, a row is [CLS] A [SEP] and all labels are 0.
        share: of the tokens chosen, see `mask_tokens`.

    Raises:
        ValueError: if `batch` or `steps` is below 1, `share` is outside (0, 1], or as `pack` and
            `SentenceSpans`.

    Source:
        Devlin et al. 2019, section 3.1 and appendix A.2.
    """

    def __init__(
        self,
        documents: Documents,
        tokenizer: WordPieceTokenizer,
        *,
        batch: int,
        length: int,
        steps: int,
        seed: int = 0,
        pairs: bool = True,
        share: float | int = 0.15,
    ):
        if batch < 1 or steps < 1:
            raise ValueError(f"batch and steps are 1 or more, got {batch} and {steps}")
        if not 0 < share <= 1:
            raise ValueError(f"share is a probability in (0, 1], got {share}")
        self.spans = SentenceSpans(documents, tokenizer)
        self.tokenizer, self.batch, self.length = tokenizer, batch, length
        self.steps, self.seed, self.pairs, self.share = steps, seed, pairs, share
        for label in (FOLLOWS, DOES_NOT):  # what cannot be drawn is found out now
            self._row(random.Random(seed), label)
        special(tokenizer, "[MASK]")

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
        chance, generator = random.Random(self.seed), torch.Generator().manual_seed(self.seed)
        pad = special(self.tokenizer, "[PAD]")
        for _ in range(self.steps):
            kinds = (FOLLOWS, DOES_NOT) if self.pairs else (FOLLOWS,)
            labels = chance.choices(kinds, k=self.batch)
            rows = [self._row(chance, label) for label in labels]
            tokens, segments = (torch.tensor(side) for side in zip(*rows, strict=True))
            inputs, targets = mask_tokens(tokens, self.tokenizer, share=self.share, generator=generator)
            yield inputs, segments, padding_mask(tokens, pad), targets, torch.tensor(labels)

    def _row(self, chance: random.Random, label: int) -> tuple[list[int], list[int]]:
        if not self.pairs:
            return pack_lists(self.spans.single(chance, self.length - 2), None, self.tokenizer, self.length)
        first, second = self.spans.pair(chance, label, self.length - 3)
        return pack_lists(first, second, self.tokenizer, self.length)
