"""Training: one loop for every chapter, its optimisers, checkpoints, seeds, and parameter budgets."""

from tformer_lib.training.budgets import count_parameters, width_for_budget
from tformer_lib.training.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from tformer_lib.training.history import History
from tformer_lib.training.loop import fit
from tformer_lib.training.optimizers import make_optimizers, warmup_cosine
from tformer_lib.training.seeds import default_device, seed_everything

__all__ = [
    "Checkpoint",
    "History",
    "count_parameters",
    "default_device",
    "fit",
    "load_checkpoint",
    "make_optimizers",
    "save_checkpoint",
    "seed_everything",
    "warmup_cosine",
    "width_for_budget",
]
