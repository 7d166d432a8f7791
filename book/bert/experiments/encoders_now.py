"""Three encoders of today from Chapter 7's laboratory, longer than its page trains them, three seeds each.

`modern`: BERT's plan, ModernBERT's, BERT's with one of the changes, and ModernBERT's without one of them
(rotary positions instead of a table, norms in front, a gated MLP of as many parameters, no biases, a local
layer), all with two blocks of width 64, from random weights, 100 steps on commands with holes. Each plan has
the best of three learning rates, chosen by holes that are not the exam's. Which change makes the difference?

`search`: the page's encoder that has read commands, 120 steps of the contrastive loss, and then a
cross-encoder, 100 and 400 steps, that puts the bi-encoder's first ten in order. Share of held-out commands
whose first place has their intent.

`writing`: the page's encoder that has read commands, 120 and 480 steps of masked diffusion. Share of
neighbouring pairs in 300 texts of eight tokens that ever occur in the commands, filled in 1, 2, 4, 8 passes;
beside them the same encoder without these steps, and pairs drawn from the unigram of the commands.

Fourteen minutes of one core.
"""

import copy
import random
import time
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, normalize

from tformer_book.bert.data.intents import Utterance, few_per_intent
from tformer_book.bert.experiments.bert_page import CONFIG, Page
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib import padding_mask
from tformer_lib.core.attention import FusedAttend, MultiHeadAttention
from tformer_lib.core.positions import Rotary
from tformer_lib.data.labelled import LabelledBatches, encode_sentences
from tformer_lib.data.sentence_pairs import pack
from tformer_lib.measures.masked import masked_scores
from tformer_lib.models.bert import PretrainingBERT, pretraining_loss
from tformer_lib.models.classifiers import SequenceClassifier
from tformer_lib.training import fit, seed_everything

SEEDS = [0, 1, 2]
RATES = (4e-3, 8e-3, 1.6e-2)
CHANGES = ("rotary", "norms in front", "gate", "no biases", "local")
PLANS = {"BERT": (), **{f"with {change}": (change,) for change in CHANGES}, "modern": CHANGES}
PLANS |= {f"without {change}": tuple(c for c in CHANGES if c != change) for change in CHANGES}
WINDOW = 8


class PlanBlock(nn.Module):
    """A block of BERT's plan with some of the changes."""

    def __init__(self, changes: tuple[str, ...], number: int):
        super().__init__()
        D, H, F = CONFIG.d_model, CONFIG.n_heads, 4 * CONFIG.d_model
        bias, self.first = "no biases" not in changes, "norms in front" in changes
        self.gated = "gate" in changes
        self.window = WINDOW if "local" in changes and number % 3 else None
        base = 10_000 if self.window else 160_000
        rotary = Rotary(D // H, base) if "rotary" in changes else None
        self.attention = MultiHeadAttention(D, H, bias=bias, rotary=rotary, backend=FusedAttend())
        hidden = 2 * F // 3 if self.gated else F  # three matrices of two thirds, or two
        self.W_in = nn.Linear(D, hidden * (1 + self.gated), bias=bias)
        self.W_out = nn.Linear(hidden, D, bias=bias)
        self.norm_1, self.norm_2 = (nn.LayerNorm(D, bias=bias) for _ in range(2))
        for linear in (self.W_in, self.W_out):
            nn.init.xavier_uniform_(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)

    def mlp(self, x: Tensor) -> Tensor:
        hidden = self.W_in(x)
        if self.gated:
            value, gate = hidden.chunk(2, dim=-1)
            return self.W_out(gelu(value) * gate)
        return self.W_out(gelu(hidden))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if self.window:
            n = torch.arange(x.shape[1])
            near = (n[:, None] - n).abs() <= self.window // 2
            mask = near if mask is None else near & mask
        if self.first:
            x = x + self.attention(self.norm_1(x), mask=mask)
            return x + self.mlp(self.norm_2(x))
        x = self.norm_1(x + self.attention(x, mask=mask))
        return self.norm_2(x + self.mlp(x))


class PlanEncoder(nn.Module):
    """Two blocks behind an embedding, with a table of positions unless they are rotary."""

    def __init__(self, changes: tuple[str, ...], vocab: int):
        super().__init__()
        D, bias = CONFIG.d_model, "no biases" not in changes
        self.config, self.embed = CONFIG, nn.Embedding(vocab, D)
        self.place = None if "rotary" in changes else nn.Embedding(24, D)
        self.norm = nn.LayerNorm(D, bias=bias)
        self.blocks = nn.ModuleList(PlanBlock(changes, m) for m in range(CONFIG.n_blocks))
        self.last = nn.LayerNorm(D, bias=bias) if "norms in front" in changes else nn.Identity()
        nn.init.normal_(self.embed.weight, std=0.05)
        if self.place is not None:
            nn.init.normal_(self.place.weight, std=0.02)

    def forward(self, tokens: Tensor, segments: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        x = self.embed(tokens)
        if self.place is not None:
            x = x + self.place.weight[: tokens.shape[1]]
        x = self.norm(x)
        for block in self.blocks:
            x = block(x, mask)
        return self.last(x)


def plan(page: Page, name: str, seed: int) -> dict[str, Any]:
    """Loss at held-out holes of commands after 100 steps, at the best of three rates."""
    chosen, exam = page.exam(seed=2), page.exam(seed=1)
    found: dict[str, Any] = {"rates": {}}
    best = float("inf")
    for lr in RATES:
        seed_everything(seed)
        model = page.with_heads(PlanEncoder(PLANS[name], page.vocab), next_sentence=False)
        batches = page.holes(page.train, 100, seed)
        fit(model, pretraining_loss, batches, steps=100, lr=lr, warmup=40, progress=False)
        found["rates"][str(lr)] = masked_scores(model, chosen)[0]
        if found["rates"][str(lr)] < best:
            best = found["rates"][str(lr)]
            found |= {"loss": masked_scores(model, exam)[0], "rate": lr}
    found["parameters"] = sum(p.numel() for p in model.bert.parameters())
    return found


def vectors(page: Page, encoder: nn.Module, commands: list[Utterance]) -> Tensor:
    """(B, D): the mean of the outputs, of length 1."""
    tokens, mask, _ = encode_sentences([u.words for u in commands], page.tokenizer, length=12)
    h = encoder(tokens, None, mask)
    return normalize((h * mask[:, 0, 0, :, None]).sum(dim=1), dim=-1)


def search(page: Page, reader: PretrainingBERT, seed: int) -> dict[str, float]:
    """Shares of held-out commands whose first place has their intent."""
    few, asked = few_per_intent(page.train, 5, seed=seed), page.test[::6]
    wanted = [u.intent for u in asked]
    groups = [[u for u in page.train if u.intent == name] for name in page.names]
    groups = [group for group in groups if len(group) > 1]
    chance = random.Random(seed)

    def pairs(steps: int) -> Any:
        for _ in range(steps):
            yield tuple(zip(*(chance.sample(group, 2) for group in groups), strict=True))

    def contrastive_loss(encoder: nn.Module, batch: Any) -> Tensor:
        left, right = (vectors(page, encoder, side) for side in batch)
        return cross_entropy(left @ right.T / 0.05, torch.arange(len(left)))

    @torch.no_grad()
    def nearest(encoder: nn.Module, k: int) -> Tensor:
        return (vectors(page, encoder, asked) @ vectors(page, encoder, few).T).topk(k).indices

    def right(best: Tensor) -> float:
        return sum(few[i].intent == w for i, w in zip(best.tolist(), wanted, strict=True)) / len(wanted)

    found = {"holes only": right(nearest(reader.bert, 1)[:, 0])}
    bi = copy.deepcopy(reader.bert)
    fit(bi, contrastive_loss, pairs(120), steps=120, lr=3e-3, warmup=15, progress=False)
    ten = nearest(bi, 10)
    found["pairs"] = right(ten[:, 0])
    lines = zip(wanted, ten.tolist(), strict=True)
    there = [intent in {few[i].intent for i in line} for intent, line in lines]
    found["among the ten"] = sum(there) / len(there)

    def joint(both: Any) -> tuple[Tensor, Tensor, Tensor]:
        cut = ((page.tokenizer.encode(" ".join(u.words))[:10] for u in pair) for pair in both)
        rows = (pack(*two, page.tokenizer, length=23) for two in cut)
        tokens, segments = map(torch.stack, zip(*rows, strict=True))
        return tokens, segments, padding_mask(tokens, 0)

    def pairs_or_not(steps: int) -> Any:
        for left, right_ in pairs(steps):
            with torch.no_grad():
                alike = vectors(page, bi, left) @ vectors(page, bi, right_).T
            wrong = alike.fill_diagonal_(-1).argmax(dim=1).tolist()
            both = [*zip(left, right_, strict=True)]
            both += [(u, right_[i]) for u, i in zip(left, wrong, strict=True)]
            yield (*joint(both), torch.tensor([1] * len(left) + [0] * len(left)))

    def pair_loss(model: nn.Module, batch: Any) -> Tensor:
        return cross_entropy(model(*batch[:3]), batch[3])

    for steps in (100, 400):
        seed_everything(seed)
        cross = SequenceClassifier(copy.deepcopy(reader.bert), classes=2)
        fit(cross, pair_loss, pairs_or_not(steps), steps=steps, lr=3e-3, warmup=15, progress=False)
        with torch.no_grad():
            scored = torch.stack(
                [
                    cross(*joint((query, few[i]) for i in line)).diff(dim=1)[:, 0]
                    for query, line in zip(asked, ten.tolist(), strict=True)
                ]
            )
        best = scored.argmax(dim=1, keepdim=True)
        found[f"in order, {steps} steps"] = right(ten.gather(1, best)[:, 0])
    return found


def writing(page: Page, reader: PretrainingBERT, seed: int) -> dict[str, Any]:
    """Shares of neighbouring pairs that occur in the commands, by passes."""
    special = torch.tensor(sorted(page.tokenizer.special_tokens.values()))
    ordinary = torch.tensor([i for i in range(page.vocab) if i not in special])
    ends = [page.tokenizer.special_tokens[name] for name in ("[CLS]", "[SEP]")]
    read = page.encoded(page.train)
    spoken = [[ends[0], *page.tokenizer.encode(" ".join(u.words)), ends[1]] for u in page.train]
    known = {pair for line in spoken for pair in pairwise(line)}
    often = torch.bincount(torch.tensor([i for line in spoken for i in line[1:-1]])).float()

    def diffusion_loss(model: nn.Module, batch: Any) -> Tensor:
        tokens, pad, _ = batch
        free = torch.isin(tokens, ordinary)
        t = torch.rand(len(tokens), 1).clamp(min=0.05)
        hidden = free & (torch.rand(tokens.shape) < t)
        logits, _ = model(tokens.masked_fill(hidden, page.hole), None, pad, hidden)
        nll = cross_entropy(logits, tokens[hidden], reduction="none")
        return ((1 / t).expand_as(hidden)[hidden] * nll).sum() / free.sum()

    def occur(lines: list[list[int]]) -> float:
        seen = [p in known for line in lines for p in pairwise([ends[0], *line, ends[1]])]
        return sum(seen) / len(seen)

    @torch.no_grad()
    def write(model: nn.Module, passes: int, texts: int = 300, length: int = 8) -> list[list[int]]:
        x = torch.full((texts, length + 2), page.hole)
        x[:, 0], x[:, -1] = ends
        order = torch.rand(texts, length).argsort(dim=1) + 1
        for places in order.chunk(passes, dim=1):
            logits, _ = model(x)
            logits[..., special] = -torch.inf
            drawn = torch.multinomial(logits.softmax(-1).flatten(0, 1), 1).view(x.shape)
            x.scatter_(1, places, drawn.gather(1, places))
        return x[:, 1:-1].tolist()

    def by_passes(model: nn.Module) -> dict[str, float]:
        return {str(passes): occur(write(model, passes)) for passes in (1, 2, 4, 8)}

    seed_everything(seed)
    found: dict[str, Any] = {"unigram": occur(torch.multinomial(often, 2400, True).view(300, 8).tolist())}
    found["no steps"] = by_passes(reader)
    for steps in (120, 480):
        seed_everything(seed)
        writer = copy.deepcopy(reader)
        nothing = torch.zeros(len(page.train), dtype=torch.long)
        batches = LabelledBatches(read.tokens, read.mask, nothing, batch=64, steps=steps, seed=seed)
        fit(writer, diffusion_loss, batches, steps=steps, lr=8e-3, warmup=40, progress=False)
        found[f"{steps} steps"] = by_passes(writer)
    return found


def main() -> None:
    """Run what has not been run yet, and write the record."""
    start = time.process_time()
    torch.set_num_threads(1)
    runs, page = Runs("encoders_now"), Page()
    readers: dict[int, PretrainingBERT] = {}

    def reader(seed: int) -> PretrainingBERT:
        if seed not in readers:
            readers[seed] = page.read_on(page.pretrained(seed, FusedAttend), seed)
        return readers[seed]

    results = {
        "modern": {
            name: [runs.keep("modern", name, seed, make=partial(plan, page, name, seed)) for seed in SEEDS]
            for name in PLANS
        },
        "search": [
            runs.keep("search", seed, make=lambda s=seed: search(page, reader(s), s)) for seed in SEEDS
        ],
        "writing": [
            runs.keep("writing", seed, make=lambda s=seed: writing(page, reader(s), s)) for seed in SEEDS
        ],
    }
    seconds = max(time.process_time() - start, sum(runs.seconds.values()))
    print(record("encoders_now", results, seeds=SEEDS, cpu_seconds=seconds))


if __name__ == "__main__":
    main()
