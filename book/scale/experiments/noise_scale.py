"""How large a batch is worth its examples? Runs to the same loss at batch sizes 4 to 64, and the noise scale.

A GPT of two blocks (width 64) reads characters of the plays in windows of 32; an example is a window. Adam
with a constant rate after ten steps of warm-up trains it until the loss on held-out plays falls below 2.5
and then below 2.25 nats. `steps` are those to the first such evaluation, interpolated between evaluations,
which come after every 5% more steps.

The rate of each batch size is tuned on a seed of its own, among 0.001 times powers of 2: from the best
rate of the next larger batch size on, neighbours are tried until both neighbours of the best one are worse.
This is done for each of the two losses. Three other seeds then run with the rates found.

The noise scale is measured along the runs with 16 and with 64 windows a step, by the gradients of 64 batches
of 8 windows. `PREDICTION` was written before any run that is recorded.

`python noise_scale.py` runs what has not been run yet and records it; what is done is kept in
`_build/noise_scale/`. About ten minutes of one core.
"""

import math

import torch

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_book.scale.noise_scale import measure_noise
from tformer_lib import GPT, TransformerConfig
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.data.windows import RandomWindows, consecutive_windows
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import seed_everything

SEEDS, TUNING_SEED, BATCHES, LENGTH, WIDTH = [0, 1, 2], 10, [64, 32, 16, 8, 4], 32, 64
TARGETS = [2.5, 2.25]
EXPONENTS = range(8)  # of the rates, 0.001 * 2**k
MEASURED = [64, 16]
RUNS = Runs("noise_scale")
PREDICTION = (
    "If a step of B examples gets 1 / (1 + b / B) as far as one without noise, b being the noise scale, "
    "then S = S_min + E_min / B with E_min / S_min the mean of b over the steps of a run without noise. "
    "Predicted: steps and examples to a loss lie on this hyperbola, and its critical batch size "
    "E_min / S_min is the mean noise scale over the steps of the runs with 64 windows up to that loss, "
    "within a factor of 3."
)


def data() -> tuple[torch.Tensor, torch.Tensor, int]:
    """Characters for training, windows held out, and how many different characters there are."""
    text = shakespeare("train")
    tokens = CharTokenizer.from_text(text)
    known = set(text)
    held = "".join(c for c in shakespeare("validation")[:20_000] if c in known)
    windows = consecutive_windows(torch.tensor(tokens.encode(held)), LENGTH)[:128]
    return torch.tensor(tokens.encode(text)), windows, tokens.vocab_size


def run(batch: int, exponent: int, seed: int, measure: bool = False) -> dict:
    """Steps to each target (null where it is not reached in time), and the noise scale on the way."""
    train, held, vocab = data()
    seed_everything(seed)
    config = TransformerConfig(d_model=WIDTH, n_heads=4, n_blocks=2)
    model = GPT(config, vocab, positions=LearnedPositions(LENGTH, WIDTH))
    rate = 1e-3 * 2**exponent
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    cap = 400 + 8000 // batch
    probes = list(RandomWindows(train, batch=8, length=LENGTH, steps=64, seed=1000 + seed))
    found: list[float | None] = [None] * len(TARGETS)
    noise, look, last = [], 0, (0, math.inf)
    batches = RandomWindows(train, batch=batch, length=LENGTH, steps=cap + 1, seed=seed)
    for step, windows in enumerate(batches):
        if step >= look:
            with torch.no_grad():
                loss = language_loss(model, held).item()
            if not math.isfinite(loss):
                break
            if measure and (step == 0 or step >= 1.4 * noise[-1]["step"] + 4 or loss <= TARGETS[-1]):
                scale = measure_noise(model, language_loss, probes)
                noise.append({"step": step, "loss": loss, "signal": scale.signal, "noise": scale.noise})
            for i, target in enumerate(TARGETS):
                if found[i] is None and loss <= target:
                    share = (last[1] - target) / (last[1] - loss)
                    found[i] = last[0] + share * (step - last[0]) if math.isfinite(last[1]) else float(step)
            if found[-1] is not None:
                break
            last, look = (step, loss), step + max(1, math.ceil(0.05 * step))
        loss = language_loss(model, windows)
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 10)
        optimizer.step()
    return {"steps": rounded(found, 1), "noise": [rounded(one, 5) for one in noise]}


def tune(batch: int, starts: list[int]) -> tuple[list[int], dict[int, list[float | None]]]:
    """For each target the best exponent, and all that was tried."""
    tried: dict[int, list[float | None]] = {}

    def steps(exponent: int, i: int) -> float:
        if exponent not in EXPONENTS:
            return math.inf
        if exponent not in tried:
            made = RUNS.keep(batch, exponent, TUNING_SEED, make=lambda: run(batch, exponent, TUNING_SEED))
            tried[exponent] = made["steps"]
        return math.inf if tried[exponent][i] is None else tried[exponent][i]

    best = []
    for i, start in enumerate(starts):
        at = start
        while True:
            better = min((at - 1, at, at + 1), key=lambda k: steps(k, i))
            if better == at:
                break
            at = better
        best.append(at)
    return best, tried


if __name__ == "__main__":
    torch.set_num_threads(1)
    results: dict = {"targets": TARGETS, "batches": BATCHES, "prediction": PREDICTION}
    results |= {"tuned": {}, "steps": {}, "noise": {}}
    starts = [4, 4]
    for batch in BATCHES:
        starts, tried = tune(batch, starts)
        results["tuned"][str(batch)] = {
            "rates": [1e-3 * 2**k for k in starts],
            "tried": {str(1e-3 * 2**k): tried[k] for k in sorted(tried)},
        }
    for seed in SEEDS:
        for batch in BATCHES:
            exponents = [round(math.log2(rate / 1e-3)) for rate in results["tuned"][str(batch)]["rates"]]
            measure = batch in MEASURED
            made = {
                k: RUNS.keep(batch, k, seed, make=lambda: run(batch, k, seed, measure))  # noqa: B023
                for k in sorted(set(exponents))
            }
            steps = [made[k]["steps"][i] for i, k in enumerate(exponents)]
            results["steps"].setdefault(str(batch), []).append(steps)
            if measure:
                results["noise"].setdefault(str(batch), []).append(made[exponents[-1]]["noise"])
    record("noise_scale", rounded(results, 4), seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values()))
