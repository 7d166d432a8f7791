"""What the parts of a model do: where weights go, what an output owes to an activation, a head, a path.

Heads are counted from 0, as (block, head); results with one number a head are tensors (M, H). Only
self-attention is looked at, in the one `Transformer` that the model has. A batch is a tuple that begins with
the tokens (B, N), then segments and mask where the model takes them; what follows, as targets, is not read.
"""

from tformer_lib.analysis.ablation import ablation, mask_heads
from tformer_lib.analysis.activations import ablate, patch, record
from tformer_lib.analysis.patching import patching_effect, patching_grid
from tformer_lib.analysis.rollout import attention_rollout
from tformer_lib.analysis.weights import attention_layers, attention_weights

__all__ = [
    "ablate",
    "ablation",
    "attention_layers",
    "attention_rollout",
    "attention_weights",
    "mask_heads",
    "patch",
    "patching_effect",
    "patching_grid",
    "record",
]
