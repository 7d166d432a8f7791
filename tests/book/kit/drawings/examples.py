"""Every drawing once, with small numbers: the kit's own, and those of each chapter's `examples.py`."""

import importlib
from pathlib import Path

from tformer_book.kit.drawings import alignment as lines
from tformer_book.kit.drawings import layers


def floors(**changes):
    return layers.layers(**({"floors": ["book", "analysis | measures | pretrained", "models"]} | changes))


def alignment(**changes):
    arguments = {
        "read": ["four", "hundred", "and", "twenty", "one"],
        "written": ["vier", "hundert", "ein", "und", "zwanzig"],
        "weights": [
            [0.9, 0.05, 0.02, 0.01, 0.02],
            [0.1, 0.85, 0.02, 0.02, 0.01],
            [0.02, 0.02, 0.02, 0.04, 0.9],
            [0.4, 0.1, 0.3, 0.1, 0.1],
            [0.0, 0.0, 0.1, 0.88, 0.02],
        ],
        "chosen": [2, 4],
    }
    return lines.alignment(**(arguments | changes))


def long_alignment():
    words = [f"transformation{i}" for i in range(8)]
    rows = [[1 / 8] * 8] * 8
    return alignment(read=words, written=words, weights=rows, least=0.1, chosen=())


CHAPTERS = [file.parent.name for file in sorted(Path(__file__).parents[2].glob("*/examples.py"))]
MODULES = [importlib.import_module(f"tests.book.{chapter}.examples") for chapter in CHAPTERS]
EXAMPLES = (
    floors,
    alignment,
    long_alignment,
    *(example for module in MODULES for example in module.EXAMPLES),
)


def __getattr__(name):  # examples.soft_lookup, wherever it stands
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(name)
