"""What can be read from activations by a linear map, what cannot, and what is lost without it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from tformer_lib.core.precision import precise


class Probe(NamedTuple):
    """scores = x W + b, for x as it stands in the model."""

    weight: Tensor  # (D, classes)
    bias: Tensor  # (classes,)

    def __call__(self, x: Float[Tensor, "*batch D"]) -> Int[Tensor, "*batch"]:
        """The class of the largest score."""
        return (precise(x) @ self.weight + self.bias).argmax(dim=-1)


def fit_probes(
    x: Float[Tensor, "T D"], labels: Mapping[str, Tensor], *, steps: int = 150, lr: float = 0.1,
    decay: float = 1e-4,
) -> dict[str, Probe]:  # fmt: skip
    """A logistic regression for each set of labels, all by the same steps of Adam on all rows at once.

    The features are brought to mean 0 and variance 1 first; the probe that comes back takes them as they are.

    Args:
        x: activations, a token a row.
        labels: by name, a class for each token, from 0.
        steps: of Adam, the rate falling to zero along a line.
        lr: the first rate.
        decay: the weight of the squared weights beside the loss.

    Raises:
        ValueError: if there are no labels, or as many labels as rows are missing.
    """
    if not labels or any(len(y) != len(x) for y in labels.values()):
        raise ValueError(f"each of the {len(x)} rows needs a label, in at least one set of labels")
    sizes = [int(y.max()) + 1 for y in labels.values()]
    x = precise(x)
    mean, spread = x.mean(dim=0), x.std(dim=0).clamp(min=1e-6)
    known = (x - mean) / spread
    W = torch.zeros(x.shape[1], sum(sizes), requires_grad=True)
    b = torch.zeros(sum(sizes), requires_grad=True)
    optimizer = torch.optim.Adam([W, b], lr=lr)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
        scores = (known @ W + b).split(sizes, dim=-1)
        losses = [cross_entropy(z, y) for z, y in zip(scores, labels.values(), strict=True)]
        loss = torch.stack(losses).sum() + decay * W.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weight = W.detach() / spread[:, None]
    bias = b.detach() - mean @ weight
    parts = zip(labels, weight.split(sizes, dim=-1), bias.split(sizes), strict=True)
    return {name: Probe(w, c) for name, w, c in parts}


def control_labels(
    types: Int[Tensor, " T"], labels: Int[Tensor, " T"], generator: torch.Generator | None = None
) -> Int[Tensor, " T"]:
    """Each type gets a class once and for all, drawn from `labels`: a task that can only be memorised.

    Args:
        types: what a token is, such as the number of its word.
        labels: of the task that this one stands beside; each type's class is the label of a token at random.
        generator: for the draws.

    Source:
        Hewitt and Liang 2019.
    """
    drawn = torch.randint(len(labels), (int(types.max()) + 1,), generator=generator)
    return labels[drawn][types]


def removal(directions: Float[Tensor, "D K"]) -> Float[Tensor, "D D"]:
    """I - U U^T, with an orthonormal basis U of the span of these columns: x times it has no part in it."""
    U, sizes, _ = torch.linalg.svd(directions, full_matrices=False)
    U = U[:, sizes > 1e-5 * sizes.max()]
    return torch.eye(len(U)) - U @ U.T


def without(
    x: Float[Tensor, "*batch D"], mean: Float[Tensor, " D"], keep: Float[Tensor, "D D"]
) -> Float[Tensor, "*batch D"]:
    """m + (x - m) P: x with what P removes set to its mean."""
    return mean + (x - mean) @ keep


class BestLabel(NamedTuple):
    """For each unit the label that it tells best, and how well."""

    label: Tensor  # (U,)
    known: Tensor  # (U,): F1 on the tokens by which label and threshold were chosen
    f1: Tensor  # (U,): F1 on the others


QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)


def best_labels(
    units: Float[Tensor, "T U"], labels: Bool[Tensor, "T L"], quantiles: Sequence[float] = QUANTILES
) -> BestLabel:
    """F1 = 2 TP / (2 TP + FP + FN) of "the unit exceeds a threshold" for the label that it tells best.

    Label and threshold are chosen on the first half of the tokens; the F1 to report is that of the second.

    Args:
        units: activations of neurons or features, a token a row.
        labels: which of L things are true of each token.
        quantiles: of a unit's activations in the first half; they are the thresholds that are tried.
    """
    half = len(units) // 2
    truth = labels.float()
    ordered = units[:half].sort(dim=0).values
    edges = ordered[[int(q * (half - 1)) for q in quantiles]]  # (Q, U)

    def f1(rows: slice, edge: Tensor) -> Tensor:
        fires = (units[rows] > edge).float()
        hit = fires.T @ truth[rows]  # (U, L)
        return 2 * hit / (fires.sum(0)[:, None] + truth[rows].sum(0)).clamp(min=1)

    found = torch.stack([f1(slice(0, half), edge) for edge in edges])  # (Q, U, L)
    known, label = found.amax(dim=0).max(dim=1)
    which = found.amax(dim=2).argmax(dim=0)  # (U,)
    chosen = edges.gather(0, which[None])[0]
    return BestLabel(label, known, f1(slice(half, None), chosen).gather(1, label[:, None])[:, 0])
