"""Images of other sizes, read with learned positions or with rotary ones in the plane; and registers.

*Sizes*: the chapter's vision transformer learns 4,000 digits of 28 x 28 pixels, moved by up to two pixels
each way, and then reads others at other sizes. It has learned positions, which are stretched over the new
grid (`ViT.resized`), or `Rotary2D`, whose class token stands at the upper left corner or in the middle of the
grid; or, with either, no class token, and the mean of the outputs is read. All have the same steps, batches
and optimiser; the learning rate of each is the best of two on 600 digits held back, of the usual size, with
seed 0 (none is held back afterwards). Four tests with 1,000 other digits:

- "scaled": the whole digit enlarged or shrunk, bilinearly, to the new size;
- "middle": the digit as it is, in the middle of a black canvas;
- "anywhere": the digit as it is, anywhere on the canvas, in steps of a pixel, its place drawn once;
- "patches": the digit as it is, in one of the places that are whole patches apart.

A canvas has more patches. Nearly half of the digits that stand anywhere lie on the grid as none did in
training; in steps of whole patches none does. For a canvas, learned positions have a second way:
the old table in the middle and its border repeated around it ("border repeated").

*Registers*: patches of 4 pixels, four blocks, with 0 and 4 registers, trained alike (again the best of two
rates). Measured are the lengths of the patches' columns after the last block, before the last norm, and how
much the class token attends, in the last block, to patches that are black all over.

Each run is kept in `_build/vit_sizes`. About eight minutes of one core.
"""

import sys
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad

from tformer_book.kit.data.mnist import ImageBatches, mnist
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_lib import record_attention
from tformer_lib.core.attention import Attend, Backend, FusedAttend
from tformer_lib.core.patches import to_patches
from tformer_lib.core.positions import Rotary2D
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters, fit, seed_everything

RUNS = Runs("vit_sizes")
SEEDS, RATES, STEPS, BATCH, MOST, HELD_BACK = (0, 1, 2), (8e-3, 1.6e-2), 300, 64, 2, 600
PATCH, SCALED, CANVAS = 7, (21, 35, 42, 56), (28, 35, 42, 56)
MODELS = ("learned", "rotary, corner", "rotary, middle", "learned, mean", "rotary, mean")
REGISTERS, FINE, FINE_STEPS = (0, 4), 4, 300
MUON: dict[str, Any] = {"optimizer": "muon", "momentum": 0.9, "betas": (0.9, 0.95)}


def network(name: str) -> ViT:
    """The chapter's vision transformer with one of the ways to tell places."""
    config = TransformerConfig(d_model=48, n_heads=6, n_blocks=3)
    pool = "mean" if name.endswith("mean") else "class"
    rotary = None
    if name.startswith("rotary"):
        before = int(pool == "class")
        rotary = Rotary2D(8, (28 // PATCH, 28 // PATCH), before=before, centred=name.endswith("middle"))
    parts: dict[str, Any] = {"rotary": rotary, "make_backend": FusedAttend}
    return ViT(config, image_size=28, patch_size=PATCH, classes=10, pool=pool, **parts)  # type: ignore[arg-type]


def with_registers(registers: int, make_backend: type[Backend] = FusedAttend) -> ViT:
    """A vision transformer with many small patches."""
    config = TransformerConfig(d_model=48, n_heads=6, n_blocks=4)
    return ViT(
        config, image_size=28, patch_size=FINE, classes=10, registers=registers, make_backend=make_backend
    )


def trained(model: ViT, rate: float, seed: int, steps: int, images: Tensor, labels: Tensor) -> ViT:
    """The model after its training."""
    batches = ImageBatches(images, labels, batch=BATCH, steps=steps, seed=seed, most=MOST)
    fit(model, image_loss, batches, lr=rate, **MUON)
    return model


def built(name: str | int, rate: float, seed: int, held_back: int = 0) -> ViT:
    """One of `MODELS`, or a model with that many registers, built and trained."""
    images, labels = (part[held_back:] for part in mnist("train"))
    seed_everything(seed)
    if isinstance(name, int):
        return trained(with_registers(name), rate, seed, FINE_STEPS, images, labels)
    return trained(network(name), rate, seed, STEPS, images, labels)


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images that the model names rightly."""
    return (model(images).argmax(dim=1) == labels).float().mean().item()


def tried(name: str | int, rate: float) -> float:
    """The accuracy on what is held back, at the usual size."""
    model = built(name, rate, 0, HELD_BACK)
    return round(accuracy(model, *(part[:HELD_BACK] for part in mnist("train"))), 4)


def on_canvas(images: Tensor, side: int, way: str) -> Tensor:
    """The images as they are on a black canvas: in the middle, anywhere, or whole patches from the corner."""
    room, n = side - images.shape[-1], len(images)
    if way == "middle":
        places = torch.full((n, 2), room // 2)
    else:
        step = PATCH if way == "patches" else 1
        places = step * torch.randint(room // step + 1, (n, 2), generator=torch.Generator().manual_seed(0))
    canvas = torch.zeros(n, 1, side, side)
    for image, here, (row, column) in zip(images, canvas, places.tolist(), strict=True):
        here[:, row : row + image.shape[-2], column : column + image.shape[-1]] = image
    return canvas


def border_repeated(model: ViT, side: int) -> ViT:
    """The model at another size with its old table in the middle, and the border of that around it."""
    larger = model.resized(side)
    assert model.positions is not None
    assert larger.positions is not None
    first, (old, _), (new, _) = model.before, model.grid, larger.grid
    before, table = (new - old) // 2, model.positions.table.detach()
    grid = table[first:].T.reshape(1, -1, old, old)
    sides = (before, new - old - before)
    grid = pad(grid, (*sides, *sides), mode="replicate")
    larger.positions.table = nn.Parameter(torch.cat([table[:first], grid[0].flatten(1).T]))
    return larger


def judged(name: str, rate: float, seed: int) -> dict[str, Any]:
    """A model trained on all digits, at all sizes."""
    model, (images, labels) = built(name, rate, seed), mnist("test")
    found: dict[str, Any] = {"usual": accuracy(model, images, labels)}
    for side in SCALED:
        scaled = interpolate(images, size=(side, side), mode="bilinear", antialias=True)
        found[f"scaled {side}"] = accuracy(model.resized(side), scaled, labels)
    for side in CANVAS:
        for way in ("middle", "anywhere", "patches"):
            larger, canvas = model.resized(side), on_canvas(images, side, way)
            found[f"{way} {side}"] = accuracy(larger, canvas, labels)
            if name.startswith("learned"):
                found[f"{way} {side}, border repeated"] = accuracy(
                    border_repeated(model, side), canvas, labels
                )
    return rounded(found)


def lengths(registers: int, rate: float, seed: int) -> dict[str, Any]:
    """A model with so many registers: its accuracy and the lengths of its columns before the last norm."""
    model, (images, labels) = with_registers(registers, Attend), mnist("test")
    model.load_state_dict(built(registers, rate, seed).state_dict())
    caught: list[Tensor] = []
    hook = model.transformer.blocks[-1].register_forward_hook(lambda *said: caught.append(said[2]))
    with torch.no_grad(), record_attention(model) as weights:
        right = accuracy(model, images, labels)
    hook.remove()
    norms = caught[0].norm(dim=2)
    patches, black = norms[:, model.before :], to_patches(images, FINE).sum(dim=2) == 0
    looked = list(weights.values())[-1].mean(dim=1)[:, 0]
    middle = patches.median()
    return rounded(
        {
            "accuracy": right,
            "median": middle.item(),
            "largest": patches.max().item(),
            "share above twice the median": (patches > 2 * middle).float().mean().item(),
            "black": patches[black].mean().item(),
            "written": patches[~black].mean().item(),
            "share black": black.float().mean().item(),
            "class token": norms[:, 0].mean().item(),
            "registers": norms[:, 1 : model.before].mean().item() if registers else None,
            "attention to black": (looked[:, model.before :] * black).sum(dim=1).mean().item(),
            "attention to registers": looked[:, 1 : model.before].sum(dim=1).mean().item(),
            "histogram": torch.histc(patches / middle, 40, 0, 4).div(patches.numel()).tolist(),
        }
    )


def main() -> None:
    """Makes what is not there yet, and records all; named "sizes" or "registers", makes this part only."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    parts: dict[str, tuple[str | int, ...]] = {"sizes": MODELS, "registers": REGISTERS}
    asked = sys.argv[1:]
    for name in [name for part, names in parts.items() if not asked or part in asked for name in names]:
        sweep = {rate: RUNS.keep("try", name, rate, make=partial(tried, name, rate)) for rate in RATES}
        best = max(RATES, key=lambda rate: sweep[rate])
        last: Any = lengths if isinstance(name, int) else judged
        runs = [RUNS.keep("judge", name, best, seed, make=partial(last, name, best, seed)) for seed in SEEDS]
        parameters = count_parameters(with_registers(name) if isinstance(name, int) else network(name))
        found[str(name)] = {
            "parameters": parameters,
            "rate": best,
            "held back": {str(rate): right for rate, right in sweep.items()},
            "runs": runs,
        }
    if asked:
        return
    results = {
        "steps": STEPS,
        "sizes": {name: found[name] for name in MODELS},
        "registers": {str(name): found[str(name)] for name in REGISTERS},
    }
    record("vit_sizes", results, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values()))


if __name__ == "__main__":
    main()
