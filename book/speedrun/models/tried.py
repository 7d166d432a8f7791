"""What the speedrun's entry was tried with and does without: another model, or other batches."""

from collections.abc import Iterator
from dataclasses import replace

import torch
import torch._inductor.config
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tformer_book.speedrun.models.entries import CHANGES, WINDOW, Fast, FastDecoder, Settings
from tformer_lib.data.windows import RandomWindows

LATER = 1000  # added to a seed, for the batches of the second half


class Capped(FastDecoder):
    """Logits c tanh(z / c), which stay between -c and c."""

    bound = 15.0

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """Logits for the token after each."""
        return self.bound * (super().forward(tokens) / self.bound).tanh()


class Averaged(FastDecoder):
    """The model that is used is a running mean of those that were trained: m <- m + (w - m) / 10."""

    share = 0.1

    def __init__(self, vocab: int, settings: Settings):
        super().__init__(vocab, settings)
        self.means: list[Tensor] = []

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """Logits for the token after each; in training, the weights are noted."""
        if self.training:
            weights = [p.detach() for p in self.parameters()]
            if self.means:
                torch._foreach_lerp_(self.means, weights, self.share)
            else:
                self.means = [w.clone() for w in weights]
        return super().forward(tokens)

    def train(self, mode: bool = True) -> "Averaged":
        """The end of training puts the means in place, once."""
        if not mode and self.means:
            for p, mean in zip(self.parameters(), self.means, strict=True):
                p.data.copy_(mean)
            self.means = []
        super().train(mode)
        return self


class ValueResidual(FastDecoder):
    """The second block's values are the mean of its own and the first block's."""

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """Logits for the token after each."""
        self.first: Tensor | None = None
        return super().forward(tokens)

    def values(self, x: Float[Tensor, "B N D"], W_v: Tensor) -> Float[Tensor, "B N D"]:
        """W_v x in the first block; in the others the mean of that and the first block's."""
        v = super().values(x, W_v)
        if self.first is None:
            self.first = v
            return v
        return (v + self.first) / 2


class Half(FastDecoder):
    """Products in bfloat16."""

    def forward(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N vocab"]:
        """Logits for the token after each, in float32."""
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(tokens).float()


def compiled(vocab: int, settings: Settings) -> FastDecoder:
    """The entry's model, compiled when it is first called, afresh; as it is where there is no compiler."""
    model = FastDecoder(vocab, settings)
    if has_compiler():
        torch._inductor.config.force_disable_caches = True  # what an earlier run left would be a head start:
        torch.compiler.reset()  # on disk, and in this process
        model.compile()
    return model


def has_compiler() -> bool:
    """Whether PyTorch can compile here."""
    try:
        torch.compile(lambda x: F.relu(x) + 1)(torch.ones(2))
    except Exception:  # what is missing differs: a C++ compiler, its headers, Python's
        return False
    return True


def short_windows_first(
    text: Int[Tensor, "*T"], settings: Settings, seed: int
) -> Iterator[Int[Tensor, "B M"]]:
    """In the first half of the steps windows of half the length, and twice as many of them."""
    half = settings.steps // 2
    yield from RandomWindows(text, batch=2 * settings.batch, length=WINDOW // 2, steps=half, seed=seed)
    rest = settings.steps - half
    yield from RandomWindows(text, batch=settings.batch, length=WINDOW, steps=rest, seed=seed + LATER)


def small_batches_first(
    text: Int[Tensor, "*T"], settings: Settings, seed: int
) -> Iterator[Int[Tensor, "B M"]]:
    """Batches of half the size in the first half of the steps, and as much larger ones in the second."""
    half, less = settings.steps // 2, settings.batch // 2
    yield from RandomWindows(text, batch=less, length=WINDOW, steps=half, seed=seed)
    more, rest = settings.batch + less, settings.steps - half
    yield from RandomWindows(text, batch=more, length=WINDOW, steps=rest, seed=seed + LATER)


TWO_BLOCKS = replace(Settings(), **CHANGES["two blocks, half the rows"])
TRIED = {
    "logits capped at 15": Fast(model=Capped),
    "a running mean of the weights": Fast(model=Averaged),
    "two blocks, values of the first in both": Fast(TWO_BLOCKS, ValueResidual),
    "products in bfloat16": Fast(model=Half),
    "compiled": Fast(model=compiled),
    "windows of 32 first, then of 64": Fast(batches=short_windows_first),
    "batches of 8 first, then of 24": Fast(batches=small_batches_first),
}
