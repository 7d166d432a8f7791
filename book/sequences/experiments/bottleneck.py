"""Exact matches against length for three encoder-decoders that reverse random symbols, three seeds each.

"final state": the decoder reads one vector. "final state, twice as wide": the same with a vector of twice
the width, and so about three times the parameters. "attention": additive attention, with as many parameters
as the first. Same batches, steps and schedule for all. Chapters 1 and 2 draw the record and train for
fewer steps on sequences of up to ten symbols.
"""

import torch

from tformer_book.kit.data.toy import reversal, reversal_batches
from tformer_book.kit.records import record
from tformer_lib.models.recurrent import (
    AdditiveAttention,
    EncoderDecoder,
    FinalState,
    encoder_decoder_loss,
    exact_match,
)
from tformer_lib.training import count_parameters, fit, seed_everything, width_for_budget

VOCAB, SYMBOLS, LONGEST, STEPS, SEEDS = 15, 12, 20, 1200, [0, 1, 2]
LENGTHS = list(range(2, 25, 2))


def attending(width: int) -> EncoderDecoder:
    """An encoder-decoder that looks back at every state."""
    context = AdditiveAttention(d_query=width, d_key=2 * width, d_hidden=width)
    return EncoderDecoder(VOCAB, VOCAB, d_embed=32, d_hidden=width, context=context)


def squeezing(width: int) -> EncoderDecoder:
    """An encoder-decoder that hands over one vector."""
    return EncoderDecoder(VOCAB, VOCAB, d_embed=32, d_hidden=width, context=FinalState())


def accuracy(model: EncoderDecoder, seed: int) -> list[float]:
    """Train on lengths 1 to LONGEST, then the share of exact matches at each of LENGTHS."""
    batches = reversal_batches(STEPS, 32, (1, LONGEST), n_symbols=SYMBOLS, seed=seed)
    fit(model, encoder_decoder_loss, batches, lr=4e-3, warmup=100)
    new = torch.Generator().manual_seed(1000 + seed)
    tests = [reversal(200, length, SYMBOLS, new) for length in LENGTHS]
    return [float(exact_match(model, *pairs).float().mean()) for pairs in tests]


def main() -> None:
    """Train all models and write the record."""
    narrow = width_for_budget(squeezing, count_parameters(attending(48)))
    models = {
        "final state": (squeezing, narrow),
        "final state, twice as wide": (squeezing, 2 * narrow),
        "attention": (attending, 48),
    }
    exact, parameters = {}, {}
    for name, (build, width) in models.items():
        exact[name] = []
        for seed in SEEDS:
            seed_everything(seed)
            model = build(width)
            parameters[name] = count_parameters(model)
            exact[name].append(accuracy(model, seed))
            print(name, width, parameters[name], seed, exact[name][-1], flush=True)
    results = {"lengths": LENGTHS, "trained_to": LONGEST, "parameters": parameters, "exact": exact}
    print(record("bottleneck", results, seeds=SEEDS))


if __name__ == "__main__":
    main()
