"""The steps of a run: cut the texts into tokens, train, evaluate, write."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.shard_writing import draw_held_out, make_tokenizer, write_shards
from tformer_lib.data.shards import INDEX, ShardBatches, Shards
from tformer_lib.data.text_folder import TextFolder
from tformer_lib.files import parse_json, replace_file
from tformer_lib.generation import generate
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import quiet_initialisation
from tformer_lib.models.language import language_loss
from tformer_lib.numbers import whole
from tformer_lib.scale.distributed_fit import fit_distributed, whole_state
from tformer_lib.train.card import write_card
from tformer_lib.train.group import alone_in, device_for, first, processes, rank
from tformer_lib.train.log import Log
from tformer_lib.train.scoring import Score, reading, score
from tformer_lib.train.settings import ModelSettings, Settings
from tformer_lib.training import count_parameters, load_checkpoint, save_checkpoint, seed_everything
from tformer_lib.training.checkpoints import has_checkpoint
from tformer_lib.training.plan import Plan

SETTINGS, TOKENS, MODEL = "settings.json", "tokens.json", "model"
SCORE, SAMPLES, CARD = "held_out.json", "samples.json", "card.md"


def check(settings: Settings) -> None:
    """Find what is wrong with the numbers before the texts are read.

    Raises:
        ValueError: if one is out of bounds, or does not go with another.
        TypeError: if one is none.
    """
    options = settings.train
    build(settings.model, 2)
    device_for(settings.device)
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


def tokenise(settings: Settings) -> None:
    """Write the texts as shards, unless they are there."""
    first(lambda: _tokenise(settings))


def train(settings: Settings) -> None:
    """Train on the shards, from the last checkpoint on if there is one; nobody else does so meanwhile."""
    first(lambda: _claim(settings))
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
        on_step=log,
    )
    log.close(history)
    state = whole_state(network)
    first(lambda: _keep(settings, state, shards.vocab_size))


def evaluate(settings: Settings) -> None:
    """What the held-out documents cost, into a file and onto stderr."""
    first(lambda: _evaluate(settings))


def sample(settings: Settings) -> list[str]:
    """What the model writes after each prompt, into a file and onto stdout."""
    return first(lambda: _sample(settings)) or []


def report(settings: Settings) -> None:
    """Write the card of the run."""
    first(lambda: _report(settings))


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
        config,
        vocab_size,
        rotary=rotary,
        make_backend=lambda: FusedAttend(model.dropout),
        tied=model.tied,
    )
    quiet_initialisation(network)
    return network


def shards_folder(settings: Settings) -> Path:
    """Where the tokens of a run are."""
    return Path(settings.out) / "shards" if settings.data.shards is None else Path(settings.data.shards)


def say(text: str) -> None:
    """A line on stderr, by the first process."""
    if rank() == 0:
        print(text, file=sys.stderr, flush=True)


def _plan(settings: Settings) -> dict[str, Any]:
    """What `fit` is told too."""
    names = ("steps", "lr", "weight_decay", "warmup", "clip", "optimizer", "momentum", "min_lr_ratio")
    options = settings.train
    return {name: getattr(options, name) for name in names} | {"betas": (options.beta1, options.beta2)}


def _tokenise(settings: Settings) -> None:
    folder, data = shards_folder(settings), settings.data
    if data.folder is None:
        if (folder / INDEX).exists():
            return
        raise ValueError("there is no text: say which folder of texts to read, by --data.folder")
    texts = TextFolder(data.folder, pattern=data.pattern, encoding=data.encoding, separator=data.separator)
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
    out = draw_held_out([name for name, _ in texts], data.held_out, data.seed)
    # characters of held-out texts need a number; merges are learnt without them
    kept = (text for i, text in enumerate(texts) if i not in out or settings.tokenizer.kind == "char")
    tokenizer, end = make_tokenizer(
        kept, settings.tokenizer.kind, settings.tokenizer.vocab_size, most=settings.tokenizer.most
    )
    shards = write_shards(
        texts,
        folder,
        tokenizer,
        end,
        held_out=data.held_out,
        seed=data.seed,
        shard_tokens=data.shard_tokens,
        notes=notes,
    )
    parts = (
        f"{shards.tokens(split):,} tokens {name}"
        for split, name in (("train", "to train on"), ("held_out", "held out"))
    )
    say(f"wrote {folder}: {', '.join(parts)}, a vocabulary of {shards.vocab_size:,}")


def _claim(settings: Settings) -> None:
    """Check the shards, and that the run in this folder, if there is one, is this run; note its settings."""
    shards = Shards(shards_folder(settings))
    if settings.evaluate.every is not None and not shards.tokens("held_out"):
        raise ValueError("nothing was held out that could be read on the way: leave evaluate.every out")
    out = Path(settings.out)
    mine = settings.identity() | {"shards": shards.identity}
    if (out / SETTINGS).exists():
        then = _settings_of(out)
        theirs = then.identity() | {"shards": _note(out)["shards"]}
        wrong = [
            "other tokens" if k == "shards" else f"{k} was {theirs[k]!r} and is {mine[k]!r}"
            for k in mine
            if mine[k] != theirs[k]
        ]
        if wrong:
            raise ValueError(
                f"{out} holds a run of other settings: {'; '.join(wrong)}. "
                f"Take another --out, or go on with --config {out / SETTINGS}"
            )
    out.mkdir(parents=True, exist_ok=True)
    ShardBatches(shards, batch=settings.train.batch, length=settings.model.context).shard(0, processes())
    replace_file(out / TOKENS, json.dumps({"shards": shards.identity}).encode())
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


def _keep(settings: Settings, state: dict[str, Tensor], vocab_size: int) -> None:
    """The trained model, in a file of its own."""
    network = build(settings.model, vocab_size)
    network.load_state_dict({name: value.cpu() for name, value in state.items()})
    save_checkpoint(Path(settings.out) / MODEL, network)


def trained(settings: Settings) -> tuple[GPT, Shards]:
    """The model of a run, with its tokens.

    Raises:
        ValueError: if it is not trained, or was on other tokens.
    """
    out = Path(settings.out)
    if not has_checkpoint(out / MODEL):
        raise ValueError(f"there is no trained model in {out}: the step `train` comes before this one")
    then = _settings_of(out)
    model = then.model
    shards = Shards(
        shards_folder(replace(settings, data=settings.data if settings.data.shards else then.data)),
        verify=False,
    )
    if shards.identity != _note(out)["shards"]:
        raise ValueError(f"the model in {out} was trained on other tokens than those in {shards.folder}")
    network = build(model, shards.vocab_size)
    load_checkpoint(out / MODEL, network)
    return network.to(device_for(settings.device)).eval(), shards


def _evaluate(settings: Settings) -> None:
    network, shards = trained(settings)
    context = _settings_of(Path(settings.out)).model.context
    options = settings.evaluate
    found = score(network, shards, context, tokens=options.tokens, batch=options.batch)
    replace_file(Path(settings.out) / SCORE, json.dumps(asdict(found), indent=1).encode())
    say(
        f"held out: {found.nats:.4f} nats a token, {found.bits:.4f} bits a character "
        f"(token counts: {found.counts_bits:.4f})"
    )


def _sample(settings: Settings) -> list[str]:
    network, shards = trained(settings)
    context = _settings_of(Path(settings.out)).model.context
    options, texts = settings.sample, []
    device = next(network.parameters()).device
    for number, prompt in enumerate(options.prompts):
        try:
            ids = [shards.end, *shards.tokenizer.encode(prompt)]
        except ValueError as error:
            raise ValueError(f"the prompt {prompt!r}: {error}") from error
        written = generate(
            network,
            ids,
            options.tokens,
            temperature=options.temperature,
            top_p=options.top_p,
            generator=torch.Generator(device).manual_seed(options.seed + number),
            stop=shards.end,
            context=context,
        )
        texts.append(shards.tokenizer.decode(i for i in torch.tensor(written).tolist() if i != shards.end))
    replace_file(Path(settings.out) / SAMPLES, json.dumps(texts, indent=1).encode())
    for text in texts:
        print(text, flush=True)
    return texts


def _report(settings: Settings) -> None:
    out = Path(settings.out)
    network, shards = trained(settings)
    settings = replace(
        _settings_of(out), data=settings.data, evaluate=settings.evaluate, sample=settings.sample
    )
    found = Score(**parse_json((out / SCORE).read_bytes())) if (out / SCORE).exists() else None
    texts = parse_json((out / SAMPLES).read_bytes()) if (out / SAMPLES).exists() else []
    write_card(out / CARD, settings, shards, count_parameters(network), found, texts)
    say(f"the card is {out / CARD}")
