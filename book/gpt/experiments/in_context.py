"""A transformer learns linear regression in context: error against the number of examples it has read.

Trained on rows of 20 examples of regressions in five dimensions, tested on rows of 60: with noise and
without, three seeds each, beside ridge regression, least squares, averaging, and the prediction 0; with two
other ways of telling positions, one seed each; and on inputs, weights and noise other than in training.

`python in_context.py` runs what has not been run yet and records it; with names, such as
`"noise 0.5" "rotary, noise 0.5"`, it runs only those, and records once all runs are there. What has been
trained is kept in `_build/in_context/`, and training that was stopped goes on. About twenty minutes
of one core.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from tformer_book.gpt.data.regressions import (
    RandomRegressions,
    Regressions,
    averaging,
    error_by_examples,
    least_squares,
    random_regressions,
    ridge,
)
from tformer_book.gpt.models.in_context import InContextRegressor, in_context_loss, in_context_regressor
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, means
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import ALiBi, Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.training import count_parameters, fit, seed_everything

D, EXAMPLES, LONGEST, ROWS = 5, 20, 60, 4000
CONFIG = TransformerConfig(d_model=64, n_heads=4, n_blocks=4)
BATCH, STEPS, LR = 64, 2000, 6e-3
NOISE = {"noise 0.5": 0.5, "noise 0": 0.0}
RELATIVE = {"noise 0.5": [0, 1, 2], "noise 0": [0, 1, 2]}
OTHERS = {f"{way}, noise 0.5": [0] for way in ("rotary", "alibi")}
SHIFTS: dict[str, dict] = {
    "as trained": {},
    "inputs x 1/2": {"x_scale": 0.5},
    "inputs x 2": {"x_scale": 2.0},
    "inputs stretched": {"x_scale": torch.tensor([2.0, 1.5, 1.0, 0.5, 0.25])},
    "weights x 2": {"w_scale": 2.0},
    "weights x 3": {"w_scale": 3.0},
    "no noise": {"noise": 0.0},
    "noise 1": {"noise": 1.0},
}
RUNS = Runs("in_context")


def build(way: str) -> InContextRegressor:
    """The regressor with positions told in one of three ways."""
    if way == "rotary":
        return InContextRegressor(CONFIG, D, rotary=Rotary(CONFIG.d_model // CONFIG.n_heads))
    if way == "alibi":
        return InContextRegressor(
            CONFIG, D, make_backend=lambda: FusedAttend(score_bias=ALiBi(CONFIG.n_heads))
        )
    return in_context_regressor(CONFIG, D)


def unseen_rows(examples: int, **changes) -> Regressions:
    """The same rows for every model."""
    generator = torch.Generator().manual_seed(12345)
    return random_regressions(ROWS, examples, D, generator=generator, **changes)


@torch.no_grad()
def predict(model: InContextRegressor, rows: Regressions) -> Tensor:
    """The model's predictions, a few hundred rows at a time."""
    pairs = zip(rows.x.split(250), rows.y.split(250), strict=True)
    return torch.cat([model(x, y) for x, y in pairs])


def significant(values: Tensor) -> list[float]:
    """Four significant digits."""
    return [float(f"{v:.4g}") for v in values.tolist()]


def shares(rows: Regressions, predictions: dict[str, Tensor]) -> dict[str, list[float]]:
    """Each predictor's squared error as a share of the mean square of the truth, so that 0 has 1."""
    size = rows.truth.square().mean()
    return {
        name: significant((p - rows.truth).square().mean(dim=0) / size) for name, p in predictions.items()
    }


def run(name: str, seed: int) -> dict:
    """Trains one model, or takes it from its checkpoint, and measures it."""
    way, setting = name.split(", ") if ", " in name else ("relative", name)
    noise = NOISE[setting]
    seed_everything(seed)
    model = build(way)
    batches = RandomRegressions(d=D, examples=EXAMPLES, batch=BATCH, steps=STEPS, noise=noise, seed=seed)
    history = fit(
        model,
        in_context_loss,
        batches,
        lr=LR,
        optimizer="muon",
        checkpoint=RUNS.checkpoint(name, seed),
        checkpoint_every=200,
    )
    rows = unseen_rows(LONGEST, noise=noise)
    ours = predict(model, rows)
    result = {
        "error": significant(error_by_examples(ours, rows.truth, D)),
        "from least squares": significant(error_by_examples(ours, least_squares(rows.x, rows.y), D)),
        "parameters": count_parameters(model),
        "loss": significant(torch.tensor(means(history.loss, 100))),
        "seconds": round(history.seconds, 1),
    }
    if noise:
        result["from ridge"] = significant(error_by_examples(ours, ridge(rows.x, rows.y, noise**2), D))
    if name == "noise 0.5":
        result["shifts"] = {}
        for shift, changes in SHIFTS.items():
            rows = unseen_rows(EXAMPLES, **{"noise": noise, **changes})
            result["shifts"][shift] = shares(rows, {"transformer": predict(model, rows)})["transformer"]
    return result


def baselines(noise: float) -> dict[str, list[float]]:
    """The errors of what needs no training."""
    rows = unseen_rows(LONGEST, noise=noise)
    predictors: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "least squares": least_squares,
        "averaging": averaging,
        "predict 0": lambda x, y: torch.zeros_like(y),
    }
    if noise:
        predictors["ridge"] = lambda x, y: ridge(x, y, noise**2)
    return {
        name: significant(error_by_examples(predictor(rows.x, rows.y), rows.truth, D))
        for name, predictor in predictors.items()
    }


def shifted_baselines() -> dict[str, dict[str, list[float]]]:
    """On shifted rows: ridge as in training, ridge with the penalty right for the shift, least squares."""
    results = {}
    for shift, changes in SHIFTS.items():
        rows = unseen_rows(EXAMPLES, **{"noise": 0.5, **changes})
        right = (changes.get("noise", 0.5) / changes.get("w_scale", 1.0)) ** 2
        least = least_squares(rows.x, rows.y)
        predictions = {
            "ridge": ridge(rows.x, rows.y, 0.25),
            "right ridge": ridge(rows.x, rows.y, right) if right else least,
            "least squares": least,
        }
        results[shift] = shares(rows, predictions)
    return results


def main() -> None:
    """Runs what is missing; records when nothing is."""
    wanted = RELATIVE | OTHERS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(wanted)}; all if none is given")
    parser.add_argument("--seeds", nargs="*", type=int, help="of the runs; all if none is given")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.names or wanted:
        for seed in wanted[name] if arguments.seeds is None else arguments.seeds:
            RUNS.keep(name, seed, make=partial(run, name, seed))
    if all(RUNS.done(name, seed) for name, seeds in wanted.items() for seed in seeds):
        runs = {name: [RUNS.get(name, seed) for seed in seeds] for name, seeds in wanted.items()}
        for found in (each for some in runs.values() for each in some):
            del found["seconds"]
        seconds = sum(RUNS.seconds.values())
        results = {
            "d": D,
            "trained_to": EXAMPLES,
            "batch": BATCH,
            "steps": STEPS,
            "runs": runs,
            "baselines": {name: baselines(noise) for name, noise in NOISE.items()},
            "shifted_baselines": shifted_baselines(),
        }
        record("in_context", results, seeds=[0, 1, 2], cpu_seconds=seconds)


if __name__ == "__main__":
    main()
