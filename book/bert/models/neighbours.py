"""Guessing a masked token from its two neighbours, by counting: what a masked language model must beat."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tformer_lib.core.tokens import IGNORED
from tformer_lib.measures.masked import Batch, means

NONE = -1  # as a neighbour: there is none, or it is not looked at
SIDES = ("left", "right", "both")


class NeighbourTable:
    """p(w | l, r) = (c(lwr) - D) / c(l.r) + b(l, r) q(w | l, r) with q proportional to p(w|l) p(w|r) / p(w).

    q would be right if text were a Markov chain, in which a token depends on the one before it alone: then
    left and right neighbour are independent once w is known. Where both neighbours occurred around the same
    token, the counts themselves are used: D is taken from each that is not 0, and b(l, r) is the probability
    so set free. One side alone is p(w | l) = (c(lw) - D) / c(l.) + b(l) p(w), and the same from the right;
    p(w) is the unigram with one added to each count. A neighbour that was never seen, such as [MASK], says
    nothing, and its side is left out.

    Args:
        vocab_size: the number of tokens; the tables of pairs hold vocab squared numbers each.
        discount: D, between 0 and 1.

    Raises:
        ValueError: if an argument is out of range.

    Source:
        Absolute discounting: Ney, Essen and Kneser 1994.
    """

    def __init__(self, vocab_size: int, discount: float = 0.75):
        if vocab_size < 1 or not 0 < discount < 1:
            raise ValueError(
                f"vocab_size is at least 1 and 0 < discount < 1, got {vocab_size} and {discount}"
            )
        self.vocab_size, self.discount = vocab_size, discount
        self.unigram: Tensor | None = None

    def fit(self, ids: Int[Tensor, " T"]) -> "NeighbourTable":
        """Counts the pairs and triples of a text, and returns the table itself.

        Raises:
            ValueError: if the text has no three tokens, or a token is not below `vocab_size`.
        """
        if len(ids) < 3 or int(ids.min()) < 0 or int(ids.max()) >= self.vocab_size:
            raise ValueError(f"a text is three tokens or more, each in 0..{self.vocab_size - 1}")
        counts = torch.bincount(ids, minlength=self.vocab_size) + 1.0
        self.unigram = counts / counts.sum()
        pairs = torch.bincount(ids[:-1] * self.vocab_size + ids[1:], minlength=self.vocab_size**2)
        pairs = pairs.view(self.vocab_size, self.vocab_size).float()
        self.from_left = self.discounted(pairs, self.unigram)  # [l, w]
        self.from_right = self.discounted(pairs.T, self.unigram)  # [r, w]
        around = ids[:-2] * self.vocab_size + ids[2:]
        self.triples, self.count = (around * self.vocab_size + ids[1:-1]).unique(return_counts=True)
        return self

    def discounted(
        self, counts: Float[Tensor, "K vocab"], lower: Float[Tensor, "*K vocab"]
    ) -> Float[Tensor, "K vocab"]:
        """(c - D) / sum c + b lower, row by row; `lower` where nothing was counted."""
        total = counts.sum(-1, keepdim=True)
        free = torch.where(total > 0, self.discount * (counts > 0).sum(-1, keepdim=True) / total, 1.0)
        return (counts - self.discount).clamp(min=0) / total.clamp(min=1) + free * lower

    def log_probabilities(
        self, left: Int[Tensor, " K"] | None = None, right: Int[Tensor, " K"] | None = None
    ) -> Float[Tensor, "K vocab"]:
        """log p(w | neighbours) of every token w, a row a place.

        Args:
            left: the tokens before; -1 where there is none. None: that side is not looked at.
            right: the tokens after, likewise.

        Raises:
            RuntimeError: before `fit`.
            ValueError: if neither side is given, or a token is not below `vocab_size`.
        """
        if self.unigram is None:
            raise RuntimeError("fit the table to a text first")
        given = [side for side in (left, right) if side is not None]
        if not given:
            raise ValueError("give the left neighbours, the right ones, or both")
        if any(
            len(side) and not -1 <= int(side.min()) <= int(side.max()) < self.vocab_size for side in given
        ):
            raise ValueError(f"neighbours lie in 0..{self.vocab_size - 1}, or are {NONE} for none")
        sides = []
        for side, table in ((left, self.from_left), (right, self.from_right)):
            if side is not None:
                sides.append(torch.where(side[:, None] < 0, self.unigram, table[side.clamp(min=0)]))
        if left is None or right is None:
            return sides[0].log()
        q = sides[0] * sides[1] / self.unigram
        q = q / q.sum(-1, keepdim=True)
        return self.discounted(self.between(left, right), q).log()

    def between(self, left: Int[Tensor, " K"], right: Int[Tensor, " K"]) -> Float[Tensor, "K vocab"]:
        """c(lwr): how often each token stood between these two."""
        counts = torch.zeros(len(left), self.vocab_size)
        for row, (before, after) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            if before >= 0 and after >= 0:
                first = (before * self.vocab_size + after) * self.vocab_size
                start, stop = torch.searchsorted(self.triples, torch.tensor([first, first + self.vocab_size]))
                counts[row, self.triples[start:stop] - first] = self.count[start:stop].float()
        return counts


def neighbour_scores(table: NeighbourTable, batches: list[Batch], sides: str = "both") -> tuple[float, float]:
    """What `masked_scores` is for a `NeighbourTable`: -mean log p in nats, and the accuracy.

    It sees the tokens beside a chosen place as the model does, [MASK] among them, and not the place itself.

    Args:
        table: fitted to the training text.
        batches: those of `pretraining_loss`.
        sides: "left", "right" or "both".

    Raises:
        ValueError: if there are no such sides, or no place is chosen.
    """
    if sides not in SIDES:
        raise ValueError(f"sides is one of {', '.join(SIDES)}, got {sides!r}")
    log_p, right = [torch.empty(0)], [torch.empty(0, dtype=torch.bool)]
    for tokens, _, _, targets, _ in batches:
        places = targets != IGNORED
        none = torch.full_like(tokens[:, :1], NONE)
        before = torch.cat((none, tokens[:, :-1]), 1)[places] if sides != "right" else None
        after = torch.cat((tokens[:, 1:], none), 1)[places] if sides != "left" else None
        rows = table.log_probabilities(before, after)
        log_p.append(rows.gather(1, targets[places][:, None])[:, 0])
        right.append(rows.argmax(-1) == targets[places])
    return means(torch.cat(log_p), torch.cat(right))
