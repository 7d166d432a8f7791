"""Beyond one process: PyTorch's engines started as their users start them, and what a step costs."""

from tformer_lib.scale.distributed_fit import GlobalBatches, fit_distributed, whole_state
from tformer_lib.scale.processes import launch
from tformer_lib.scale.sharded_checkpoints import load_distributed, save_distributed
from tformer_lib.scale.tensor_parallel import tensor_parallel

__all__ = [
    "GlobalBatches",
    "fit_distributed",
    "launch",
    "load_distributed",
    "save_distributed",
    "tensor_parallel",
    "whole_state",
]
