"""A GPT of letters while it learns: what it writes, how far back it reads, and how it may be sampled.

Four blocks 128 wide, rotary positions, 2,000 steps on all 34 plays, one seed: the block of the chapter, a
little wider than the model that its page trains. At six stages of its training are recorded: bits per
character of held-out text and of as much text of training, what it writes, and how well it copies a passage
that stands twice in its window. At the end:

- the cost of held-out characters when it may read the last 1, 2, 4, ..., 127 characters, separately for the
  first letters of words, for letters inside words and for all else, beside n-grams counted on the same plays,
  at the same places;
- the cost of each letter of the chapter's line, without and with the 83 letters before it in the play;
- texts written by temperature, top-k, top-p and min-p: the share of words that occur in the plays of
  training, and how many of 1,000 words are different ones, with two seeds each; and the same of held-out
  text, cut into pieces of the same length that begin where somebody begins to speak.

`python gpt_stages.py` runs what has not been run yet and records it. Six minutes of one core.
"""

import math
import re
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.models.ngram import NGram
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib import TransformerConfig
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.modes import evaluation
from tformer_lib.core.positions import Rotary
from tformer_lib.data.windows import RandomWindows
from tformer_lib.generation import generate
from tformer_lib.measures.language import bits_per_character
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

STEPS, BATCH, LENGTH = 2000, 8, 128
STAGES = (0, 30, 100, 300, 1000)  # and the end
REACHES = (1, 2, 4, 5, 8, 16, 32, 64, 127)  # how many letters are read
PLACES, ORDERS = 3000, (6, 8)
LINE, PROMPT = "The course of true love never did run smooth", "CLEOPATRA:\n"
RULES: dict[str, list[float]] = {
    "temperature": [0.5, 0.75, 1.0],
    "top_k": [2, 4, 8],
    "top_p": [0.6, 0.8, 0.95],
    "min_p": [0.3, 0.1, 0.03],
}
SEEDS = (0, 1)
TEXTS, LETTERS, CUTS = 32, 200, 6  # written for each setting and seed; how often held-out text is cut

TOKENIZER = CharTokenizer.from_text(shakespeare("train"))
TEXT, HELD_OUT = shakespeare("train"), shakespeare("validation")[:100_000]
IDS, NEW = (torch.tensor(TOKENIZER.encode(text)) for text in (TEXT, HELD_OUT))


def words_of(passage: str) -> list[str]:
    """Its words, in small letters."""
    return re.findall(r"[a-z']+", passage.lower())


def costs(model: GPT, rows: Tensor) -> Tensor:
    """Bits of the last token of each row."""
    found = []
    with torch.no_grad(), evaluation(model):
        for part in rows.split(250):
            log_p = model(part[:, :-1])[:, -1].log_softmax(dim=-1)
            found.append(-log_p.gather(1, part[:, -1:])[:, 0] / math.log(2))
    return torch.cat(found)


@torch.no_grad()
def copying(model: GPT) -> dict[str, float]:
    """Bits a letter of 60 letters, and of the same 60 again: held-out text, and letters at random."""
    g = torch.Generator().manual_seed(0)
    text = NEW[torch.randint(len(NEW) - 60, (200, 1), generator=g) + torch.arange(60)]
    noise = NEW[torch.randint(len(NEW), (200, 60), generator=g)]
    found = {}
    with evaluation(model):
        for name, rows in {"text": text, "random letters": noise}.items():
            twice = torch.cat([rows, rows], dim=1)
            log_p = model(twice[:, :-1]).log_softmax(dim=-1).gather(-1, twice[:, 1:, None])[..., 0]
            bits = -log_p / math.log(2)
            found[name] = bits[:, 10:59].mean().item()
            found[f"{name}, again"] = bits[:, 70:119].mean().item()
    return found


def written(model: GPT, length: int, rows: int, seed: int, **rule: Any) -> list[str]:
    """Texts that follow the prompt."""
    g = torch.Generator().manual_seed(seed)
    prompts = [TOKENIZER.encode(PROMPT)] * rows
    texts = generate(model, prompts, length, context=LENGTH, generator=g, **rule)
    return [TOKENIZER.decode(ids)[len(PROMPT) :] for ids in texts]


def bits_at_places(model: GPT) -> tuple[Tensor, dict[str, Tensor]]:
    """Held-out places, and what each letter costs there: by how many are read before it, and by n-grams."""
    places = torch.randint(128, len(NEW), (PLACES,), generator=torch.Generator().manual_seed(0))
    bits = {f"GPT, {n}": costs(model, NEW[places[:, None] + torch.arange(-n, 1)]) for n in REACHES}
    for order in ORDERS:
        table = NGram(order, TOKENIZER.vocab_size).fit(IDS)
        bits[f"{order}-gram"] = -table.log_probabilities(NEW)[places] / math.log(2)
    return places, bits


def kinds_of(places: Tensor) -> dict[str, Tensor]:
    """Which of these places are first letters of words, letters inside words, and all else."""
    letter = torch.tensor([HELD_OUT[i].isalpha() for i in places])
    first = letter & torch.tensor([not (HELD_OUT[i - 1].isalpha() or HELD_OUT[i - 1] == "'") for i in places])
    return {
        "all": torch.ones(len(places), dtype=torch.bool),
        "first letters": first,
        "inside words": letter & ~first,
        "no letters": ~letter,
        "others": ~first,
    }


def by_kind(places: Tensor, bits: dict[str, Tensor]) -> dict[str, Any]:
    """The mean cost of each kind of letter."""

    def error(name: str, chosen: Tensor) -> float:  # of a difference of means over the same places
        return ((bits["GPT, 127"] - bits[name])[chosen].std() / chosen.sum().sqrt()).item()

    return {
        kind: {"places": int(chosen.sum())}
        | {name: b[chosen].mean().item() for name, b in bits.items()}
        | {"errors": {name: error(name, chosen) for name in ("8-gram", "GPT, 5", "GPT, 8")}}
        for kind, chosen in kinds_of(places).items()
    }


def reach(model: GPT) -> dict[str, Any]:
    """Bits of held-out letters by how many letters are read before them, and by n-grams."""
    return by_kind(*bits_at_places(model))


def asked(model: GPT) -> dict[str, list[float]]:
    """Probabilities of the letters of the line."""
    at = HELD_OUT.index(LINE)
    before, n = NEW[at - 83 : at], len(LINE)
    line = NEW[at : at + n]
    found = {}
    with torch.no_grad(), evaluation(model):
        for name, past in {"alone": NEW[at - 1 : at], "in the play": before}.items():
            ids = torch.cat([past, line])
            p = model(ids[None, :-1])[0, -n:].softmax(dim=-1)
            found[f"GPT, {name}"] = p.gather(1, line[:, None])[:, 0].tolist()
    for order in ORDERS:
        table = NGram(order, TOKENIZER.vocab_size).fit(IDS)
        found[f"{order}-gram"] = table.log_probabilities(NEW[at - 83 : at + n])[-n:].exp().tolist()
    return found


def counted(texts: list[str], known: set[str]) -> dict[str, float]:
    """The share of known words, and the different ones among the first 1,000."""
    words = words_of(" ".join(texts))
    share = sum(word in known for word in words) / len(words)
    return {"known": share, "different": len(set(words[:1000])), "words": len(words)}


def sampling(model: GPT) -> dict[str, Any]:
    """Known and different words of what is written under each rule."""
    known, found = set(words_of(TEXT)), {}
    for rule, values in RULES.items():
        for value in values:
            setting: dict[str, Any] = {rule: int(value) if rule == "top_k" else value}
            texts = [written(model, LETTERS, TEXTS, seed, **setting) for seed in SEEDS]
            found[f"{rule} {value:g}"] = [counted(some, known) for some in texts]
    return found


def real(_: GPT) -> list[dict[str, float]]:
    """The same of held-out text: pieces as many and as long, each from the beginning of a speech."""
    known, found = set(words_of(TEXT)), []
    begins = [m.end() for m in re.finditer(r"[A-Z]+:\n", HELD_OUT) if m.end() + LETTERS < len(HELD_OUT)]
    for cut in range(CUTS):
        chosen = torch.randint(len(begins), (TEXTS,), generator=torch.Generator().manual_seed(cut))
        found.append(counted([HELD_OUT[begins[i] : begins[i] + LETTERS] for i in chosen], known))
    return found


def build() -> GPT:
    """The model before its training."""
    seed_everything(0)
    config = TransformerConfig(d_model=128, n_heads=4, n_blocks=4)
    return GPT(config, TOKENIZER.vocab_size, rotary=Rotary(32), make_backend=FusedAttend)


def train() -> dict[str, Any]:
    """The training, with a look at each stage; the model is kept beside the results."""
    model, stages, step = build(), {}, 0

    def look() -> None:
        stages[str(step)] = {
            "held_out": bits_per_character(model, NEW[:25_600], 64),
            "training": bits_per_character(model, IDS[:25_600], 64),
            "text": written(model, 240, 1, 0, temperature=0.8)[0],
            "copying": copying(model),
        }

    def loss(model: GPT, batch: Tensor) -> Tensor:
        nonlocal step
        if step in STAGES:
            look()
        step += 1
        return language_loss(model, batch)

    windows = RandomWindows(IDS, batch=BATCH, length=LENGTH, steps=STEPS)
    history = fit(model, loss, windows, lr=1e-2, optimizer="muon")
    look()
    torch.save(model.state_dict(), MODEL)
    return {
        "stages": stages,
        "loss": [sum(history.loss[i : i + 50]) / 50 / math.log(2) for i in range(0, STEPS, 50)],
        "bits": bits_per_character(model, NEW, 64),
        "parameters": count_parameters(model),
    }


RUNS = Runs("gpt_stages")
MODEL = RUNS.folder / "model.pt"

if __name__ == "__main__":
    RUNS.folder.mkdir(parents=True, exist_ok=True)
    results = RUNS.keep("training", make=train)
    model = build()
    model.load_state_dict(torch.load(MODEL, weights_only=True))
    for name, measure in {"line": asked, "reach": reach, "sampling": sampling, "real": real}.items():
        results[name] = RUNS.keep(name, make=partial(measure, model))
    print(record("gpt_stages", results, seeds=[0], cpu_seconds=sum(RUNS.seconds.values())))
