"""Every drawing once, with small numbers: the kit's own, and those of each chapter's `examples.py`."""

import importlib
from pathlib import Path

from tformer_book.kit.drawings import layers


def floors(**changes):
    return layers.layers(**({"floors": ["book", "analysis | measures | pretrained", "models"]} | changes))


CHAPTERS = [file.parent.name for file in sorted(Path(__file__).parents[2].glob("*/examples.py"))]
MODULES = [importlib.import_module(f"tests.book.{chapter}.examples") for chapter in CHAPTERS]
EXAMPLES = (floors, *(example for module in MODULES for example in module.EXAMPLES))


def __getattr__(name):  # examples.soft_lookup, wherever it stands
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(name)
