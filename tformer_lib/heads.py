"""What attention heads do, and what they do not explain: where weights go, what a loss misses without a head.

Heads are counted from 0, as (block, head); results with one number a head are tensors (M, H). Only
self-attention is looked at, in the one `Transformer` that the model has. A batch is a tuple that begins with
the tokens (B, N), then segments and mask where the model takes them; what follows, as targets, is not read.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from scipy.stats import kendalltau  # type: ignore[import-untyped]
from torch import Tensor, nn

from tformer_lib.core.attention import MultiHeadAttention
from tformer_lib.core.transformer import Block, Transformer
from tformer_lib.hooks import record_attention
from tformer_lib.models.modes import evaluation

POSITIONS = ("itself", "previous", "next", "same token elsewhere", "the rest")
Batch = tuple[Any, ...]  # (tokens, segments or None, mask or None, ...)


@dataclass(frozen=True)
class HeadProfile:
    """Where the weight of each head goes, on the average over queries; the shares of a head sum to one."""

    shares: dict[str, Float[Tensor, "M H"]]  # by kind of key: special tokens first, then POSITIONS
    uniform: dict[str, float]  # the same if every allowed key had the same weight
    entropy: Float[Tensor, "M H"]  # -sum_j a_j log a_j in nats, on the average over queries
    uniform_entropy: float  # the same for equal weights, the largest there is

    def favourites(self) -> list[list[str]]:
        """For each block and head the kind of key that gets most above what equal weights would give it."""
        kinds = list(self.shares)
        above = torch.stack([self.shares[kind] - self.uniform[kind] for kind in kinds])
        return [[kinds[i] for i in row] for row in above.argmax(dim=0).tolist()]


def attention_layers(model: nn.Module) -> list[MultiHeadAttention]:
    """The self-attention layers of the model's blocks, in order.

    Raises:
        ValueError: if there is not exactly one `Transformer` in the model.
    """
    blocks = [block for block in _transformer(model).blocks if isinstance(block, Block)]
    return [block.self_attention for block in blocks]


def _transformer(model: nn.Module) -> Transformer:
    found = [module for module in model.modules() if isinstance(module, Transformer)]
    if len(found) != 1:
        raise ValueError(f"heads are counted in one Transformer; {type(model).__name__} has {len(found)}")
    return found[0]


@torch.no_grad()
def attention_weights(model: nn.Module, batch: Batch) -> Float[Tensor, "B M H N N"]:
    """The weights of every head on one batch, queries along the last axis but one; dropout is off."""
    stack = _transformer(model)
    with evaluation(model), record_attention(stack) as weights:
        model(*batch[:3])
    return torch.stack([weights[f"blocks.{m}.self_attention"] for m in range(len(stack.blocks))], dim=1)


def head_profile(model: nn.Module, batches: Iterable[Batch], special: Mapping[str, int]) -> HeadProfile:
    """The mean weight a_nj that each head puts on each kind of key j, over all real queries n.

    Every key is of one kind: that of a special token, if it is one of `special`; else, by where it stands,
    the query itself, the token before, the token after, the query's token at another place; or the rest. So
    the [SEP] after the last word counts as [SEP], not as the next token.

    What a query may see is read off the weights, since a forbidden key has weight zero in all heads: causal
    masks and padding need not be told. A token that nobody sees is padding, and not a query.

    Args:
        model: a model such as `BERT` or `GPT`, whose layers are not fused.
        batches: what to read; see the module.
        special: the special tokens by name, such as {"[CLS]": 2, "[SEP]": 3}.

    Raises:
        ValueError: if there is nothing to read, or not exactly one `Transformer`.

    Source:
        After Clark et al. 2019, who look at the previous, the next and the current token and at [SEP]; the
        division into kinds that do not overlap and the baseline are ours.
    """
    total: dict[str, Tensor] = {}
    equal: dict[str, float] = {}
    entropy, equal_entropy, queries = torch.zeros(()), 0.0, 0
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
        equal_entropy += torch.special.entr(uniform).sum(-1)[real].sum().item()
        queries += int(real.sum())
    if not queries:
        raise ValueError("there is no token to look at: batches are empty")
    return HeadProfile(
        {kind: sums / queries for kind, sums in total.items()},
        {kind: sums / queries for kind, sums in equal.items()},
        entropy / queries,
        equal_entropy / queries,
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


@contextmanager
def silence(model: nn.Module, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """y = W_o concat(..., 0, ...) + b: within the `with`, the heads given add nothing to the stream.

    What they would hand to W_o is set to zero by a hook on W_o, so that no weight is touched; the hooks go
    when the block ends, also when it ends in an error. Silences nest, and add up.

    Args:
        model: any model with one `Transformer`; its backends may be fused.
        heads: pairs (block, head), counted from 0.

    Raises:
        ValueError: if there is no such head, or not exactly one `Transformer`.
    """
    layers = attention_layers(model)
    silent: dict[int, set[int]] = {}
    for block, head in heads:
        if not (0 <= block < len(layers) and 0 <= head < layers[block].n_heads):
            shape = f"{len(layers)} blocks with {layers[0].n_heads} heads each"
            raise ValueError(f"there is no head {head} in block {block}: the model has {shape}")
        silent.setdefault(block, set()).add(head)
    with ExitStack() as hooks:
        for block, numbers in silent.items():
            layer = layers[block]
            of_feature = torch.arange(layer.d_model) // layer.d_head
            features = torch.isin(of_feature, torch.tensor(sorted(numbers)))
            hook = layer.W_o.register_forward_pre_hook(
                lambda _module, inputs, features=features: (
                    inputs[0].masked_fill(features.to(inputs[0].device), 0.0),
                )
            )
            hooks.callback(hook.remove)
        yield


@torch.no_grad()
def ablation(model: nn.Module, loss: Callable[[nn.Module], Tensor | float]) -> Float[Tensor, "M H"]:
    """loss without head (m, h), all others there, minus loss with all of them; dropout is off.

    Args:
        model: any model with one `Transformer`.
        loss: measures the model, always on the same data.

    Source:
        Michel et al. 2019, who measure BLEU and accuracy.
    """
    layers = attention_layers(model)
    with evaluation(model):
        whole = float(loss(model))
        rise = torch.zeros(len(layers), layers[0].n_heads)
        for block, layer in enumerate(layers):
            for head in range(layer.n_heads):
                with silence(model, [(block, head)]):
                    rise[block, head] = float(loss(model)) - whole
    return rise


@dataclass(frozen=True)
class Deletions:
    """Beside each other: what a place attends to, and which tokens the answer given there needs."""

    attention: Float[Tensor, "B M H N"]  # the weights of the place that answers
    change: Float[Tensor, "B N"]  # log p(answer) as it is, minus log p(answer) with this token replaced
    asked: Bool[Tensor, "B N"]  # the tokens that were replaced; the rest hold nothing

    def tau(self, blocks: slice = slice(None)) -> Float[Tensor, "B"]:
        """Kendall's tau, for each sequence, between weights (mean over heads, blocks) and |change|."""
        return kendall_tau(self.attention[:, blocks].mean(dim=(1, 2)), self.change.abs(), self.asked)


@torch.no_grad()
def attention_against_deletion(
    model: nn.Module,
    batch: Batch,
    answer: Callable[[nn.Module, Batch], Float[Tensor, "B classes"]],
    *,
    replacement: int,
    special: Iterable[int],
    places: int | Int[Tensor, "B"] = 0,
) -> Deletions:
    """For each token in turn: how much the answering place attends to it, and what its loss would change.

    The answer is the class that the model itself finds likeliest on the whole sequence. Each token that is
    neither special, nor padding, nor at the answering place is replaced by `replacement`, the others staying,
    and log p of that same class measured again. Dropout is off.

    Args:
        model: any model with one `Transformer`, whose layers are not fused.
        batch: what it reads; see the module.
        answer: logits, or log-probabilities, of the classes: for a `SequenceClassifier`
            `lambda model, batch: model(*batch)`; for holes the logits of the tokens there.
        replacement: the number of [MASK] or [UNK].
        special: numbers of tokens that are not replaced, among them that of padding.
        places: where the answer is read: 0 for [CLS], else one place a sequence.

    Source:
        The question, and the rank correlation with leaving one token out, are those of Jain and Wallace 2019,
        for attention on top of recurrent encoders. Here the encoder is a transformer, the token is replaced
        and not left out, so that the others keep their places, and log p(answer) is compared.
    """
    batch = batch[:3]
    tokens = batch[0]
    rows = torch.arange(len(tokens), device=tokens.device)
    places = torch.as_tensor(places, device=tokens.device).expand(len(tokens))
    attention = attention_weights(model, batch)[rows, :, :, places]
    numbers = torch.tensor(sorted(special), dtype=tokens.dtype, device=tokens.device)
    asked = ~torch.isin(tokens, numbers)
    asked[rows, places] = False
    with evaluation(model):
        whole = answer(model, batch).log_softmax(-1)
        best = whole.argmax(-1)
        change = torch.zeros(tokens.shape, device=tokens.device)
        for n in asked.any(dim=0).nonzero().flatten().tolist():
            fewer = tokens.clone()
            fewer[asked[:, n], n] = replacement
            change[:, n] = (whole - answer(model, (fewer, *batch[1:])).log_softmax(-1))[rows, best]
    return Deletions(attention, change * asked, asked)


def kendall_tau(
    a: Float[Tensor, "B N"], b: Float[Tensor, "B N"], asked: Bool[Tensor, "B N"]
) -> Float[Tensor, "B"]:
    """(concordant - discordant) / pairs, row by row, over the entries asked: 1 same order, -1 reversed.

    Ties are counted as in Kendall's tau-b. A row with fewer than two different values has no tau: NaN.
    """
    taus = [
        kendalltau(x[k].cpu(), y[k].cpu()).statistic if k.sum() > 1 else math.nan
        for x, y, k in zip(a, b, asked, strict=True)
    ]
    return torch.tensor(taus, dtype=torch.float32)
