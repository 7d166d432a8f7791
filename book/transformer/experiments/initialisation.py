"""Masked characters of Shakespeare: what the first weights of the linear maps decide, three seeds each.

A two-block encoder fills in 15% of the characters of a window of 32. Its linear maps start from
N(0, 0.02^2), or by Xavier's rule; everything else is the same, and the embeddings start from N(0, 0.02^2)
in both. "1000 steps" has both norm placements; "4000 steps" asks whether the plateau ends; "unit tokens" is
a control in which embeddings and positions start larger, their sum at size 1, as a norm leaves a token. Each
entry holds, for each seed, the mean training loss of every 50 steps (no window is seen twice but by chance)
and the loss on held-out plays at the end. Chapter 6 draws the record; its live run is shorter, on
windows of 16.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record
from tformer_book.kit.runs import means, rounded
from tformer_lib import Transformer, TransformerConfig
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.training import fit, seed_everything

SEEDS, LENGTH, WIDTH, BATCH, EVERY = [0, 1, 2], 32, 64, 32, 50
SMALL, UNIT = 0.02, 0.5**0.5  # spreads of the embeddings and of the positions, which are added


def encode(text: str, alphabet: str) -> Tensor:
    """A number for each character; those that are not in the alphabet are left out."""
    index = {c: i for i, c in enumerate(alphabet)}
    return torch.tensor([index[c] for c in text if c in index])


def masked_model(n_characters: int, placement: str, linear: str, spread: float = SMALL) -> nn.Sequential:
    """Embedding, positions, an encoder of two blocks and a head; `linear` is "small" or "xavier"."""
    config = TransformerConfig(d_model=WIDTH, n_heads=4, n_blocks=2, norm_placement=placement)
    model = nn.Sequential(
        nn.Embedding(n_characters + 1, WIDTH),  # the last is the mask
        LearnedPositions(LENGTH, WIDTH),
        Transformer(config),
        nn.Linear(WIDTH, n_characters),
    )
    nn.init.normal_(model[0].weight, std=spread)
    with torch.no_grad():
        model[1].table.mul_(spread / SMALL)
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
            if linear == "small":
                nn.init.normal_(layer.weight, std=0.02)
            else:
                nn.init.xavier_uniform_(layer.weight)
    return model


def masked_loss(model: nn.Module, windows: Tensor) -> Tensor:
    """Cross-entropy of the characters that were hidden, in nats."""
    target = windows[:, :-1]
    hidden = torch.rand(target.shape) < 0.15
    logits = model(target.masked_fill(hidden, model[0].num_embeddings - 1))
    return F.cross_entropy(logits[hidden], target[hidden])


def run(
    train: Tensor, held: Tensor, n: int, placement: str, linear: str, seed: int, steps: int, spread: float
) -> tuple[list[float], float]:
    """Training loss, averaged over every 50 steps, and the loss on held-out text at the end."""
    seed_everything(seed)
    model = masked_model(n, placement, linear, spread)
    windows = RandomWindows(train, batch=BATCH, length=LENGTH, steps=steps, seed=seed)
    history = fit(model, masked_loss, windows, lr=2e-3, warmup=50)
    torch.manual_seed(0)
    with torch.no_grad():
        end = masked_loss(model, consecutive_windows(held, LENGTH)[:1000])
    return means(history.loss, EVERY), end.item()


def data() -> tuple[Tensor, Tensor, int]:
    """Training text, held-out text, and the number of characters."""
    train, held = shakespeare("train"), shakespeare("validation")
    alphabet = "".join(sorted(set(train)))
    return encode(train, alphabet), encode(held, alphabet), len(alphabet)


def unigram() -> float:
    """Cross-entropy of held-out characters under their frequencies in the training text."""
    train, held, n = data()
    frequency = torch.bincount(train, minlength=n).float() / len(train)
    return -frequency.log()[held].mean().item()


def several(placement: str, linear: str, steps: int, spread: float = SMALL) -> dict[str, list]:
    """One entry of the record: all seeds."""
    train, held, n = data()
    runs = [run(train, held, n, placement, linear, seed, steps, spread) for seed in SEEDS]
    return {"loss": rounded([loss for loss, _ in runs]), "held_out": [end for _, end in runs]}


if __name__ == "__main__":
    kinds = [(placement, linear) for placement in ("pre", "post") for linear in ("small", "xavier")]
    results = {f"{placement}, {linear}": several(placement, linear, 1000) for placement, linear in kinds}
    long = {"post, small": several("post", "small", 4000)}
    unit = {f"{placement}, {linear}": several(placement, linear, 1000, UNIT) for placement, linear in kinds}
    results = {"every": EVERY, "unigram": unigram(), "1000 steps": results, "4000 steps": long}
    results["unit tokens"] = unit
    record("initialisation", results, seeds=SEEDS)
