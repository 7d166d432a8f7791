"""What Chapter 1's recurrent networks learn when they get more steps than a page has time for.

"reversal": the encoder-decoder that hands over one vector, on sequences of 1 to 10 symbols, for 400, 4,000
and 20,000 steps, and beside it the same with additive attention for 400; exact matches by length. "recall":
four networks that give back each symbol from nine places before it, or the first of 41, after 200, 1,000 and
3,000 steps. Batches, rates and schedules are those of the page; three seeds. About 25 minutes on one core.
"""

from functools import partial

import torch
from torch import nn

from tformer_book.kit.data.toy import reversal, reversal_batches
from tformer_book.kit.records import record
from tformer_book.kit.runs import Runs
from tformer_lib.models.recurrent import (
    AdditiveAttention,
    EncoderDecoder,
    FinalState,
    encoder_decoder_loss,
    exact_match,
)
from tformer_lib.training import fit, seed_everything

SEEDS = [0, 1, 2]
LENGTHS = list(range(2, 13, 2))
REVERSAL = {"one vector": (400, 4_000, 20_000), "attention": (400,)}
RECALL_STEPS = (200, 1_000, 3_000)
TASKS = {"each, 9 back": (9, False), "the first, 40 back": (40, True)}


class Recurrent(nn.Module):
    """PyTorch's RNN or GRU between an embedding of four symbols and a guess."""

    def __init__(self, kind: type[nn.RNN] | type[nn.GRU], start: str = "usual"):
        super().__init__()
        self.embed, self.W_o = nn.Embedding(4, 16), nn.Linear(48, 4)
        self.rnn = kind(16, 48, batch_first=True)
        if start == "identity":  # W_h = I, small inputs, no biases: at first the state is kept
            self.rnn.weight_hh_l0.data = torch.eye(48)
            self.rnn.weight_ih_l0.data *= 0.1
            self.rnn.bias_ih_l0.data.zero_()
            self.rnn.bias_hh_l0.data.zero_()
        elif start == "open":  # the update gate's biases stand between those of r and of the candidate
            self.rnn.bias_ih_l0.data[48:96] = 3.0
            self.rnn.bias_hh_l0.data[48:96] = 0.0

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.W_o(self.rnn(self.embed(tokens))[0])


MODELS = {
    "RNN": lambda: Recurrent(nn.RNN),
    "RNN, starts from I": lambda: Recurrent(nn.RNN, "identity"),
    "GRU": lambda: Recurrent(nn.GRU),
    "GRU, gate starts open": lambda: Recurrent(nn.GRU, "open"),
}


def reversed_exactly(reader: str, steps: int, seed: int) -> list[float]:
    """The share of exact matches at each of LENGTHS."""
    seed_everything(seed)
    if reader == "attention":
        model = EncoderDecoder(15, 15, 32, 48, context=AdditiveAttention(48, 96, d_hidden=48))
    else:
        model = EncoderDecoder(15, 15, 32, 51, context=FinalState())
    batches = reversal_batches(steps, 32, (1, 10), n_symbols=12, seed=seed)
    fit(model, encoder_decoder_loss, batches, lr=4e-3, warmup=50)
    new = torch.Generator().manual_seed(1000 + seed)
    tests = [reversal(200, length, 12, new) for length in LENGTHS]
    return [float(exact_match(model, *pairs).float().mean()) for pairs in tests]


def recalled(name: str, task: str, steps: int, seed: int) -> float:
    """The share of symbols given back."""
    d, first_only = TASKS[task]
    seed_everything(seed)
    g = torch.Generator().manual_seed(seed)
    length = d + 1 if first_only else 32

    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(model(x)[:, d:].mT, x[:, : x.shape[1] - d])

    model = MODELS[name]()
    fit(model, loss, [torch.randint(4, (32, length), generator=g) for _ in range(steps)], lr=8e-3)
    x = torch.randint(4, (500, length), generator=g)
    with torch.no_grad():
        right = model(x)[:, d:].argmax(dim=-1) == x[:, : x.shape[1] - d]
    return float(right.float().mean())


def main() -> None:
    """Train what is not kept, and write the record."""
    torch.set_num_threads(1)
    runs = Runs("longer_training")

    def recalls(task: str, name: str, steps: int) -> list[float]:
        return [
            runs.keep("recall", task, name, steps, seed, make=partial(recalled, name, task, steps, seed))
            for seed in SEEDS
        ]

    def reversals(reader: str, steps: int) -> list[list[float]]:
        return [
            runs.keep("reversal", reader, steps, seed, make=partial(reversed_exactly, reader, steps, seed))
            for seed in SEEDS
        ]

    recall = {
        task: {name: {steps: recalls(task, name, steps) for steps in RECALL_STEPS} for name in MODELS}
        for task in TASKS
    }
    exact = {
        reader: {steps: reversals(reader, steps) for steps in all_steps}
        for reader, all_steps in REVERSAL.items()
    }
    results = {"lengths": LENGTHS, "reversal": exact, "recall": recall}
    print(record("longer_training", results, seeds=SEEDS, cpu_seconds=sum(runs.seconds.values())))


if __name__ == "__main__":
    main()
