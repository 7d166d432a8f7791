"""The card of a run: what a stranger must know of a model, in Markdown."""

import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy
import torch

import tformer_lib
from tformer_lib.data.shards import Shards
from tformer_lib.files import replace_file
from tformer_lib.runs.log import read_log
from tformer_lib.runs.scoring import Score
from tformer_lib.runs.settings import GROUPS, Settings
from tformer_lib.runs.words import shown
from tformer_lib.scale.together import processes


def data_of(shards: Shards) -> dict[str, Any]:
    """What the card says of the tokens, so that it can be written without them."""
    parts = {
        split: {key: value for key, value in shards.index[split].items() if key != "shards"}
        for split in ("train", "held_out")
    }
    return parts | {
        "texts": shards.index["notes"].get("texts", "not known"),
        "identity": shards.identity,
        "tokenizer": f"{type(shards.tokenizer).__name__} of {shards.vocab_size:,} tokens",
        "duplicates": shards.index.get("duplicates"),  # older ones did not count them
    }


def write_card(
    path: Path,
    settings: Settings,
    data: dict[str, Any],
    parameters: int,
    score: Score | None,
    samples: list[str],
    lengthened: list[dict[str, int]],
) -> None:
    """Data, counts, settings, seeds, versions, loss, samples and processor-seconds, in one file."""
    train, held = data["train"], data["held_out"]
    lines = [
        f"# {path.resolve().parent.name}",
        "",
        f"A GPT of {parameters:,} parameters, trained by `python -m tformer_lib.train`.",
        "",
        "## Data",
        "",
        f"- texts: `{settings.data.folder or 'not named'}`",
        f"- SHA-256 of the texts: `{data['texts']}`",
        f"- SHA-256 of the tokens' index: `{data['identity']}`",
        f"- tokenizer: {data['tokenizer']}",
    ]
    if data["duplicates"] is not None:
        lines.append(f"- documents that are another one again, but for blanks: {data['duplicates']:,}")
    lines += ["", "| | documents | characters | tokens |", "|---|---:|---:|---:|"]
    for name, part in (("trained on", train), ("held out", held)):
        lines.append(f"| {name} | {part['documents']:,} | {part['characters']:,} | {part['tokens']:,} |")
    lines.append("")
    if held["names"]:
        names = ", ".join(f"`{name}`" for name in held["names"][:20])
        lines += [f"Held out: {names}" + ("." if len(held["names"]) <= 20 else ", ..."), ""]
    lines += ["## Result", "", *_result(read_log(path.parent / "log.csv"), settings, held, score, lengthened)]
    lines += ["", "## What it writes", ""]
    fence = "`" * 4
    for prompt, text in zip(settings.sample.prompts, samples, strict=False):
        start = f"After `{prompt}`:" if prompt else "From the beginning:"
        lines += [start, "", fence, shown(text), fence, ""]
    lines += ["## Settings", "", "| setting | value |", "|---|---|"]
    content = asdict(settings)
    for group in GROUPS:
        lines += [f"| {group}.{name} | `{value!r}` |" for name, value in content[group].items()]
    lines += ["", "## Made with", ""]
    lines += [f"- {name} {found}" for name, found in _versions().items()]
    lines += [f"- {processes()} process(es), {platform.machine()}, {platform.system()}", ""]
    replace_file(path, "\n".join(lines).encode())


def _result(
    log: list[dict[str, float]],
    settings: Settings,
    held: dict[str, Any],
    score: Score | None,
    lengthened: list[dict[str, int]],
) -> Iterator[str]:
    """What the training came to, line by line."""
    if log:
        end = log[-1]
        yield (
            f"- trained for {int(end['step']):,} of {settings.train.steps:,} steps, which predicted "
            f"{int(end['tokens']):,} tokens"
        )
        yield f"- loss of the last {settings.train.log_every} steps: {end['loss']:.4f} nats a token"
        yield (
            f"- processor-seconds of training, all processes: {end['processor_seconds']:.0f} "
            "(work that was lost when a run was killed is not counted)"
        )
    for each in lengthened:
        yield (
            f"- lengthened from {each['from']:,} to {each['to']:,} steps after step {each['after']:,}: from "
            "then on the learning rates are those of the longer run"
        )
    if not held["tokens"]:
        yield "- nothing was held out: there is no score"
    elif score is not None:
        part = "all" if score.tokens == held["tokens"] else f"the first {score.tokens:,} tokens"
        yield f"- held out, {part}: {score.nats:.4f} nats a token"
        yield from ("", "| held out | bits a character |", "|---|---:|")
        yield f"| this model | {score.bits:.4f} |"
        yield f"| one that knows how often each token comes | {score.counts_bits:.4f} |"
        yield f"| one that knows how many there are | {score.nothing_bits:.4f} |"


def _versions() -> dict[str, str]:
    found = {"tformer_lib": tformer_lib.__version__, "Python": platform.python_version()}
    found |= {"torch": torch.__version__, "numpy": numpy.__version__}
    for name in ("jsonargparse", "tensorboard"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
