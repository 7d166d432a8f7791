"""Along which path does the half of the day reach the hour that a translator writes? Three seeds.

Chapter 9's translator, trained as on its page (650 steps of 500 tokens, CLDR's phrases from English into
German). Held-out times of the hours 7 to 11, which training has with PM and with AM, are written once with
each; then the token PM or AM is hidden from the decoder's cross-attention, from the hour inside the encoder,
from both, or from every other token. Kept are the shares of hours that are right under teacher forcing, the
same for the hours 1 to 6 with PM, which training never has with AM, and how much attention each of the
decoder's blocks gives to the half of the day, where it writes the hour.

`python hour_paths.py` runs what has not been run yet and records it. About two
minutes of one core.
"""

import re
from collections.abc import Container
from functools import partial
from typing import Any

import torch

from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_book.translation.data.translation import TranslationSet, translation_set
from tformer_lib import record_attention
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.data.pairs import Pair
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.training import fit, seed_everything

RUNS = Runs("hour_paths")
SEEDS, STEPS, TOKENS = [0, 1, 2], 650, 500
CONFIG = TransformerConfig(d_model=96, n_heads=4, n_blocks=2, activation="relu")
PATHS = {  # what may not read the half of the day: the decoder, the hour in the encoder, anybody
    "nothing hidden": (False, False, False),
    "decoder may not read PM": (True, False, False),
    "hour may not read PM": (False, True, False),
    "neither may": (True, True, False),
    "nobody may": (True, True, True),
}


def both_halves(data: TranslationSet, hours: Container[int]) -> dict[str, list[Pair]]:
    """Held-out times of these hours, each written with PM and with AM."""
    pairs: dict[str, list[Pair]] = {"PM": [], "AM": []}
    for english, german in data.validation + data.test:
        time = re.search(r"(\d+):\d\d [AP]M", english)
        if time and int(time[1]) in hours and german.count(":") == 1:
            for half, later in (("PM", 12), ("AM", 0)):
                hour = f"{int(time[1]) + later:02}:"
                pairs[half].append((re.sub("[AP]M", half, english, count=1), re.sub(r"\d\d:", hour, german)))
    return pairs


def hour_places(data: TranslationSet, texts: list[str]) -> torch.Tensor:
    """Where the hour stands in each text: the token before the colon."""
    decode, encode = data.tokenizer.decode, data.tokenizer.encode
    return torch.tensor([[decode([i]) for i in encode(text)].index(":") - 1 for text in texts])


@torch.no_grad()
def right(
    model: Translator, data: TranslationSet, pairs: list[Pair], hidden: tuple[bool, bool, bool]
) -> float:
    """The share of hours that are right if `hidden` (of `PATHS`) may not read the half of the day."""
    source, target = data.encode(pairs)
    here, there = (hour_places(data, list(side)) for side in zip(*pairs, strict=True))
    row, half = torch.arange(len(pairs)), here + 3  # hour, colon, minutes, half
    real = (source != data.pad_id)[:, None, None, :]
    read, inside = real.clone(), real.expand(-1, -1, source.shape[1], -1).clone()
    if hidden[0]:
        read[row, :, :, half] = False
    if hidden[1]:
        inside[row, :, here, half] = False
    if hidden[2]:
        inside[row, :, :, half] = False
        inside[row, :, half, half] = True
    memory = model.encoder(model.positions(model.scale * model.embed(source)), mask=inside)
    hours = model.decode(target[:, :-1], memory, read).argmax(dim=-1)[row, there]
    return (hours == target[row, there + 1]).float().mean().item()


@torch.no_grad()
def looked(model: Translator, data: TranslationSet, pairs: list[Pair]) -> list[float]:
    """The attention to the half of the day where the hour is written: each block, mean of heads and pairs."""
    plain = Translator(CONFIG, data.vocab_size).eval()
    plain.load_state_dict(model.state_dict())
    source, target = data.encode(pairs)
    here, there = (hour_places(data, list(side)) for side in zip(*pairs, strict=True))
    with record_attention(plain) as weights:
        plain(source, target[:, :-1])
    maps = [weights[f"decoder.blocks.{block}.cross_attention"] for block in range(CONFIG.n_blocks)]
    return [A[torch.arange(len(pairs)), :, there, here + 3].mean().item() for A in maps]


def run(data: TranslationSet, seed: int) -> dict[str, Any]:
    """Train, and cut each path."""
    seed_everything(seed)
    model = Translator(CONFIG, data.vocab_size, make_backend=FusedAttend)
    batches = data.batches(STEPS, tokens=TOKENS, seed=seed)
    fit(model, translator_loss, batches, steps=STEPS, lr=1e-2, warmup=65, optimizer="muon")
    late, early = both_halves(data, range(7, 12)), both_halves(data, range(1, 7))
    kinds = {"late PM": late["PM"], "late AM": late["AM"], "early PM": early["PM"]}
    found = {
        name: {kind: right(model, data, pairs, hidden) for kind, pairs in kinds.items()}
        for name, hidden in PATHS.items()
    }
    looks = {half: looked(model, data, pairs) for half, pairs in late.items()}
    return {"right": found, "looked": looks, "late": len(late["PM"])}


def main() -> None:
    """Run what is missing and record."""
    torch.set_num_threads(1)
    data = translation_set("phrases", "de")
    runs = [RUNS.keep(seed, make=partial(run, data, seed)) for seed in SEEDS]
    print(record("hour_paths", {"runs": rounded(runs)}, seeds=SEEDS, cpu_seconds=sum(RUNS.seconds.values())))


if __name__ == "__main__":
    main()
