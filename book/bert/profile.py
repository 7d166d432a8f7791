"""Where heads look: the mean weight that each puts on each kind of key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tformer_lib.analysis.weights import Batch, attention_weights

POSITIONS = ("itself", "previous", "next", "same token elsewhere", "the rest")


@dataclass(frozen=True)
class HeadProfile:
    """Where the weight of each head goes, on the average over queries; the shares of a head sum to one."""

    shares: dict[str, Float[Tensor, "M H"]]  # by kind of key: special tokens first, then POSITIONS
    uniform: dict[str, float]  # the same if every allowed key had the same weight
    entropy: Float[Tensor, "M H"]  # -sum_j a_j log a_j in nats, on the average over queries

    def favourites(self) -> list[list[str]]:
        """For each block and head the kind of key that gets most above what equal weights would give it."""
        kinds = list(self.shares)
        above = torch.stack([self.shares[kind] - self.uniform[kind] for kind in kinds])
        return [[kinds[i] for i in row] for row in above.argmax(dim=0).tolist()]


def head_profile(model: nn.Module, batches: Iterable[Batch], special: Mapping[str, int]) -> HeadProfile:
    """The mean weight a_nj that each head puts on each kind of key j, over all real queries n.

    Every key is of one kind: that of a special token, if it is one of `special`; else, by where it stands,
    the query itself, the token before, the token after, the query's token at another place; or the rest. So
    the [SEP] after the last word counts as [SEP], not as the next token.

    What a query may see is read off the weights, since a forbidden key has weight zero in all heads: causal
    masks and padding need not be told. A token that nobody sees is padding, and not a query.

    Args:
        model: a model such as `BERT` or `GPT`, whose layers are not fused.
        batches: what to read; tokens first, then segments and mask as the model takes them.
        special: the special tokens by name, such as {"[CLS]": 2, "[SEP]": 3}.

    Raises:
        ValueError: if there is nothing to read, or not exactly one `Transformer`.

    Source:
        After Clark et al. 2019, who look at the previous, the next and the current token and at [SEP]; the
        division into kinds that do not overlap and the baseline are ours.
    """
    total: dict[str, Tensor] = {}
    equal: dict[str, float] = {}
    entropy, queries = torch.zeros(()), 0
    for batch in batches:
        weights = attention_weights(model, batch)
        allowed = (weights > 0).any(dim=(1, 2))
        real = allowed.any(dim=1)
        uniform = allowed / allowed.sum(dim=2, keepdim=True).clamp(min=1)
        for kind, keys in _kinds(batch[0], special).items():
            on_kind = (weights * keys[:, None, None]).sum(-1)
            total[kind] = total.get(kind, 0) + _over_queries(on_kind, real)
            equal[kind] = equal.get(kind, 0.0) + (uniform * keys).sum(-1)[real].sum().item()
        entropy = entropy + _over_queries(torch.special.entr(weights).sum(-1), real)
        queries += int(real.sum())
    if not queries:
        raise ValueError("there is no token to look at: batches are empty")
    return HeadProfile(
        {kind: sums / queries for kind, sums in total.items()},
        {kind: sums / queries for kind, sums in equal.items()},
        entropy / queries,
    )


def _over_queries(x: Float[Tensor, "B M H N"], real: Bool[Tensor, "B N"]) -> Float[Tensor, "M H"]:
    return (x * real[:, None, None]).sum(dim=(0, 3))


def _kinds(tokens: Int[Tensor, "B N"], special: Mapping[str, int]) -> dict[str, Bool[Tensor, "B N N"]]:
    """For each kind, which pairs (query, key) are of it; each pair is of exactly one."""
    n = tokens.shape[1]
    place = torch.arange(n, device=tokens.device)
    step = (place[None, :] - place[:, None]).expand(len(tokens), n, n)  # from query to key
    everything = torch.ones_like(step, dtype=torch.bool)
    candidates = {name: (tokens == number)[:, None, :].expand_as(step) for name, number in special.items()}
    same = tokens[:, :, None] == tokens[:, None, :]
    candidates |= dict(zip(POSITIONS, (step == 0, step == -1, step == 1, same, everything), strict=True))
    left, kinds = everything, {}
    for kind, pairs in candidates.items():
        kinds[kind] = pairs & left
        left = left & ~pairs
    return kinds
