"""Patching translators of number words: where does the word that decides lie, layer by layer?

Three kinds of translator are trained alike, three seeds each: the decoder reads all places of the encoder;
only the end token; or, in training, by chance one or the other ("either"). The first is also trained with
three blocks. Pairs of held-out numbers differ in one word, tens or units, which is another word or blank.
Each place of each layer is patched in both directions, and compared with cross-attention. In the record are
means over the pairs for each seed; what some pairs do in two of the models is written to
`book/site/static/live/patching.js`, for the figure to touch. Six minutes of one core. A model's name as
argument makes its runs alone.
"""

import json
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.bert.ranks import kendall_tau
from tformer_book.inside.data.number_pairs import (
    DIGITS,
    NumberPairs,
    full_numbers,
    number_pairs,
    words_read,
    words_written,
)
from tformer_book.inside.models.number_translator import exact_share, trained_translator
from tformer_book.kit.data.number_words import NumberWords
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD, Runs, rounded
from tformer_lib import record_attention
from tformer_lib.analysis import patch, patching_effect, patching_grid
from tformer_lib.analysis import record as record_activations
from tformer_lib.files import replace_file
from tformer_lib.models.translator import Translator

RUNS = Runs("inside_words")
SEEDS = (0, 1, 2)
MODELS = {  # what the decoder reads, and the blocks on each side
    "end": ("end", 2),
    "either": ("either", 2),
    "all": ("all", 2),
    "all, deeper": ("all", 3),
}
PAIRS = 300  # of each kind
SCRIPT = BUILD.parent / "book" / "site" / "static" / "live" / "patching.js"
SHOWN = {"units": (37, 181), "tens": (95, 243)}  # pairs of two models in the figure to touch


def streams(side: str, blocks: int) -> list[str]:
    """The stream before the first block and behind each one."""
    return [f"{side}.blocks.0.input", *(f"{side}.blocks.{m}" for m in range(blocks))]


def grids(model: Translator, pairs: NumberPairs, side: str, metric: Any) -> dict[str, Tensor]:
    """The metric behind each patch, (layers, places, pairs), in both directions."""
    names = streams(side, model.config.n_blocks)
    clean, corrupted = ((s, pairs.target) for s in (pairs.clean_source, pairs.corrupted_source))
    return {
        "denoise": patching_grid(model, corrupted, clean, names, metric),
        "noise": patching_grid(model, clean, corrupted, names, metric),
    }


@torch.no_grad()
def without_patch(model: Translator, pairs: NumberPairs, metric: Any) -> tuple[Tensor, Tensor]:
    """The metric on the clean and on the corrupted run."""
    return tuple(metric(model(s, pairs.target)) for s in (pairs.clean_source, pairs.corrupted_source))


def effects(model: Translator, pairs: NumberPairs, side: str) -> dict[str, Tensor]:
    """The share of the logit difference that each patch recovers (denoise) or destroys (noise)."""
    clean, corrupted = without_patch(model, pairs, pairs.difference)
    found = grids(model, pairs, side, pairs.difference)
    return {
        "denoise": patching_effect(found["denoise"], corrupted, clean),
        "noise": patching_effect(found["noise"], clean, corrupted),
    }


@torch.no_grad()
def read_weights(model: Translator, pairs: NumberPairs) -> Tensor:
    """Cross-attention where the answer is written, in the clean run: (pairs, blocks, heads, places)."""
    with record_attention(model) as weights:
        model(pairs.clean_source, pairs.target)
    blocks = model.config.n_blocks
    return torch.stack(
        [weights[f"decoder.blocks.{m}.cross_attention"][:, :, -1] for m in range(blocks)], dim=1
    )


def strangers(pairs: NumberPairs) -> Tensor:
    """For each pair another one whose word is neither of its two."""
    rows = range(len(pairs.clean))
    found = []
    for i in rows:
        words = (pairs.right[i], pairs.wrong[i])
        found.append(next(j for j in (*rows[i + 1 :], *rows[:i]) if pairs.right[j] not in words))
    return torch.tensor(found)


def control(model: Translator, pairs: NumberPairs) -> dict[str, Any]:
    """What a patch from another pair of the same kind does: (layers, places) of means."""
    other = strangers(pairs)
    names = streams("encoder", model.config.n_blocks)
    base = (pairs.corrupted_source, pairs.target)
    donor = (pairs.clean_source[other], pairs.target)
    clean, corrupted = without_patch(model, pairs, pairs.difference)
    effect = patching_effect(patching_grid(model, base, donor, names, pairs.difference), corrupted, clean)

    def says(word: Tensor, donor: tuple[Tensor, Tensor]) -> list[list[float]]:
        metric = lambda logits: (logits[:, -1].argmax(dim=-1) == word).float()  # noqa: E731
        return patching_grid(model, base, donor, names, metric).mean(dim=-1).tolist()

    same = patching_grid(model, base, base, names, pairs.difference) - corrupted
    return {
        "effect": effect.mean(dim=-1).tolist(),
        "right word": says(pairs.right, donor),
        "donor's word": says(pairs.right[other], donor),
        "right word, true donor": says(pairs.right, (pairs.clean_source, pairs.target)),
        "same run": same.abs().max().item(),
    }


def agreement(weights: Tensor, effect: Tensor) -> dict[str, float]:
    """How often the place read most has the largest effect, and how alike the orders are; (B, S) both."""
    tau = kendall_tau(weights, (100 * effect).round(), torch.ones_like(effect, dtype=torch.bool))
    first = (weights.argmax(dim=1) == effect.argmax(dim=1)).float().mean().item()
    return {"first": first, "tau": tau.nanmean().item()}


def examined(model: Translator, pairs: NumberPairs) -> dict[str, Any]:
    """All that is recorded of one model and one kind of pair."""
    found: dict[str, Any] = {}
    encoder = effects(model, pairs, "encoder")
    for side, effect in (("encoder", encoder), ("decoder", effects(model, pairs, "decoder"))):
        found[side] = {way: values.mean(dim=-1).tolist() for way, values in effect.items()}
    weights = read_weights(model, pairs)
    mean, last = weights.mean(dim=(1, 2)), {way: values[-1].T for way, values in encoder.items()}
    place = DIGITS[pairs.kind][1]
    found["weights"] = mean.mean(dim=0).tolist()
    found["heads"] = weights.mean(dim=0).tolist()
    found["agreement"] = {way: agreement(mean, effect) for way, effect in last.items()}
    found["heads first"] = [
        [agreement(weights[:, m, h], last["denoise"])["first"] for h in range(weights.shape[2])]
        for m in range(weights.shape[1])
    ]
    found["word first"] = (mean.argmax(dim=1) == place).float().mean().item()
    found["carried"] = {
        way: (effect.argmax(dim=1) == place).float().mean().item() for way, effect in last.items()
    }
    found["sum"] = {way: effect.sum(dim=1).mean().item() for way, effect in last.items()}
    found["others"] = (1 - others(model, pairs).T - last["noise"]).abs().max().item()
    found["swapped"] = (
        (effects(model, pairs.swapped(), "encoder")["noise"] - encoder["denoise"]).abs().max().item()
    )
    return found


def others(model: Translator, pairs: NumberPairs) -> Tensor:
    """The effect of denoising all places but one, behind the encoder's last block: (places, pairs)."""
    name = streams("encoder", model.config.n_blocks)[-1]
    clean, corrupted = without_patch(model, pairs, pairs.difference)
    with torch.no_grad(), record_activations(model, [name]) as seen:
        model(pairs.clean_source, pairs.target)
    given, found = seen[name], []
    for place in range(given.shape[1]):

        def put(activation: Tensor, place: int = place) -> Tensor:
            patched = given.clone()
            patched[:, place] = activation[:, place]
            return patched

        with torch.no_grad(), patch(model, {name: put}):
            found.append(pairs.difference(model(pairs.corrupted_source, pairs.target)))
    return patching_effect(torch.stack(found), corrupted, clean)


def shown(model: Translator, pairs: NumberPairs, which: Iterable[int]) -> list[dict[str, Any]]:
    """Of these pairs: the logit difference and both words' probabilities, without a patch and with each."""

    def share(logits: Tensor, at: Tensor) -> Tensor:
        p = logits[:, -1].softmax(dim=-1)
        return p[torch.arange(len(at)), at]

    metrics = {
        "difference": pairs.difference,
        "clean": lambda logits: share(logits, pairs.right),
        "corrupted": lambda logits: share(logits, pairs.wrong),
    }
    plain = {name: without_patch(model, pairs, metric) for name, metric in metrics.items()}
    patched = {
        (side, name): grids(model, pairs, side, metric)
        for side in ("encoder", "decoder")
        for name, metric in metrics.items()
    }
    weights = read_weights(model, pairs).mean(dim=(1, 2))
    items = []
    for i in which:
        clean, corrupted = pairs.clean[i], pairs.corrupted[i]
        length = pairs.target.shape[1]
        answers = [words_written(n)[length] for n in (clean, corrupted)]
        item = {"clean": words_read(clean), "corrupted": words_read(corrupted)}
        item |= {"written": words_written(clean)[:length], "answers": answers, "weights": weights[i].tolist()}
        item["plain"] = {
            run: [plain[name][r][i].item() for name in metrics]
            for r, run in enumerate(("clean", "corrupted"))
        }
        for side in ("encoder", "decoder"):
            item[side] = {
                way: torch.stack([patched[side, name][way][..., i] for name in metrics], dim=-1).tolist()
                for way in ("denoise", "noise")
            }
        items.append(rounded(item, 3))
    return items


def one(name: str, seed: int) -> dict[str, Any]:
    """Train one model and look."""
    reads, blocks = MODELS[name]
    data = NumberWords()
    model = trained_translator(data, seed, reads=reads, blocks=blocks)
    result: dict[str, Any] = {"exact": exact_share(model, data, data.held_out)}
    numbers = full_numbers(data.held_out)[:PAIRS]
    result["pairs"] = len(numbers)
    for kind in DIGITS:
        pairs = number_pairs(data, kind, numbers, seed)
        result[kind] = examined(model, pairs)
        result[kind]["control"] = control(model, pairs)
        result[f"{kind}, blank"] = examined(model, number_pairs(data, kind, numbers, seed, blank=True))
    return rounded(result, 3)


def board(name: str) -> list[dict[str, Any]]:
    """The items of the figure to touch from one model of seed 0."""
    reads, blocks = MODELS[name]
    data = NumberWords()
    model = trained_translator(data, 0, reads=reads, blocks=blocks)
    numbers = full_numbers(data.held_out)[:PAIRS]
    chosen = [(number_pairs(data, kind, numbers), which) for kind, which in SHOWN.items()]
    return [{"reads": name, **item} for pairs, which in chosen for item in shown(model, pairs, which)]


def hidden(seed: int) -> dict[str, float]:
    """How well the translator that was trained on either copy does with each of them alone."""
    data = NumberWords()
    model = trained_translator(data, seed, reads="either")
    found = {}
    for reads in ("all", "words", "end"):
        model.reads = reads
        found[reads] = exact_share(model, data, data.held_out)
    return rounded(found, 3)


def essence(name: str, seed: int, run: dict[str, Any]) -> dict[str, Any]:
    """What is recorded of a run: not every head, and of the control only what the last block says."""
    kept = {key: value for key, value in run.items() if key != "shown"}
    for kind, found in kept.items():
        if not isinstance(found, dict):
            continue
        found = {key: value for key, value in found.items() if key != "heads first"}
        if (name, seed, kind) != ("all", 0, "units"):
            del found["heads"]
        if "blank" in kind:
            for key in ("weights", "agreement", "word first", "carried", "others", "swapped"):
                del found[key]
        else:
            control = found["control"]
            found["control"] = {key: control[key][-1] for key in ("effect", "right word", "donor's word")}
            found["control"]["same run"] = control["same run"]
        if name == "all, deeper":
            found.pop("control", None)
            found.pop("decoder")
        kept[kind] = found
    return kept


def main() -> None:
    """Run what is missing, write the script of the figure to touch, and record."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    only = sys.argv[1:]
    for name in only or MODELS:
        found[name] = [RUNS.keep(name, seed, make=partial(one, name, seed)) for seed in SEEDS]
    if only:
        return
    items = [item for name in ("all", "end") for item in RUNS.keep("board", name, make=partial(board, name))]
    found = {name: [essence(name, *run) for run in enumerate(runs)] for name, runs in found.items()}
    found["either, hidden"] = [RUNS.keep("hidden", seed, make=partial(hidden, seed)) for seed in SEEDS]
    replace_file(SCRIPT, f"window.TformerPatches = {json.dumps(items, ensure_ascii=True)};\n".encode())
    print(record("inside_words", found, seeds=list(SEEDS), cpu_seconds=sum(RUNS.seconds.values())))


if __name__ == "__main__":
    main()
