"""What the recipes of Chapter 14 do on a GPU: kernels of attention, memory as predicted, time to a loss.

Three parts, on one GPU:

- `kernels`: tokens a second and model FLOPs utilisation of a training step of nanoGPT's character-level model
  and of a larger one, in bfloat16, with each backend of `scaled_dot_product_attention` and with `Attend`;
- `memory`: the peak that CUDA's allocator reports beside what `tformer_book.scale.costs` predicts, with
  recomputation and without;
- `race`: seconds of training until nanoGPT's recipe and ours reach the same loss on held-out text,
  evaluations not counted, three seeds each.

`python gpu.py --text input.txt` reads that file (nanoGPT's is tiny Shakespeare), the last tenth
held out as there; without `--text` it reads the plays of Chapter 8. About an hour. A record is written only
where there is CUDA. `--tiny` runs everything with small sizes on whatever there is, to see that it runs.
"""

import argparse
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD, Runs, rounded
from tformer_book.scale.costs import GPTShape, activation_bytes, state_bytes, step_flops
from tformer_lib import TransformerConfig
from tformer_lib.core.attention import Attend, Backend
from tformer_lib.core.positions import LearnedPositions, Rotary
from tformer_lib.data.windows import RandomWindows
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import gpt2_initialisation, quiet_initialisation
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import make_optimizers, seed_everything, warmup_cosine

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
SIZES = {  # width, heads, blocks, rows, tokens in a row
    "nanoGPT, characters": (384, 6, 6, 64, 256),
    "GPT-2 small": (768, 12, 12, 16, 1024),
}
TINY = {"tiny": (32, 2, 2, 2, 16)}
SEEDS = (0, 1, 2)
RATES = {"A100": 312e12, "H100": 989e12, "H200": 989e12}  # dense operations a second in bfloat16


class CausalAttend(Backend):
    """`scaled_dot_product_attention` with its own causal mask, so that each backend can be asked."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.p = dropout

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """The mask is the causal one, in a GPT that reads whole rows."""
        p = self.p if self.training else 0.0
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)


def shape_of(size: tuple[int, ...], vocab: int, **options: Any) -> GPTShape:
    """The GPT of a row of `SIZES`, without biases, with learned positions."""
    width, heads, blocks, _, length = size
    config = TransformerConfig(d_model=width, n_heads=heads, n_blocks=blocks, **{"bias": False, **options})
    return GPTShape(config=config, vocab_size=vocab, places=length)


def build(shape: GPTShape, kernel: type[Backend], device: torch.device, again: bool = False) -> GPT:
    """The model on the device."""
    c = shape.config
    model = GPT(
        c,
        shape.vocab_size,
        positions=LearnedPositions(shape.places, c.d_model),
        make_backend=partial(kernel, c.dropout),
    ).to(device)
    if again:
        for block in model.transformer.blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)  # type: ignore[method-assign]
    return model


def wait(device: torch.device) -> None:
    """Until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rate(device: torch.device) -> float | None:
    """Operations a second of this GPU in bfloat16, where it is known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((r for known, r in RATES.items() if known in name), None)


def step_of(model: GPT, tokens: Tensor, optimizers: list[torch.optim.Optimizer], half: bool) -> None:
    """One training step."""
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=half):
        loss = language_loss(model, tokens)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def kernel_speed(
    size: tuple[int, ...], name: str, device: torch.device, steps: int, half: bool
) -> dict[str, Any] | None:
    """Tokens a second and utilisation with one kernel; None where the device has not got it."""
    shape = shape_of(size, 80)
    rows, length = size[3:]
    tokens = torch.randint(80, (rows, length + 1), device=device)
    seed_everything(0)
    model = build(shape, Attend if name == "plain" else CausalAttend, device)
    optimizers = make_optimizers(model, lr=1e-4, weight_decay=0.1)
    backends = list(SDPBackend.__members__.values()) if name == "plain" else [BACKENDS[name]]
    try:
        with sdpa_kernel([b for b in backends if b != SDPBackend.ERROR]):
            for _ in range(3):
                step_of(model, tokens, optimizers, half)
            wait(device)
            start = time.perf_counter()
            for _ in range(steps):
                step_of(model, tokens, optimizers, half)
            wait(device)
    except RuntimeError as error:
        if "kernel" not in str(error).lower() and "backend" not in str(error).lower():
            raise
        return None
    seconds = (time.perf_counter() - start) / steps
    most = rate(device)
    share = step_flops(shape, rows, length) / seconds / most if most else None
    return {"tokens_per_second": round(rows * length / seconds), "utilisation": share}


def memory(size: tuple[int, ...], again: bool, device: torch.device) -> dict[str, float]:
    """Predicted and allocated bytes of a float32 step with a kernel that masks by itself."""
    shape = shape_of(size, 80)
    rows, length = size[3:]
    tokens = torch.randint(80, (rows, length + 1), device=device)
    predicted = sum(state_bytes(shape).values()) + activation_bytes(
        shape, rows, length, "flash", recompute=again
    )
    found = {"predicted": float(predicted)}
    if device.type == "cuda":
        model = build(shape, CausalAttend, device, again)
        optimizers = make_optimizers(model, lr=1e-4, weight_decay=0.1)
        step_of(model, tokens, optimizers, half=False)
        torch.cuda.reset_peak_memory_stats(device)
        step_of(model, tokens, optimizers, half=False)
        found["allocated"] = float(torch.cuda.max_memory_allocated(device))
    return found


RECIPES: dict[str, dict[str, Any]] = {  # nanoGPT's published settings, and ours in the same size
    "nanoGPT": {
        "model": {"dropout": 0.2},
        "optimizer": "adamw",
        "lr": 1e-3,
        "warmup": 100,
        "min_lr_ratio": 0.1,
        "steps": 5000,
    },
    "ours": {
        "model": {"norm": "rms", "qk_norm": True, "activation": "swiglu", "dropout": 0.2},
        "optimizer": "muon",
        "lr": 1e-2,
        "warmup": 50,
        "min_lr_ratio": 0.05,
        "steps": 2000,
    },
}


def recipe_model(name: str, size: tuple[int, ...], vocab: int, device: torch.device) -> GPT:
    """The model of a recipe with its first weights."""
    options = dict(RECIPES[name]["model"])
    width, heads, blocks, _, length = size
    if options.get("activation") == "swiglu":
        options["d_hidden"] = -(-8 * width // 24) * 8
    config = TransformerConfig(d_model=width, n_heads=heads, n_blocks=blocks, bias=False, **options)
    places = {} if name == "ours" else {"positions": LearnedPositions(length, width)}
    turned = {"rotary": Rotary(width // heads, 100.0)} if name == "ours" else {}
    model = GPT(config, vocab, make_backend=partial(CausalAttend, config.dropout), **places, **turned)
    (quiet_initialisation if name == "ours" else gpt2_initialisation)(model)
    return model.to(device)


@torch.no_grad()
def held_out_loss(model: GPT, ids: Tensor, length: int, device: torch.device, half: bool) -> float:
    """The mean over windows of the held-out text, side by side."""
    model.eval()
    count = (len(ids) - 1) // length
    windows = torch.stack([ids[i * length : (i + 1) * length + 1] for i in range(count)])
    total = 0.0
    for part in windows.split(64):
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            total += float(language_loss(model, part.to(device))) * len(part)
    model.train()
    return total / count


def race(
    name: str,
    seed: int,
    ids: tuple[Tensor, Tensor],
    vocab: int,
    size: tuple[int, ...],
    device: torch.device,
    half: bool,
    steps: int | None = None,
    every: int = 250,
) -> dict[str, Any]:
    """Losses on the held-out text and seconds of training before each, evaluations not counted."""
    recipe = RECIPES[name]
    steps = recipe["steps"] if steps is None else steps
    seed_everything(seed)
    model = recipe_model(name, size, vocab, device)
    optimizers = make_optimizers(
        model, recipe["optimizer"], lr=recipe["lr"], weight_decay=0.1, betas=(0.9, 0.99)
    )
    first = [[group["lr"] for group in o.param_groups] for o in optimizers]
    rows, length = size[3:]
    windows: Iterator[Tensor] = iter(RandomWindows(ids[0], batch=rows, length=length, steps=steps, seed=seed))
    curve, seconds = [], 0.0
    for step in range(steps):
        wait(device)
        start = time.perf_counter()
        share = warmup_cosine(step, steps, recipe["warmup"], recipe["min_lr_ratio"])
        for optimizer, rates in zip(optimizers, first, strict=True):
            for group, lr in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = lr * share
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            loss = language_loss(model, next(windows).to(device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        wait(device)
        seconds += time.perf_counter() - start
        if (step + 1) % every == 0 or step + 1 == steps:
            loss_now = held_out_loss(model, ids[1], length, device, half)
            curve.append([step + 1, round(seconds, 3), round(loss_now, 4)])
    return {"curve": curve, "best": min(point[2] for point in curve), "seconds": seconds}


def time_to(curve: list[list[float]], loss: float) -> float | None:
    """The seconds after which a run's loss on held-out text was first as low as this; None if never."""
    return next((seconds for _, seconds, found in curve if found <= loss), None)


def texts(path: Path | None) -> tuple[tuple[Tensor, Tensor], int]:
    """Numbers of the letters to train on and of those held out, and how many letters there are."""
    if path is None:
        train, held = shakespeare("train"), shakespeare("validation")
    else:
        text = path.read_text("utf8")
        cut = int(0.9 * len(text))
        train, held = text[:cut], text[cut:]
    tokenizer = CharTokenizer("".join(sorted(set(train + held))))
    ids = tuple(torch.tensor(tokenizer.encode(part)) for part in (train, held))
    return (ids[0], ids[1]), tokenizer.vocab_size


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Everything, each run kept; a record where there is CUDA."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--text", type=Path, help="a text to race on; the plays of Chapter 8 without it")
    parser.add_argument("--tiny", action="store_true", help="small sizes, a few steps, no record")
    parser.add_argument("--folder", type=Path, default=BUILD / "gpu", help="where finished runs are kept")
    given = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type != "cuda" and not given.tiny:
        raise SystemExit("there is no CUDA here: --tiny shows that the script runs")
    half = device.type == "cuda"  # on most processors bfloat16 is emulated, and slow
    sizes, steps = (TINY, 2) if given.tiny else (SIZES, 50)
    ids, vocab = texts(given.text)
    if given.tiny:
        ids = (ids[0][:2000], ids[1][:500])
    runs = Runs(given.folder)
    results: dict[str, Any] = {"kernels": {}, "memory": {}, "race": {}}
    for label, size in sizes.items():
        for kernel in ("plain", *BACKENDS):
            results["kernels"][f"{label}, {kernel}"] = runs.keep(
                "kernel", label, kernel,
                make=partial(kernel_speed, size, kernel, device, steps, half), again=given.tiny,
            )  # fmt: skip
        for again in (False, True):
            results["memory"][f"{label}, {'again' if again else 'kept'}"] = runs.keep(
                "memory", label, int(again), make=partial(memory, size, again, device), again=given.tiny
            )
    size = next(iter(sizes.values()))
    last, every = (4, 2) if given.tiny else (None, 250)
    for name in RECIPES:
        results["race"][name] = [
            runs.keep(
                *("race", name, seed, str(given.text)),
                make=partial(race, name, seed, ids, vocab, size, device, half, last, every),
                again=given.tiny,
            )
            for seed in SEEDS
        ]
    mark = max(run["best"] for run in results["race"]["nanoGPT"])  # what all of its seeds reach
    results["mark"] = mark
    results["time_to_mark"] = {
        name: [time_to(run["curve"], mark) for run in found] for name, found in results["race"].items()
    }
    results["device"] = torch.cuda.get_device_name(device) if half else "processor"
    if half and not given.tiny:
        record("gpu", rounded(results), seeds=list(SEEDS))
    return results


if __name__ == "__main__":
    print(main())
