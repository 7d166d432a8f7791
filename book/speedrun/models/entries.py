"""The book's entries for the speedrun: small language models that learn as much as they can in seconds.

An entry has two parts. `build(vocab)` makes a model, which maps tokens (B, N) to logits (B, N, vocab).
`train(text, vocab, seed)` returns the tensors that such a model is to load. `experiments/speedrun.py` has the
rules, and finds the entries by their names in `ENTRIES`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.data.windows import RandomWindows
from tformer_lib.training.muon import QUINTIC, TINY
from tformer_lib.training.seeds import seed_everything

WINDOW, SMALL, LIMIT = 64, 0.02, 804_096  # of the numbers of an entry


@dataclass(frozen=True)
class Settings:
    """A `FastDecoder` and how `fast` trains it; `CHANGES` names what can be taken away."""

    width: int = 128
    heads: int = 2
    blocks: int = 1
    hidden: int = 256
    earlier: int = 2  # how many characters before a token are embedded with it
    grams: int = 3  # tables in which the last two characters together have a row, the last three, ...
    rows: int = 1601  # of each; a prime, so that contexts which share a row have little else in common
    first: float = 0.3  # standard deviation of the first tables
    rotary: bool = True  # else learned positions
    qk_norm: bool = True
    squared: bool = True  # squared ReLU, else GELU
    quiet: bool = True  # whether what a block adds begins as zero
    muon: bool = True  # for the matrices, else Adam
    polar: bool = True  # three steps with polynomials of their own, else Muon's five
    square: bool = True  # whether these steps stay with square matrices
    steps: int = 130
    batch: int = 16
    rate: float = 0.055  # of the matrices
    table_rate: float = 0.025  # of the rest, by Adam
    warmup: int = 10
    linear: bool = True  # the rates end at zero on a line, else on nanoGPT's cosine to a tenth


PLAIN = Settings(blocks=2, heads=4, earlier=0, grams=0, steps=270)  # attention alone reads what came before
CHANGES: dict[str, dict[str, Any]] = {  # each takes one change away from `Settings()`
    "two blocks, half the rows": {"blocks": 2, "rows": 797},
    "an MLP four times as wide": {"hidden": 512, "rows": 1401},
    "four heads": {"heads": 4},
    "no earlier characters": {"earlier": 0},
    "no tables of several characters": {"grams": 0},
    "a table of pairs alone": {"grams": 1},
    "small first tables": {"first": SMALL},
    "learned positions": {"rotary": False},
    "no QK-norm": {"qk_norm": False},
    "GELU": {"squared": False},
    "GPT-2's first outputs": {"quiet": False},
    **{f"Adam for all, {rate}": {"muon": False, "rate": rate} for rate in (0.004, 0.006, 0.009, 0.0135)},
    "Muon's five steps": {"polar": False},
    "long products": {"square": False},
    "a cosine to a tenth": {"linear": False},
    "batches of 12": {"batch": 12},
}


class FastDecoder(nn.Module):
    """A decoder whose matrices of one shape lie in one tensor, with steps as cheap as plain PyTorch has.

    Norms are layer norms without gain and bias, which PyTorch computes in one pass, unlike RMSNorm.

    Args:
        vocab: the number of different tokens.
        settings: its sizes and parts.
        window: the longest sequence that it reads.
    """

    def __init__(self, vocab: int, settings: Settings, window: int = WINDOW):
        super().__init__()
        self.settings = s = settings
        self.vocab = vocab
        ends = 0.0 if s.quiet else SMALL / (2 * s.blocks) ** 0.5
        self.squares = nn.Parameter(SMALL * torch.randn(s.blocks, 4, s.width, s.width))  # W_q, W_k, W_v, W_o
        self.wides = nn.Parameter(SMALL * torch.randn(s.blocks, 2, s.hidden, s.width))  # W_in, W_out^T
        with torch.no_grad():
            self.squares[:, 3] *= ends / SMALL
            self.wides[:, 1] *= ends / SMALL
        self.tables = nn.ParameterList(
            s.first * torch.randn(rows, s.width) for rows in [vocab] * (1 + s.earlier) + [s.rows] * s.grams
        )
        self.places = None if s.rotary else nn.Parameter(SMALL * torch.randn(window, s.width))
        self.readout = nn.Parameter(torch.zeros(vocab, s.width))
        d_head = s.width // s.heads
        angles = torch.arange(window)[:, None] * 100.0 ** -(torch.arange(0, d_head, 2) / d_head)
        self.turns: Tensor
        self.register_buffer("turns", torch.stack([angles.cos(), angles.sin()]), persistent=False)

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """Logits for the token after each."""
        n = tokens.shape[1]
        x = self.norm(self.embed(tokens) + (0 if self.places is None else self.places[:n]))
        for squares, wides in zip(self.squares.unbind(), self.wides.unbind(), strict=True):
            x = x + self.attention(self.norm(x), *squares.unbind())
            x = x + self.mlp(self.norm(x), *wides.unbind())
        return self.norm(x) @ self.readout.T

    def embed(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """Sums vectors of each character, of those before it, and of the last 2, 3, ... as one."""
        (_, n), earlier, rows = tokens.shape, self.settings.earlier, self.settings.rows
        x, code = F.embedding(tokens, self.tables[0]), tokens
        for back in range(1, 1 + earlier):
            before = F.embedding(tokens, self.tables[back])
            x = x + F.pad(before, (0, 0, back, 0))[:, :n]
        for back in range(1, 1 + self.settings.grams):
            code = code * self.vocab + F.pad(tokens, (back, 0))[:, :n]
            x = x + F.embedding(code % rows, self.tables[earlier + back])
        return x

    @staticmethod
    def norm(x: Float[Tensor, "*axes D"]) -> Float[Tensor, "*axes D"]:
        """A layer norm without gain and bias."""
        return F.layer_norm(x, x.shape[-1:])

    def turn(self, x: Float[Tensor, "B H N Dh"]) -> Float[Tensor, "B H N Dh"]:
        """Rotary positions of base 100; feature i is paired with i + Dh/2."""
        cos, sin = self.turns[:, : x.shape[-2]]
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

    def attention(self, x: Float[Tensor, "B N D"], *matrices: Tensor) -> Float[Tensor, "B N D"]:
        """Causal self-attention."""
        W_q, W_k, W_v, W_o = matrices
        made = (x @ W_q.T, x @ W_k.T, self.values(x, W_v))
        q, k, v = (each.unflatten(-1, (self.settings.heads, -1)).transpose(1, 2) for each in made)
        if self.settings.qk_norm:
            q, k = self.norm(q), self.norm(k)
        if self.settings.rotary:
            q, k = self.turn(q), self.turn(k)
        read = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return read.transpose(1, 2).flatten(2) @ W_o.T

    def values(self, x: Float[Tensor, "B N D"], W_v: Tensor) -> Float[Tensor, "B N D"]:
        """The values, W_v x."""
        return x @ W_v.T

    def mlp(self, x: Float[Tensor, "B N D"], inward: Tensor, outward: Tensor) -> Float[Tensor, "B N D"]:
        """Two maps and the activation between them; a product costs less than a square with its gradient."""
        h = x @ inward.T
        return (F.relu(h) * h if self.settings.squared else F.gelu(h)) @ outward


JORDAN = (QUINTIC,) * 5
POLAR_EXPRESS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
)


def orthogonalise_all(
    gradients: Float[Tensor, "*many rows D"],
    polynomials: Sequence[tuple[float, float, float]] = JORDAN,
    square: bool = True,
) -> Float[Tensor, "*many rows D"]:
    """`tformer_lib.training.muon.orthogonalise` for many matrices at once, rows >= D.

    With G = X^T X the iteration X <- X P, P = a I + b G + c G^2, takes G to P G P, so that the rows of X are
    needed only at the end: X P_1 P_2 ... . All products but two are then of matrices D x D.

    Args:
        gradients: the matrices.
        polynomials: a, b and c of each step: Muon's five, or the first three of Amsel et al. (2025), who
            choose each for what the one before leaves. Cut off there they take what begins between
            0.002 and 1 to between 0.18 and 1.9.
        square: whether to save those products; the result is the same up to rounding.
    """
    x = gradients.flatten(0, -3)
    x = x / (1.01 * x.norm(dim=(1, 2), keepdim=True).clamp_min(TINY))
    gram, product = x.mT @ x, None
    for step, (a, b, c) in enumerate(polynomials, 1):
        p = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        p.diagonal(dim1=1, dim2=2).add_(a)
        if not square:
            x = x @ p
            gram = x.mT @ x
            continue
        product = p if product is None else product @ p
        if step < len(polynomials):
            gram = p @ gram @ p
    return (x if product is None else x @ product).view_as(gradients)


class StackedMuon:
    """Muon for tensors that hold many matrices: W <- W - rate sqrt(rows / columns) U V^T.

    Args:
        stacks: the tensors.
        polynomials, square: see `orthogonalise_all`.
    """

    def __init__(
        self,
        stacks: list[nn.Parameter],
        polynomials: Sequence[tuple[float, float, float]] = JORDAN,
        square: bool = True,
    ):
        self.stacks, self.polynomials, self.square = stacks, polynomials, square
        self.averages = [torch.zeros_like(stack) for stack in stacks]

    @torch.no_grad()
    def step(self, rate: float, momentum: float) -> None:
        """One step with the gradients that are there."""
        for stack, average in zip(self.stacks, self.averages, strict=True):
            assert stack.grad is not None
            average.lerp_(stack.grad, 1 - momentum)
            ahead = stack.grad.lerp(average, momentum)
            length = rate * (stack.shape[-2] / stack.shape[-1]) ** 0.5
            stack.sub_(orthogonalise_all(ahead, self.polynomials, self.square), alpha=length)


def windows(text: Int[Tensor, "*T"], settings: Settings, seed: int) -> Iterable[Int[Tensor, "B M"]]:
    """The entry's batches: in each step as many windows of 64 characters, and the character after each."""
    return RandomWindows(text, batch=settings.batch, length=WINDOW, steps=settings.steps, seed=seed)


def fast(
    text: Tensor,
    vocab: int,
    seed: int,
    settings: Settings | None = None,
    build: Callable[[int, Settings], FastDecoder] = FastDecoder,
    batches: Callable[[Tensor, Settings, int], Iterable[Tensor]] = windows,
) -> FastDecoder:
    """Our entry in the table "gradients": one block, tables of characters, Muon.

    Args:
        text: the characters to train on, as numbers.
        vocab: how many different ones there are.
        seed: of the first weights and of the batches.
        settings: other ones than the entry's.
        build: makes the model.
        batches: cuts the text into `settings.steps` batches (B, N + 1), with N <= 64.
    """
    s = settings or Settings()
    seed_everything(seed)
    model = build(vocab, s)
    matrices = [model.squares, model.wides]
    others = [p for p in model.parameters() if all(p is not each for each in matrices)]
    values = POLAR_EXPRESS if s.polar else JORDAN
    muon = StackedMuon(matrices, values, s.square) if s.muon else None
    groups = [{"params": others, "peak": s.table_rate}]
    groups += [] if s.muon else [{"params": matrices, "peak": s.rate}]
    adam = torch.optim.Adam(groups, fused=True, betas=(0.8, 0.98), eps=1e-10)
    for step, batch in enumerate(batches(text, s, seed)):
        logits, nexts = model(batch[:, :-1]), batch[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), nexts.flatten())
        loss.backward()
        share = schedule(step, s)
        if muon is not None:
            muon.step(s.rate * share, momentum=min(0.85, 0.7 + step / (2 * s.steps)))
        for group in adam.param_groups:
            group["lr"] = group["peak"] * share
        adam.step()
        model.zero_grad()
    return model.eval()


def schedule(step: int, settings: Settings) -> float:
    """The share of the peak rate: a warm-up, and the way down."""
    rest = 1 - step / settings.steps
    down = rest if settings.linear else 0.1 + 0.45 * (1 + math.cos(math.pi * (1 - rest)))
    return down * min(1.0, (step + 1) / settings.warmup)


class Counts(nn.Module):
    """Frequencies of characters after the contexts that are frequent, in a tree.

    A node is a context; its children are the contexts one character longer, to the left. The deepest node
    that a place's past leads to says what comes.

    It has room for as many nodes as the rules allow, and begins without any.

    Args:
        vocab: the number of different tokens.
        depth: the longest context.
    """

    def __init__(self, vocab: int, depth: int = 8):
        super().__init__()
        self.vocab, self.depth = vocab, depth
        nodes = LIMIT // (vocab + 2)  # a key has 64 bits, as many as two other numbers
        self.keys: Tensor  # of each node but the root, in order: its parent's number * vocab + the character
        self.logits: Tensor  # logarithms of the frequencies
        self.register_buffer("keys", torch.full((nodes - 1,), torch.iinfo(torch.int64).max))
        self.register_buffer("logits", torch.zeros(nodes, vocab))

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """Logits for the token after each."""
        node, open_ = torch.zeros_like(tokens), torch.ones_like(tokens, dtype=torch.bool)
        for back in range(min(self.depth, tokens.shape[1])):
            open_[:, :back] = False  # the window has no more characters
            key = node * self.vocab + F.pad(tokens, (back, 0))[:, : tokens.shape[1]]
            place = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
            open_ &= self.keys[place] == key
            node = torch.where(open_, place + 1, node)
        return self.logits[node]


def counts(text: Tensor, vocab: int, least: int = 320, depth: int = 8) -> Counts:
    """Our entry in the table "anything": it reads the text and counts.

    A context has a node if it occurs `least` times. Its frequencies are mixed with those of the context
    one character shorter, which weigh as much as the different characters that were seen after it (Witten
    and Bell's rule).

    Args:
        text: the characters to train on, as numbers.
        vocab: how many different ones there are.
        least: how often a context occurs that has a node.
        depth: how many characters the longest one has.
    """
    following = torch.bincount(text, minlength=vocab).float()[None]
    frequencies = (following + 1) / (following + 1).sum()
    keys: list[Tensor] = []
    at = torch.arange(depth, len(text))  # the places whose contexts are still followed
    node, begin = torch.zeros_like(at), 0
    for back in range(1, depth + 1):
        known = 1 + sum(len(each) for each in keys)
        key = (node - begin) * vocab + text[at - back]
        often = torch.bincount(key, minlength=(known - begin) * vocab) >= least
        number = often.cumsum(0) - 1
        stays = often[key]
        at, key = at[stays], key[stays]
        if not len(at):
            break
        new = often.nonzero().flatten()
        child = number[key]
        following = (
            torch.bincount(child * vocab + text[at], minlength=len(new) * vocab).view(-1, vocab).float()
        )
        kinds = (following > 0).sum(1, keepdim=True)
        shorter = frequencies[begin + new // vocab]
        mixed = (following + kinds * shorter) / (following.sum(1, keepdim=True) + kinds)
        frequencies = torch.cat([frequencies, mixed])
        keys.append(new + begin * vocab)
        node, begin = child + known, known
    model = Counts(vocab, depth)
    model.keys[: len(frequencies) - 1] = torch.cat(keys)
    model.logits[: len(frequencies)] = frequencies.log()
    return model


class Fast:
    """`fast` as an entry, with these for its last arguments."""

    def __init__(
        self,
        settings: Settings = Settings(),
        model: Callable[[int, Settings], FastDecoder] = FastDecoder,
        batches: Callable[[Tensor, Settings, int], Iterable[Tensor]] = windows,
    ):
        self.settings, self.model, self.batches = settings, model, batches

    def build(self, vocab: int) -> nn.Module:
        """The model that loads what was trained."""
        return self.model(vocab, self.settings)

    def train(self, text: Tensor, vocab: int, seed: int) -> dict[str, Tensor]:
        """What was trained."""
        return fast(text, vocab, seed, self.settings, self.model, self.batches).state_dict()


class Counting(NamedTuple):
    """`counts` as an entry."""

    least: int = 320
    depth: int = 8

    def build(self, vocab: int) -> nn.Module:
        """A tree without nodes."""
        return Counts(vocab, self.depth)

    def train(self, text: Tensor, vocab: int, seed: int) -> dict[str, Tensor]:
        """The tree; nothing in it is left to chance."""
        return counts(text, vocab, self.least, self.depth).state_dict()


ENTRIES = {"fast": Fast(), "plain": Fast(PLAIN), "counts": Counting()}
SHARES = {name: Fast(replace(Settings(), **fields)) for name, fields in CHANGES.items()}
