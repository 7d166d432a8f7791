"""The steps of a run: cut the texts into tokens, train, evaluate, write."""

import json
import os
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.shard_writing import draw_held_out, make_tokenizer, write_shards
from tformer_lib.data.shards import INDEX, TOKENIZER, ShardBatches, Shards, load_tokenizer
from tformer_lib.data.text_folder import TextFolder
from tformer_lib.files import parse_json, replace_file
from tformer_lib.generation import generate
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import quiet_initialisation
from tformer_lib.models.language import language_loss
from tformer_lib.numbers import real, whole
from tformer_lib.runs.card import data_of, write_card
from tformer_lib.runs.group import alone_in, by_first, device_for, first
from tformer_lib.runs.log import Log
from tformer_lib.runs.scoring import Score, reading, score
from tformer_lib.runs.settings import ModelSettings, Settings
from tformer_lib.runs.words import NOT_ALLOWED, say, shown, signs_of_life
from tformer_lib.scale.distributed_fit import fit_distributed, whole_state
from tformer_lib.scale.sharded_checkpoints import steps_done
from tformer_lib.scale.together import processes
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer
from tformer_lib.training import count_parameters, load_checkpoint, save_checkpoint, seed_everything
from tformer_lib.training.checkpoints import has_checkpoint
from tformer_lib.training.plan import Plan

SETTINGS, TOKENS, MODEL, ABOUT = "settings.json", "tokens.json", "model", "tformer_model.json"
SCORE, SAMPLES, CARD = "held_out.json", "samples.json", "card.md"
WRITTEN = (SETTINGS, TOKENS, MODEL, SCORE, SAMPLES, CARD, "checkpoint", "shards", "log.csv", "tensorboard")
MODEL_KIND, MODEL_FORMAT = "tformer_lib language model", 1


@dataclass(frozen=True)
class Trained:
    """A trained model with all that writing takes."""

    network: GPT
    tokenizer: BPETokenizer | CharTokenizer
    end: int  # the token behind each document
    settings: ModelSettings
    shards: str  # the identity of the tokens that it was trained on


def check(settings: Settings) -> None:
    """Find what is wrong with the numbers before the texts are read.

    Raises:
        ValueError: if one is out of bounds, or does not go with another.
        TypeError: if one is none.
    """
    options = settings.train
    build(settings.model, 2)
    device_for(settings.device)
    held_out = real("data.held_out", settings.data.held_out, "[0, 1)")
    if settings.evaluate.every is not None and not held_out and settings.data.folder is not None:
        raise ValueError(
            "with data.held_out 0 there is no text that could be read on the way: leave evaluate.every out, "
            "or hold out more"
        )
    if settings.evaluate.every is not None:
        whole("evaluate.every", settings.evaluate.every, 1)
    whole("evaluate.every_tokens", settings.evaluate.every_tokens, 1)
    Plan(**_plan(settings))
    if whole("train.batch", options.batch, 1) % (
        processes() * whole("train.accumulate", options.accumulate, 1)
    ):
        raise ValueError(
            f"a batch of {options.batch} windows cannot be cut evenly for {processes()} process(es) "
            f"with {options.accumulate} part(s) each"
        )


def train(settings: Settings) -> None:
    """Train on the shards, from the last checkpoint on if there is one; nobody else does so meanwhile."""
    _claim(settings)
    with alone_in(Path(settings.out)):
        _train(settings)


def _train(settings: Settings) -> None:
    out = Path(settings.out)
    shards = Shards(shards_folder(settings), verify=False)
    model, options = settings.model, settings.train
    device = device_for(settings.device)
    seed_everything(options.seed)
    network = build(model, shards.vocab_size).to(device)
    batches = ShardBatches(shards, batch=options.batch, length=model.context, seed=options.seed)
    done = first(lambda: steps_done(out / "checkpoint"))
    finished = first(lambda: done == options.steps and _is_whole(out / MODEL))
    if finished:
        say(
            f"the run in {out} is finished: all {options.steps} steps are done. More steps lengthen it "
            f"(--train.steps {2 * options.steps}), `sample` lets it write, and another --out begins a new run"
        )
    else:
        say(
            f"training {count_parameters(network):,} parameters on {shards.tokens('train'):,} tokens; "
            f"{options.steps} steps read them {options.steps * options.batch / batches.windows:.2f} times"
        )
    tokens = options.batch * model.context

    def read() -> float:  # by all processes, since a sharded model is only whole when all call it
        nats, ids = reading(network, shards, model.context, tokens=often.every_tokens, batch=often.batch)
        return nats / len(ids)

    often = settings.evaluate
    log = Log(
        out,
        every=options.log_every,
        steps=options.steps,
        tokens=tokens,
        tensorboard=options.tensorboard,
        read_every=often.every or 1,
        read=read if often.every else None,
        ends=first(
            lambda: [
                each["from"] for each in _lengthened(out, options.steps) if each["after"] == each["from"]
            ]
        )
        or (),
    )

    def loss(network: nn.Module, rows: Tensor) -> Tensor:
        return language_loss(network, rows.to(device))

    history = fit_distributed(
        network,
        loss,
        batches,
        **_plan(settings),
        strategy=options.strategy,
        accumulate=options.accumulate,
        precision=options.precision,
        recompute=options.recompute,
        compiled=options.compiled,
        checkpoint=out / "checkpoint",
        checkpoint_every=options.checkpoint_every,
        lengthen=True,
        on_step=log,
    )
    log.close(history)
    state = whole_state(network)
    first(lambda: None if finished else _keep(settings, state, shards))


def evaluate_if_held_out(settings: Settings) -> None:
    """`evaluate`, unless the texts were all trained on, as with `data.held_out` 0."""
    evaluate(settings, required=False)


def report_if_allowed(settings: Settings) -> None:
    """`report`, where the model is a run's; where its folder may not be written, the card stays as it is."""
    report(settings, required=False)


def build(model: ModelSettings, vocab_size: int) -> GPT:
    """The GPT of these settings, whose blocks begin as the identity; drawn from the global generator."""
    d_hidden = -(-8 * model.d_model // 24) * 8 if model.d_hidden is None else model.d_hidden
    config = TransformerConfig(
        d_model=model.d_model,
        n_heads=model.n_heads,
        n_kv_heads=model.n_kv_heads,
        n_blocks=model.n_blocks,
        d_hidden=d_hidden,
        norm="rms",
        activation="swiglu",
        qk_norm=True,
        bias=False,
        dropout=model.dropout,
    )
    rotary = Rotary(config.d_model // config.n_heads, model.rotary_base)
    network = GPT(
        config, vocab_size, rotary=rotary, make_backend=lambda: FusedAttend(model.dropout), tied=model.tied
    )
    quiet_initialisation(network)
    return network


def shards_folder(settings: Settings) -> Path:
    """Where the tokens of a run are."""
    return Path(settings.out) / "shards" if settings.data.shards is None else Path(settings.data.shards)


def _plan(settings: Settings) -> dict[str, Any]:
    """What `fit` is told too."""
    options, names = settings.train, {each.name for each in fields(Plan)} - {"betas"}
    return {name: getattr(options, name) for name in names} | {"betas": (options.beta1, options.beta2)}


@by_first
def tokenise(settings: Settings) -> None:
    """Write the texts as shards, unless they are there."""
    folder, data = shards_folder(settings), settings.data
    real("data.held_out", data.held_out, "[0, 1)")
    if data.folder is None:
        if (folder / INDEX).exists():
            return
        raise ValueError("there is no text: say which folder of texts to read, by --data.folder")
    texts = TextFolder(
        data.folder,
        pattern=data.pattern,
        encoding=data.encoding,
        separator=data.separator,
        without=_outputs(settings),
    )
    notes = {
        "texts": texts.checksum(),
        **{f"data.{name}": getattr(data, name) for name in ("held_out", "seed")},
        **{f"tokenizer.{name}": value for name, value in asdict(settings.tokenizer).items()},
    }
    if (folder / INDEX).exists():
        there = Shards(folder, verify=False).index["notes"]
        wrong = [k for k in notes if notes[k] != there.get(k)]
        if wrong:
            differences = "; ".join(
                f"{k} was {there.get(k)!r} and is {notes[k]!r}" if k != "texts" else "other texts"
                for k in wrong
            )
            raise ValueError(
                f"the shards in {folder} are of something else: {differences}. "
                "Take another --out or --data.shards, or delete that folder"
            )
        say(f"the tokens are in {folder} already")
        return
    drawn = draw_held_out(texts, data.held_out, data.seed)
    say(f"cutting {drawn.documents:,} document(s) of {drawn.characters:,} characters into tokens")
    if drawn.duplicates:
        say(
            f"{drawn.duplicates:,} document(s) are the same as another one, but for blanks: all of a kind "
            "are either trained on or held out"
        )
    if data.held_out and not data.held_out / 2 <= drawn.share <= 2 * data.held_out:
        say(
            f"held out: {drawn.share:.1%} of the text, not {data.held_out:.1%}, since whole documents are "
            "held out and some are long; data.separator says what stands between shorter ones"
        )
    # characters of held-out texts need a number; merges are learnt without them
    kept = (
        text for i, text in enumerate(texts) if i not in drawn.numbers or settings.tokenizer.kind == "char"
    )
    with signs_of_life(lambda: "making the tokenizer"):
        tokenizer, end = make_tokenizer(
            kept, settings.tokenizer.kind, settings.tokenizer.vocab_size, most=settings.tokenizer.most
        )
    at = {"text": "cutting"}

    def note_place(name: str, done: int) -> None:
        at["text"] = f"cutting {name}, after {done / max(1, drawn.characters):.0%} of the characters"

    with signs_of_life(lambda: at["text"]):
        shards = write_shards(
            texts,
            folder,
            tokenizer,
            end,
            held_out=data.held_out,
            seed=data.seed,
            shard_tokens=data.shard_tokens,
            notes=notes,
            drawn=drawn,
            on_document=note_place,
        )
    counts = {split: shards.tokens(split) for split in ("train", "held_out")}
    share = counts["held_out"] / sum(counts.values())
    say(
        f"wrote {folder}: {counts['train']:,} tokens to train on, {counts['held_out']:,} tokens held out "
        f"({share:.1%}, in {len(drawn.numbers):,} of {drawn.documents:,} documents), a vocabulary of "
        f"{shards.vocab_size:,}"
    )


def _outputs(settings: Settings) -> list[Path]:
    """What runs wrote into the folder of texts, which is no text of it: this run's, and those of others."""
    assert settings.data.folder is not None
    texts, out = Path(settings.data.folder).resolve(), Path(settings.out).resolve()
    found = [shards_folder(settings), *(out / name for name in WRITTEN)]
    if out != texts and out.is_relative_to(texts):
        found.append(out)
    for here, _, files in os.walk(texts):
        if {SETTINGS, TOKENS} <= {*files}:
            found += [Path(here)] if Path(here) != texts else [Path(here, name) for name in WRITTEN]
    return found


@by_first
def _claim(settings: Settings) -> None:
    """Check the shards, and that the run in this folder, if there is one, is this run; note its settings."""
    shards = Shards(shards_folder(settings))
    if settings.evaluate.every is not None and not shards.tokens("held_out"):
        raise ValueError("nothing was held out that could be read on the way: leave evaluate.every out")
    out = Path(settings.out)
    mine = settings.identity() | {"shards": shards.identity}
    lengthened: list[dict[str, int]] = []
    if (out / SETTINGS).exists():
        then = _settings_of(out)
        theirs = then.identity() | {"shards": _note(out)["shards"]}
        before, now = then.train.steps, settings.train.steps
        if before < now:
            theirs["train.steps"] = now  # a run can be lengthened
        wrong = [
            "other tokens" if k == "shards" else f"{k} was {theirs[k]!r} and is {mine[k]!r}"
            for k in mine
            if mine[k] != theirs[k]
        ]
        if wrong:
            raise ValueError(
                f"{out} holds a run of other settings: {'; '.join(wrong)}. "
                "Take another --out for a new run, or go on with the settings that it has: "
                f"--config {out / SETTINGS} --out {out}"
                + (", of which train.steps can be raised" if now < before else "")
            )
        done, lengthened = steps_done(out / "checkpoint"), _lengthened(out, before)
        if done and before < now:
            if lengthened and lengthened[-1]["after"] == done:  # no step was made at that length
                before = lengthened.pop()["from"]
            lengthened.append({"from": before, "to": now, "after": done})
            say(
                f"the run is lengthened from {before} to {now} steps: its first {done} stay as they are, and "
                f"from the next one on the learning rate is that of a run of {now} steps"
            )
    out.mkdir(parents=True, exist_ok=True)
    ShardBatches(shards, batch=settings.train.batch, length=settings.model.context).shard(0, processes())
    note = {"shards": shards.identity, "data": data_of(shards), "lengthened": lengthened}
    replace_file(out / TOKENS, json.dumps(note).encode())
    replace_file(out / SETTINGS, json.dumps(asdict(settings), indent=1).encode())


def _settings_of(out: Path) -> Settings:
    try:
        return Settings.from_dict(parse_json((out / SETTINGS).read_bytes()))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{out / SETTINGS} holds no settings of a run: {error}") from error


def _note(out: Path) -> dict[str, Any]:
    try:
        return {"shards": None} | parse_json((out / TOKENS).read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{out / TOKENS} is missing or damaged: {error}") from error


def _lengthened(out: Path, steps: int) -> list[dict[str, int]]:
    """How often the run was lengthened: from how many steps, to how many, after which of them."""
    found = _note(out).get("lengthened", [])
    return [each for each in found if each["to"] <= steps]  # else it was only begun


def _keep(settings: Settings, state: dict[str, Tensor], shards: Shards) -> None:
    """The trained model, with all that writing takes, in a folder of its own; its weights last."""
    network = build(settings.model, shards.vocab_size)
    network.load_state_dict({name: value.cpu() for name, value in state.items()})
    out = Path(settings.out)
    folder = out / MODEL
    folder.mkdir(parents=True, exist_ok=True)
    if _lengthened(
        out, settings.train.steps
    ):  # what the shorter run's model scored and wrote is not this one's
        for name in (SCORE, SAMPLES):
            (out / name).unlink(missing_ok=True)
    shards.tokenizer.save(folder / TOKENIZER)
    about = {
        "kind": MODEL_KIND,
        "format": MODEL_FORMAT,
        "model": asdict(settings.model),
        "end": shards.end,
        "shards": shards.identity,
        "steps": settings.train.steps,
    }
    replace_file(folder / ABOUT, json.dumps(about, indent=1).encode())
    save_checkpoint(folder, network)


def _is_whole(folder: Path) -> bool:
    return has_checkpoint(folder) and (folder / ABOUT).exists() and (folder / TOKENIZER).exists()


def load_model(settings: Settings) -> Trained:
    """The model in the folder `out` of a run, in its `model`, or in a copy of that alone.

    Raises:
        ValueError: if there is none, or it is damaged; or if its tokenizer, which runs of earlier versions
            have with their shards alone, cannot be read.
    """
    out = Path(settings.out)
    folder = out if _is_whole(out) else out / MODEL
    if not has_checkpoint(folder):
        raise ValueError(f"there is no trained model in {out}: the step `train` comes before this one")
    if _is_whole(folder):
        about = _about(folder)
        model, end, identity = ModelSettings(**about["model"]), about["end"], about["shards"]
        tokenizer = load_tokenizer(folder / TOKENIZER)
    else:
        try:
            shards = _shards(settings)
        except ValueError as error:
            raise ValueError(
                f"{folder} is of an earlier version, or not whole: its tokenizer is with the shards alone "
                f"(--data.shards says where they are), and {error}"
            ) from error
        model, end, identity = _settings_of(out).model, shards.end, shards.identity
        tokenizer = shards.tokenizer
    network = build(model, tokenizer.vocab_size)
    load_checkpoint(folder, network)
    network = network.to(device_for(settings.device)).eval()
    return Trained(network, tokenizer, end, model, identity)


def _about(folder: Path) -> dict[str, Any]:
    path = folder / ABOUT
    try:
        about = parse_json(path.read_bytes())
        if about["kind"] != MODEL_KIND or about["format"] != MODEL_FORMAT:
            raise ValueError(f"its kind is {about['kind']!r}, of format {about['format']!r}")
        whole("end", about["end"], 0)
        ModelSettings(**about["model"])
        str(about["shards"])
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{path} does not describe a model: {error}") from error
    return about


def trained(settings: Settings) -> tuple[GPT, Shards]:
    """The model of a run, with its tokens, which are compared with their checksums.

    Raises:
        ValueError: if it is not trained, or was on other tokens, or these are damaged.
    """
    found, shards = load_model(settings), _shards(settings)
    if shards.identity != found.shards:
        raise ValueError(
            f"the model in {settings.out} was trained on other tokens than those in {shards.folder}"
        )
    return found.network, shards


def _shards(settings: Settings) -> Shards:
    """The tokens of a run, whole: those that are named, or else those that it was trained on."""
    out = Path(settings.out)
    then = _settings_of(out) if (out / SETTINGS).exists() else settings
    shards = Shards(
        shards_folder(replace(settings, data=settings.data if settings.data.shards else then.data))
    )
    if (out / SETTINGS).exists() and shards.identity != _note(out)["shards"]:
        raise ValueError(f"the model in {out} was trained on other tokens than those in {shards.folder}")
    return shards


@by_first
def evaluate(settings: Settings, required: bool = True) -> None:
    """What the held-out documents cost, into a file and onto stderr."""
    network, shards = trained(settings)
    if not shards.tokens("held_out"):
        if not required:
            say("nothing was held out, so there is no score")
            return
        raise ValueError(
            "nothing was held out: there is no text to evaluate on. A new --out with a larger "
            "--data.held_out has one"
        )
    context = load_model(settings).settings.context
    options = settings.evaluate
    found = score(network, shards, context, tokens=options.tokens, batch=options.batch)
    replace_file(Path(settings.out) / SCORE, json.dumps(asdict(found), indent=1).encode())
    say(
        f"held out: {found.nats:.4f} nats a token, {found.bits:.4f} bits a character "
        f"(token counts: {found.counts_bits:.4f})"
    )


@by_first
def sample(settings: Settings) -> list[str]:
    """What the model writes after each prompt, into a file and onto stdout."""
    found = load_model(settings)
    options, texts = settings.sample, []
    device = next(found.network.parameters()).device
    for number, prompt in enumerate(options.prompts):
        try:
            ids = [found.end, *found.tokenizer.encode(prompt)]
        except ValueError as error:
            raise ValueError(f"the prompt {prompt!r}: {error}") from error
        written = generate(
            found.network,
            ids,
            options.tokens,
            temperature=options.temperature,
            top_p=options.top_p,
            generator=torch.Generator(device).manual_seed(options.seed + number),
            stop=found.end,
            context=found.settings.context,
        )
        texts.append(found.tokenizer.decode(i for i in torch.tensor(written).tolist() if i != found.end))
    for text in texts:  # before anything is written, which may fail
        print(shown(text, sys.stdout.encoding), flush=True)
    out = Path(settings.out)
    if not (out / SETTINGS).exists():
        return texts  # a model alone is no run, and is left as it is
    try:
        replace_file(out / SAMPLES, json.dumps(texts, indent=1).encode())
    except OSError as error:
        if error.errno not in NOT_ALLOWED:
            raise
        say(f"{out / SAMPLES} does not have this text: {error.strerror}")
    return texts


@by_first
def report(settings: Settings, required: bool = True) -> None:
    """Write the card of the run."""
    out = Path(settings.out)
    if not required and not (out / SETTINGS).exists():
        return
    network = load_model(settings).network
    data = _note(out).get("data") or data_of(_shards(settings))  # older runs did not note it
    then = _settings_of(out)
    lengthened = _lengthened(out, then.train.steps)
    settings = replace(then, data=settings.data, evaluate=settings.evaluate, sample=settings.sample)
    found = Score(**parse_json((out / SCORE).read_bytes())) if (out / SCORE).exists() else None
    texts = parse_json((out / SAMPLES).read_bytes()) if (out / SAMPLES).exists() else []
    try:
        write_card(out / CARD, settings, data, count_parameters(network), found, texts, lengthened)
        say(f"the card is {out / CARD}")
    except OSError as error:
        if required or error.errno not in NOT_ALLOWED:
            raise
        say(f"{out / CARD} stays as it is: {error.strerror}")
