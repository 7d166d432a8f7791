"""Which rows of Chapter 2's alignment stay from run to run, and what *und* needs of its context.

The translator of number words is trained as on the page with eight seeds. "agree": for each of the three
steps that write "... ein und zwanzig", the share of numbers in which two runs attend most to the same word,
for each pair of runs. "written": for each run, the share of numbers in which *und* is written if its step
gets its own context, none, that of the same step for another number, or that of the number's own unit or
tens; "tens": of what is then written in place of *und*, the share that is the number's tens. About a minute
on one core.
"""

from functools import partial
from itertools import combinations

import torch
from torch import Tensor

from tformer_book.kit.data.number_words import NumberWords
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_lib.data import EOS
from tformer_lib.models.recurrent import AdditiveAttention, EncoderDecoder, encoder_decoder_loss
from tformer_lib.training import fit, seed_everything

SEEDS = list(range(8))
STEPS = ("unit", "und", "tens")
DATA = NumberWords(upper=10_000, n_held_out=9_000, seed=0)
SWAPPED = [n for n in DATA.held_out if n % 100 > 20 and n % 10]  # "ein und zwanzig"


def translator(seed: int) -> EncoderDecoder:
    """The page's translator with attention, trained for 300 steps."""
    seed_everything(seed)
    context = AdditiveAttention(48, 96, d_hidden=48)
    model = EncoderDecoder(len(DATA.english), len(DATA.german), 32, 48, context=context)
    fit(model, encoder_decoder_loss, DATA.batches(300, 64, seed=seed), steps=300, lr=4e-3, warmup=50)
    return model


@torch.no_grad()
def written_at(model: EncoderDecoder, step: Tensor, instead: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """What each number's `step` writes, given the true parts before it, and the context that it read."""
    source, target = DATA.encode(SWAPPED)
    row = torch.arange(len(source))
    u, memory = model.encode(source)
    parts, contexts = [], []
    for t, last in enumerate(target[:, :-1].unbind(dim=1)):
        context, _ = model.context(u, *memory)
        if instead is not None:
            context = torch.where((step == t)[:, None], instead, context)
        u = model.cell(torch.cat((model.embed(last), context), dim=-1), u)
        parts.append(model.W_o(torch.cat((u, context), dim=-1)).argmax(dim=-1))
        contexts.append(context)
    return torch.stack(parts, dim=1)[row, step], torch.stack(contexts, dim=1)[row, step]


def look(seed: int) -> dict:
    """The words that the three steps attend to, and what is written in place of *und*."""
    model = translator(seed)
    source, target = DATA.encode(SWAPPED)
    row, written = torch.arange(len(source)), (target > EOS).sum(dim=1)
    steps = {name: written - 3 + i for i, name in enumerate(STEPS)}
    with torch.no_grad():
        peaks = model(source, target[:, :-1])[1].argmax(dim=-1)
    contexts = {name: written_at(model, step)[1] for name, step in steps.items()}
    other = torch.randperm(len(source), generator=torch.Generator().manual_seed(0))
    und, tens = (target[row, steps[name] + 1] for name in ("und", "tens"))
    given = {
        "its own": contexts["und"],
        "none": torch.zeros_like(contexts["und"]),
        "another's": contexts["und"][other],
        "its own unit's": contexts["unit"],
        "its own tens'": contexts["tens"],
    }
    found = {name: written_at(model, steps["und"], instead)[0] for name, instead in given.items()}
    wrong = {name: parts != und for name, parts in found.items()}
    return {
        "peaks": {name: peaks[row, step].tolist() for name, step in steps.items()},
        "written": {name: 1 - float(each.float().mean()) for name, each in wrong.items()},
        "tens": {
            name: float((found[name] == tens)[each].float().mean()) if each.any() else None
            for name, each in wrong.items()
        },
    }


def main() -> None:
    """Train what is not kept, and write the record."""
    torch.set_num_threads(1)
    runs = Runs("alignment_rows")
    looks = [runs.keep(seed, make=partial(look, seed)) for seed in SEEDS]
    peaks = {name: [torch.tensor(each["peaks"][name]) for each in looks] for name in STEPS}
    results = {
        "agree": {
            name: [float((a == b).float().mean()) for a, b in combinations(each, 2)]
            for name, each in peaks.items()
        },
        "written": [each["written"] for each in looks],
        "tens": [each["tens"] for each in looks],
    }
    print(record("alignment_rows", rounded(results), seeds=SEEDS, cpu_seconds=sum(runs.seconds.values())))


if __name__ == "__main__":
    main()
