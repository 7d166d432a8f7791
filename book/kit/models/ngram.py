"""n-grams: the next token's probability from counts of the tokens before it, smoothed or not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

SMOOTHINGS = ("kneser-ney", "none")


@dataclass
class Table:
    """The k-grams of the training text: what is needed to give p(w | the k - 1 tokens before it).

    A k-gram has a number, its place in `keys`; its key is (number of its first k - 1 tokens) * vocab + its
    last token. Keys are sorted, so that the k-grams of one context stand together.

    Args:
        keys: the keys, in ascending order.
        shares: by k-gram, what is left of its count after the discount, over the context's count.
        backoff: by context, the probability that the discounts set free.
        totals: by context, its count; a context of count 0 leaves everything to the order below.
    """

    keys: np.ndarray
    shares: np.ndarray
    backoff: np.ndarray
    totals: np.ndarray

    def find(self, keys: np.ndarray) -> np.ndarray:
        """The numbers of the k-grams of these keys; -1 for a k-gram that was never seen."""
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)


class NGram:
    """p_k(w | h) = (c(hw) - D) / c(h) + b(h) p_{k-1}(w | h without its first token), from k = order down.

    This is interpolated Kneser-Ney smoothing with the modified discounts of Chen and Goodman (1999): D
    depends on whether the count is 1, 2 or more, b(h) is what the discounts set free, and below the highest
    order c(hw) is not how often hw occurs but after how many different tokens. At the bottom p_0 is uniform,
    so that no probability is zero. `smoothing="none"` is c(hw) / c(h): the maximum of the likelihood on the
    training text, and zero for what does not occur there. At the beginning of a text, where fewer than
    `order` - 1 tokens have been read, the order that fits is used.

    Args:
        order: the number of tokens in a gram: 0 uniform, 1 unigram (no context), 2 bigram, ...
        vocab_size: the number of tokens.
        smoothing: "kneser-ney" or "none".

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(self, order: int, vocab_size: int, smoothing: str = "kneser-ney"):
        if order < 0 or vocab_size < 1:
            raise ValueError(f"order is at least 0 and vocab_size at least 1, got {order} and {vocab_size}")
        if smoothing not in SMOOTHINGS:
            raise ValueError(f"smoothing is one of {', '.join(SMOOTHINGS)}, got {smoothing!r}")
        self.order, self.vocab_size, self.smoothing = order, vocab_size, smoothing
        self.tables: list[Table] = []

    def fit(self, ids: Int[Tensor, " T"]) -> "NGram":
        """Counts the grams of a text, and returns the model itself.

        Raises:
            ValueError: if the text is shorter than a gram, or a token is not below `vocab_size`.
        """
        tokens = self.tokens(ids)
        if len(tokens) < max(self.order, 1):
            raise ValueError(f"{len(tokens)} tokens hold no gram of {self.order}")
        self.tables = []
        keys: list[np.ndarray] = []
        first: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        contexts = [1]
        numbers = [np.zeros(len(tokens) + 1, dtype=np.int64)]  # of the k-gram that ends at each place
        for k in range(1, self.order + 1):
            key = numbers[-1][:-1] * self.vocab_size + tokens[k - 1 :]
            unique = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
            for values, found in zip((keys, first, counts), (unique[0], unique[1], unique[3]), strict=True):
                values.append(found)
            numbers.append(unique[2])
            contexts.append(len(unique[0]))
        for k in range(1, self.order + 1):
            count = counts[k - 1]
            if k < self.order and self.smoothing == "kneser-ney":
                # the last k tokens of each different (k + 1)-gram: how many tokens stand before a k-gram
                count = np.bincount(numbers[k][1:][first[k]], minlength=len(count))
            self.tables.append(self.table(keys[k - 1], count, contexts[k - 1]))
        return self

    def table(self, keys: np.ndarray, count: np.ndarray, n_contexts: int) -> Table:
        """One order's table from its keys and counts."""
        context = keys // self.vocab_size
        totals = np.bincount(context, weights=count, minlength=n_contexts)
        taken = discounts(count)[count.clip(max=3)] if self.smoothing == "kneser-ney" else 0.0 * count
        known = totals.clip(min=1)
        backoff = np.bincount(context, weights=taken, minlength=n_contexts) / known
        return Table(keys, (count - taken) / known[context], np.where(totals > 0, backoff, 1.0), totals)

    def log_probabilities(self, ids: Int[Tensor, " T"]) -> Float[Tensor, " T"]:
        """log p of each token of a text, given those before it; -inf where the probability is zero.

        Raises:
            RuntimeError: before `fit`.
            ValueError: if a token is not below `vocab_size`.
        """
        tokens = self.tokens(ids)
        self.check_fitted()
        p = np.full(len(tokens), 1 / self.vocab_size)
        context = np.zeros(len(tokens), dtype=np.int64)  # the number of the k - 1 tokens before; -1: unseen
        for k, table in enumerate(self.tables[: len(tokens)], start=1):
            place = np.arange(k - 1, len(tokens))
            seen = place[context[place] >= 0]
            number = np.full(len(tokens), -1)
            number[seen] = table.find(context[seen] * self.vocab_size + tokens[seen])
            shares = np.where(number[seen] >= 0, table.shares[number[seen]], 0.0)
            if self.smoothing == "none":
                p[place] = 0.0
            p[seen] = shares + table.backoff[context[seen]] * p[seen]
            context = np.concatenate(([-1], number[:-1]))
        with np.errstate(divide="ignore"):
            return torch.from_numpy(np.log(p))

    def nll(self, ids: Int[Tensor, " T"]) -> float:
        """Mean of -log p over the tokens of a text, in nats; infinite if one has probability zero."""
        return -self.log_probabilities(ids).mean().item()

    def probabilities(self, context: Int[Tensor, " T"] | Sequence[int] = ()) -> Float[Tensor, " vocab"]:
        """p(w | context) of every token w; only the last `order` - 1 tokens of the context matter.

        Raises:
            RuntimeError: before `fit`.
            ValueError: if the model is not smoothed and the context was never seen, or followed by nothing.
        """
        self.check_fitted()
        read = self.tokens(torch.as_tensor(context, dtype=torch.int64))
        p = np.full(self.vocab_size, 1 / self.vocab_size)
        for k, table in enumerate(self.tables[: len(read) + 1], start=1):
            number = self.number(read[len(read) - k + 1 :])
            known = number >= 0 and table.totals[number] > 0
            if self.smoothing == "none":
                p = np.zeros(self.vocab_size)
            if known:
                start, stop = np.searchsorted(
                    table.keys, [number * self.vocab_size, (number + 1) * self.vocab_size]
                )
                p = p * table.backoff[number]
                p[table.keys[start:stop] % self.vocab_size] += table.shares[start:stop]
            elif self.smoothing == "none":
                raise ValueError(f"nothing follows {read[len(read) - k + 1 :].tolist()} in the training text")
        return torch.from_numpy(p)

    def number(self, gram: np.ndarray) -> int:
        """The number of a gram in the table of its length, -1 if it was never seen; 0 for the empty one."""
        number = 0
        for table, token in zip(self.tables, gram, strict=False):
            number = int(table.find(np.array([number * self.vocab_size + token]))[0])
            if number < 0:
                break
        return number

    def sample(
        self, length: int, context: Int[Tensor, " T"] | Sequence[int] = (), seed: int = 0
    ) -> Int[Tensor, " length"]:
        """`length` tokens, each drawn from p(w | context and the tokens drawn before it)."""
        generator = torch.Generator().manual_seed(seed)
        text = torch.as_tensor(context, dtype=torch.int64).tolist()
        start = len(text)
        for _ in range(length):
            p = self.probabilities(text[len(text) - self.order + 1 :] if self.order > 1 else ())
            text.append(int(torch.multinomial(p, 1, generator=generator)))
        return torch.tensor(text[start:], dtype=torch.int64)

    def tokens(self, ids: Int[Tensor, " T"]) -> np.ndarray:
        """The tokens as NumPy's integers, once they are known to be tokens."""
        if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < self.vocab_size):
            raise ValueError(
                f"tokens lie in 0..{self.vocab_size - 1}, got {int(ids.min())}..{int(ids.max())}"
            )
        return ids.cpu().numpy().astype(np.int64)

    def check_fitted(self) -> None:
        """Raise a RuntimeError unless the model has counted a text, or needs none."""
        if self.order and not self.tables:
            raise RuntimeError("fit the n-gram model to a text first")


def discounts(count: np.ndarray) -> np.ndarray:
    """D for counts 0, 1, 2 and 3 or more: D_c = c - (c + 1) Y n_{c+1} / n_c with Y = n_1 / (n_1 + 2 n_2).

    n_c is the number of grams of count c (Chen and Goodman 1999). Where the text has none of some count up
    to 4, D is 1/2 for all.
    """
    n = np.bincount(count.clip(max=5), minlength=6)[:5].astype(float)
    if (n[1:] == 0).any():
        return np.array([0.0, 0.5, 0.5, 0.5])
    y = n[1] / (n[1] + 2 * n[2])
    found = [c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3)]
    return np.array([0.0, *np.clip(found, 0.0, [1.0, 2.0, 3.0])])
