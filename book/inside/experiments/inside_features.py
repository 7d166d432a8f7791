"""What stands in the stream and in an MLP of the live model, and what a toy model makes of too many features.

Three parts, each with its controls and three seeds: `probes` of the stream, `superposition` in toy models,
and a sparse autoencoder (`sae`) of the third MLP. `python inside_features.py` runs what is missing
and records all; with names, such as `sae`, only those parts. About a quarter of an hour on one core.
"""

import argparse
import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from tformer_book.inside.data.letters import letter_labels, string_labels, trigrams
from tformer_book.inside.models.sparse_autoencoder import TopKAutoencoder, fit_autoencoder, matched_cosines
from tformer_book.inside.models.superposition import (
    ToyModels,
    exact_error,
    sparse_features,
    train_toys,
    weighted_error,
)
from tformer_book.inside.probes import (
    best_labels,
    control_labels,
    fit_probes,
    removal,
    without,
)
from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.live import live_model
from tformer_book.kit.models.recipes import MODERN
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_lib.analysis import ablate, patch
from tformer_lib.analysis import record as recording
from tformer_lib.models.initialisation import gpt2_initialisation

SEEDS = [0, 1, 2]
LENGTH = 128
RUNS = Runs("inside_features")
STREAMS = ["embed", *(f"transformer.blocks.{m}" for m in range(4))]
MLP = "transformer.blocks.2.mlp"
HIDDEN = f"{MLP}.W_out.input"
FEATURES, KEPT, KS, STEPS = 1024, 16, (4, 8, 16, 32, 64), 1500
DENSITIES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
IMPORTANCES = (1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05)


def scrambled(model: nn.Module, seed: int) -> nn.Module:
    """The model with the entries of every matrix in random order: as large, and saying nothing."""
    generator = torch.Generator().manual_seed(seed)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            if parameter.ndim == 2:
                flat = parameter.flatten()
                parameter.copy_(flat[torch.randperm(len(flat), generator=generator)].view_as(parameter))
    return other


def fresh(model: Any, seed: int) -> nn.Module:
    """The same architecture with GPT-2's first weights: small additions to the stream, nothing learned."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        recipe = replace(MODERN, initialise=gpt2_initialisation)
        return recipe.build(model.embed.num_embeddings).eval()


SOURCES = {"trained": lambda model, seed: model, "scrambled": scrambled, "fresh": fresh}


@torch.no_grad()
def activations(model: nn.Module, rows: Tensor, names: list[str], at: slice) -> dict[str, Tensor]:
    """The named activations at some places of each row, a token a row."""
    found: dict[str, list[Tensor]] = {name: [] for name in names}
    for part in rows.split(50):
        with recording(model, names) as seen:
            model(part)
        for name in names:
            found[name].append(seen[name][:, at].flatten(0, 1))
    return {name: torch.cat(parts) for name, parts in found.items()}


@torch.no_grad()
def bits(model: nn.Module, rows: Tensor) -> float:
    """Bits per letter of these rows."""
    losses = [
        cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()).item() for x in rows.split(50)
    ]
    return fmean(losses) / math.log(2)


# Probes


def windows(text: str, tokenizer: Any, start: int, count: int) -> tuple[Tensor, str]:
    """`count` windows of a text as (count, LENGTH), from the letter `start` on, and their text."""
    piece = text[start : start + count * LENGTH]
    return torch.tensor(tokenizer.encode(piece)).view(count, LENGTH), piece


def probes(seed: int) -> dict[str, Any]:
    """Accuracies by depth on held-out plays, with untrained models and a control task; what removal costs."""
    model, tokenizer = live_model()
    half = slice(LENGTH // 2, None)
    generator = torch.Generator().manual_seed(seed)
    train, held = shakespeare("train"), shakespeare("validation")
    place = int(torch.randint(len(train) - 200 * LENGTH, (1,), generator=generator))
    known, known_text = windows(train, tokenizer, place, 160)
    asked, asked_text = windows(held, tokenizer, 100_000 * seed + 5_000, 80)

    def later(labels: Tensor) -> Tensor:
        return labels.view(-1, LENGTH)[:, half].flatten()

    tasks = {name: later(y) for name, y in letter_labels(known_text).items()}
    truth = {name: later(y) for name, y in letter_labels(asked_text).items()}
    types = later(trigrams(known_text)), later(trigrams(asked_text))
    controls, control_truth = {}, {}
    for name, y in tasks.items():
        both = control_labels(torch.cat(types), y, generator)
        controls[name], control_truth[name] = both.split([len(y), len(types[1])])
    everything = {**tasks, **{f"control: {name}": y for name, y in controls.items()}}
    answers = {**truth, **{f"control: {name}": y for name, y in control_truth.items()}}
    majority = {
        name: (answers[name] == y.bincount().argmax()).float().mean().item() for name, y in everything.items()
    }

    def accuracies(of: nn.Module) -> tuple[dict[str, list[float]], dict[str, Any]]:
        x, new = activations(of, known, STREAMS, half), activations(of, asked, STREAMS, half)
        found: dict[str, list[float]] = {name: [] for name in everything}
        fitted = {}
        for stream in STREAMS:
            fitted[stream] = fit_probes(x[stream], everything)
            for name, probe in fitted[stream].items():
                found[name].append((probe(new[stream]) == answers[name]).float().mean().item())
        return found, {"probes": fitted, "x": x, "new": new}

    trained, kept = accuracies(model)
    untrained = {name: accuracies(SOURCES[name](model, seed))[0] for name in ("scrambled", "fresh")}
    whole = bits(model, asked[:40])
    stream = STREAMS[2]
    x, new = kept["x"][stream], kept["new"][stream]
    mean, centred = x.mean(dim=0), x - x.mean(dim=0)
    covariance = centred.T @ centred / len(x)
    values, vectors = torch.linalg.eigh(covariance)

    def rise(keep: Tensor) -> float:
        with patch(model, {stream: lambda h: without(h, mean, keep)}):
            return bits(model, asked[:40]) - whole

    def share(keep: Tensor) -> float:
        """Of the stream's variance, what is removed."""
        return 1 - ((covariance @ keep).trace() / covariance.trace()).item()

    def random(size: int, power: float) -> Tensor:
        """What removes directions that lean to the stream's large ones, the more the higher the power."""
        leaning = vectors @ torch.diag(values.clamp(min=0) ** power) @ vectors.T
        return removal(leaning @ torch.randn(128, size, generator=generator))

    effects: dict[str, Any] = {}
    for name, y in tasks.items():
        weight = kept["probes"][stream][name].weight
        means = torch.stack([centred[y == c].mean(dim=0) for c in range(int(y.max()) + 1) if (y == c).any()])
        ways = {"probe": weight - weight.mean(dim=1, keepdim=True), "means": means.T}
        effects[name] = {}
        for way, directions in ways.items():
            keep = removal(directions)
            size = round(len(keep) - keep.trace().item())
            powers = [t / 10 for t in range(21)]
            tried = [fmean(share(random(size, t)) for _ in range(4)) for t in powers]
            nearest = min(range(len(powers)), key=lambda i: abs(tried[i] - share(keep)))
            same = [random(size, powers[nearest]) for _ in range(5)]
            again = fit_probes(without(x, mean, keep), {name: y})[name]
            effects[name][way] = {
                "dimensions": size,
                "bits": rise(keep),
                "variance": share(keep),
                "random": [rise(each) for each in same],
                "random_variance": fmean(share(each) for each in same),
                "again": (again(without(new, mean, keep)) == truth[name]).float().mean().item(),
            }
    return rounded({"trained": trained, **untrained, "majority": majority, "removed": effects, "bits": whole})


# Superposition


def grid(runs: int) -> tuple[Tensor, Tensor]:
    """Density and importance of `runs` models in each cell, densities first."""
    p, r = torch.cartesian_prod(torch.tensor(DENSITIES), torch.tensor(IMPORTANCES)).T
    return p.repeat_interleave(runs), r.repeat_interleave(runs)


def phases(seed: int, restarts: int = 4) -> dict[str, Any]:
    """Trained models of two features in one dimension: exact error and weights, the best of some starts."""
    generator = torch.Generator().manual_seed(seed)
    p, r = grid(restarts)
    importance = torch.stack((torch.ones_like(r), r), dim=-1)
    density = p[:, None].expand(-1, 2)
    found = {}
    for name in ("relu", "linear"):
        toys = ToyModels(len(p), 2, 1, linear=name == "linear", generator=generator)
        sample = partial(sparse_features, density, generator=generator)
        train_toys(toys, sample, importance, steps=1500, batch=256, lr=0.02)
        with torch.no_grad():
            W, b = toys.W[:, 0], toys.b
            if name == "relu":
                error = exact_error(W, b, p, r, 48)
            else:
                x = sparse_features(density, 20_000, generator)
                error = weighted_error(x, toys(x), importance)
        shape = (len(DENSITIES), len(IMPORTANCES), restarts)
        best = error.view(shape).argmin(dim=-1, keepdim=True)
        pick = best[..., None].expand(-1, -1, 1, 2)
        found[name] = {
            "error": error.view(shape).gather(2, best)[..., 0].tolist(),
            "W": W.view(*shape, 2).gather(2, pick)[:, :, 0].tolist(),
            "b": b.view(*shape, 2).gather(2, pick)[:, :, 0].tolist(),
            "shared_of_starts": ((W[:, 0] * W[:, 1]).view(shape) < -0.1).float().mean(-1).tolist(),
        }
    return rounded(found, 5)


def optimum(starts: int = 10, steps: int = 600) -> dict[str, Any]:
    """The least exact error that descent from many starts finds in each cell."""
    generator = torch.Generator().manual_seed(9)
    p, r = grid(starts)
    W = torch.randn(len(p), 2, generator=generator).requires_grad_()
    b = (0.3 * torch.randn(len(p), 2, generator=generator)).requires_grad_()
    optimizer = torch.optim.Adam([W, b], lr=0.05)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.05 * (1 - step / steps)
        error = exact_error(W, b, p, r, 16)
        optimizer.zero_grad()
        error.sum().backward()
        optimizer.step()
    shape = (len(DENSITIES), len(IMPORTANCES), starts)
    with torch.no_grad():
        error = exact_error(W, b, p, r, 48).view(shape)
    best = error.argmin(dim=-1, keepdim=True)
    pick = best[..., None].expand(-1, -1, 1, 2)
    return rounded(
        {
            "error": error.gather(2, best)[..., 0].tolist(),
            "W": W.detach().view(*shape, 2).gather(2, pick)[:, :, 0].tolist(),
        },
        5,
    )


def five_in_two(seed: int) -> dict[str, Any]:
    """Five features, each 0.9 times as important as the last, in two dimensions; best of eight starts."""
    generator = torch.Generator().manual_seed(seed)
    densities, found = (1.0, 0.2, 0.05), {}
    p = torch.tensor(densities).repeat_interleave(8)
    density, importance = p[:, None].expand(-1, 5), (0.9 ** torch.arange(5)).expand(len(p), 5)
    sample = partial(sparse_features, density, generator=generator)
    for name in ("relu", "linear"):
        toys = ToyModels(len(p), 5, 2, linear=name == "linear", generator=generator)
        train_toys(toys, sample, importance, steps=2500, batch=512, lr=0.02)
        with torch.no_grad():
            x = sparse_features(density, 20_000, generator)
            error = weighted_error(x, toys(x), importance).view(len(densities), 8)
            best = error.argmin(dim=1)
            W = toys.W.view(len(densities), 8, 2, 5)
        found[name] = {
            f"{q:g}": {"error": error[i, best[i]].item(), "W": W[i, best[i]].tolist()}
            for i, q in enumerate(densities)
        }
    return rounded(found, 5)


# The sparse autoencoder


def texts(tokenizer: Any) -> tuple[Tensor, Tensor]:
    """Windows that the autoencoders learn from, and windows of plays that the model has not read."""
    known, _ = windows(shakespeare("train"), tokenizer, 0, 1200)
    held, _ = windows(shakespeare("validation"), tokenizer, 0, 320)
    return known, held


INNER = slice(3, -1)  # of a window: letters that three others stand before, and one after


def shown(
    model: TopKAutoencoder, z: Tensor, rows: Tensor, names: list[tuple], told: Any, tokenizer: Any
) -> list:
    """Five live features at fixed ranks of how often they fire, each with its three strongest contexts."""
    often = (z > 0).float().mean(dim=0)
    live = (often > 0).nonzero()[:, 0]
    order = live[often[live].argsort(descending=True)]
    found = []
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        f = int(order[int(share * len(order))])
        contexts: list[tuple[int, int]] = []
        for at in z[:, f].argsort(descending=True).tolist():
            row, n = divmod(at, LENGTH - 4)
            if n < 20 or any(row == other for other, _ in contexts):
                continue
            contexts.append((row, n + 3))
            if len(contexts) == 3:
                break
        length, tokens = names[int(told.label[f])]
        found.append(
            {
                "rank": share,
                "fires": often[f].item(),
                "contexts": [
                    [
                        tokenizer.decode(rows[r, n - 15 : n + 1].tolist()),
                        tokenizer.decode(rows[r, n + 1 : n + 5].tolist()),
                    ]
                    for r, n in contexts
                ],
                "label": [length, tokenizer.decode(list(tokens))],
                "f1": told.f1[f].item(),
            }
        )
    return found


def by_family(told: Any, live: Tensor, names: list[tuple]) -> dict[str, Any]:
    """The mean F1 of live units, the share above 1/2, and how many units tell which family best."""
    f1, label = told.f1[live], told.label[live]
    families = [names[i][0] for i in label.tolist()]
    return {
        "units": len(f1),
        "mean": f1.mean().item(),
        "above": (f1 > 0.5).float().mean().item(),
        "families": {
            str(family): {
                "share": fmean(f == family for f in families),
                "above": fmean(f == family and v > 0.5 for f, v in zip(families, f1.tolist(), strict=True)),
            }
            for family in range(5)
        },
    }


def both_signs(x: Tensor, labels: Tensor) -> Any:
    """`best_labels` of each unit with the sign that does better on the first half."""
    up, down = best_labels(x, labels), best_labels(-x, labels)
    better = up.known >= down.known
    return type(up)(*(torch.where(better, a, b) for a, b in zip(up, down, strict=True)))


def baselines(seed: int) -> dict[str, Any]:
    """What removal of the MLP costs; how well neurons and random directions tell strings of letters."""
    model, tokenizer = live_model()
    _, held = texts(tokenizer)
    labels, names = string_labels(held)
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, Any] = {"bits": bits(model, held)}
    for how in ("zero", "mean"):
        with ablate(model, [HIDDEN], how):
            found[how] = bits(model, held)
    for name, make in SOURCES.items():
        x = activations(make(model, seed), held, [HIDDEN], INNER)[HIDDEN]
        everyone = torch.ones(x.shape[1], dtype=torch.bool)
        found[name] = {"neurons": by_family(both_signs(x, labels), everyone, names)}
        directions = normalize(torch.randn(x.shape[1], x.shape[1], generator=generator), dim=0)
        told = both_signs((x - x.mean(dim=0)) @ directions, labels)
        found[name]["random"] = by_family(told, everyone, names)
    return rounded(found)


def autoencoder(seed: int, k: int, of: str = "trained") -> dict[str, Any]:
    """One autoencoder: what it leaves out, what its code costs, dead features, what the others tell."""
    model, tokenizer = live_model()
    known, held = texts(tokenizer)
    labels, names = string_labels(held)
    source = SOURCES["trained" if of == "shuffled" else of](model, seed)
    x = activations(source, known, [HIDDEN], slice(None))[HIDDEN]
    if of == "shuffled":  # each neuron keeps its values, not its company
        generator = torch.Generator().manual_seed(seed)
        for column in range(x.shape[1]):
            x[:, column] = x[torch.randperm(len(x), generator=generator), column]
    sae = fit_autoencoder(x, FEATURES, k, steps=STEPS, seed=seed, batch=256, lr=5e-3)
    del x
    new = activations(source, held, [HIDDEN], INNER)[HIDDEN]
    with torch.no_grad():
        z = torch.cat([sae.encode(part) for part in new.split(4000)])
        left = (sae.centre + sae.scale * z @ sae.directions - new).square().sum()
        spread = (new - new.mean(dim=0)).square().sum()
    live = (z > 0).any(dim=0)
    result: dict[str, Any] = {"left": (left / spread).item(), "dead": 1 - live.float().mean().item()}
    if of == "trained":
        with torch.no_grad(), patch(model, {HIDDEN: sae}):
            result["bits"] = bits(model, held)
    if k == KEPT:
        told = best_labels(z, labels)
        result["labels"] = by_family(told, live, names)
        if of == "trained":
            result["shown"] = shown(sae, z, held, names, told, tokenizer)
        torch.save({"directions": sae.directions.detach()[live]}, RUNS.folder / f"autoencoder-{of}-{seed}.pt")
    return rounded(result)


def recurrence() -> dict[str, Any]:
    """Of each pair of seeds the share of features matched above cosine 0.9; random directions beside."""
    pairs = ((0, 1), (0, 2), (1, 2))
    found: dict[str, dict[str, Any]] = {}
    for kind in ("trained", "scrambled", "fresh"):
        files = [RUNS.folder / f"autoencoder-{kind}-{seed}.pt" for seed in SEEDS]
        sets = [torch.load(file, weights_only=True)["directions"] for file in files]
        cosines = [matched_cosines(sets[a], sets[b]) for a, b in pairs]
        found[kind] = {
            "above": [(c > 0.9).float().mean().item() for c in cosines],
            "above_seven": [(c > 0.7).float().mean().item() for c in cosines],
            "median": [c.median().item() for c in cosines],
        }
    generator = torch.Generator().manual_seed(0)
    random = [torch.randn(FEATURES, 341, generator=generator) for _ in range(2)]
    found["random"] = {"median": matched_cosines(*random).median().item()}
    return rounded(found)


PARTS: dict[str, list[tuple[tuple, Callable[[], Any]]]] = {
    "superposition": [
        (("optimum",), optimum),
        *((("phases", s), partial(phases, s)) for s in SEEDS),
        *((("graded", s), partial(five_in_two, s)) for s in SEEDS),
    ],
    "sae": [
        *((("strings", s), partial(baselines, s)) for s in SEEDS),
        *(
            (("features", of, s), partial(autoencoder, s, KEPT, of))
            for of in ("trained", "fresh", "scrambled", "shuffled")
            for s in SEEDS
        ),
        (("recurs",), recurrence),
        *((("sae", k, 0), partial(autoencoder, 0, k)) for k in KS if k != KEPT),
    ],
    "probes": [(("probes three", s), partial(probes, s)) for s in SEEDS],
}


def brief(key: tuple, result: dict[str, Any]) -> dict[str, Any]:
    """What the page needs of a run: of the phases the products w_1 w_2, which say whether a model shares."""
    if key[0] != "phases":
        return result
    return {name: [[round(a * b, 3) for a, b in row] for row in found["W"]] for name, found in result.items()}


def main() -> None:
    """Runs what is missing; records when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all if none is given")
    torch.set_num_threads(1)
    for part in parser.parse_args().parts or PARTS:
        for key, make in PARTS[part]:
            RUNS.keep(*key, make=make)
    if all(RUNS.done(*key) for runs in PARTS.values() for key, _ in runs):
        results = {
            "densities": DENSITIES,
            "importances": IMPORTANCES,
            "features": FEATURES,
            "steps": STEPS,
            "kept": KEPT,
            "runs": {
                " ".join(map(str, key)): brief(key, RUNS.get(*key))
                for runs in PARTS.values()
                for key, _ in runs
            },
        }
        seconds = sum(RUNS.seconds.values())
        print(record("inside_features", results, seeds=SEEDS, cpu_seconds=seconds))


if __name__ == "__main__":
    main()
