"""Bits per character on held-out Shakespeare when the two networks of Chapter 1 train for 5,000 steps.

All models see the first million characters of the training part and are measured on the first 100,000 of the
validation part, as on the page: n-grams with Kneser-Ney smoothing of orders 0 to 8, a wider MLP that
sees ten characters, and a wider GRU. About three minutes on one core.
"""

import math

import torch

from tformer_book.kit.data.text import shakespeare
from tformer_book.kit.models.ngram import NGram
from tformer_book.kit.records import record
from tformer_lib.data.windows import RandomWindows
from tformer_lib.measures.language import bits_per_character
from tformer_lib.models.language import GRULanguageModel, MLPLanguageModel, language_loss
from tformer_lib.tokenizers import CharTokenizer
from tformer_lib.training import count_parameters, fit, seed_everything

STEPS, SEED = 5000, 0


def main() -> None:
    """Count, train, and write the record."""
    tokenizer = CharTokenizer.from_text(shakespeare("train") + shakespeare("validation"))
    vocab = tokenizer.vocab_size
    train = torch.tensor(tokenizer.encode(shakespeare("train")[:1_000_000]))
    held_out = torch.tensor(tokenizer.encode(shakespeare("validation")[:100_000]))
    ngrams, entries = [], []
    for order in range(9):
        model = NGram(order, vocab).fit(train)
        ngrams.append(model.nll(held_out) / math.log(2))
        entries.append(sum(len(table.keys) for table in model.tables))
        print(order, ngrams[-1], entries[-1], flush=True)
    networks = {
        "GRU": (GRULanguageModel(vocab, 32, 192), 16, 4e-3),
        "MLP": (MLPLanguageModel(vocab, 10, 24, 320), 32, 3e-3),
    }
    bits, parameters = {}, {}
    for name, (network, batch, lr) in networks.items():
        seed_everything(SEED)
        for module in network.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        parameters[name] = count_parameters(network)
        windows = RandomWindows(train, batch=batch, length=64, steps=STEPS, seed=SEED)
        fit(network, language_loss, windows, lr=lr)
        bits[name] = bits_per_character(network, held_out, 64)
        print(name, parameters[name], bits[name], flush=True)
    results = {
        "ngram": ngrams,
        "ngram_entries": entries,
        "networks": bits,
        "parameters": parameters,
        "steps": STEPS,
    }
    print(record("ladder", results, seeds=[SEED]))


if __name__ == "__main__":
    main()
