"""How far is the mean of n random numbers from 0? Three seeds; a second of one core.

`python -m tformer_book.walking.experiments.walking_means` records it.
"""

import torch

from tformer_book.kit.records import record

SEEDS, SIZES = (0, 1, 2), (10, 1000)


def distance(n: int, seed: int) -> float:
    """The mean of n normal numbers, without its sign."""
    return torch.randn(n, generator=torch.Generator().manual_seed(seed)).mean().abs().item()


def main() -> None:
    """Runs and records it."""
    results = {str(n): [round(distance(n, seed), 4) for seed in SEEDS] for n in SIZES}
    print("recorded:", record("walking_means", results, seeds=list(SEEDS)))


if __name__ == "__main__":
    main()
