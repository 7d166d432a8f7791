"""What attention heads do, and what they do not explain: where weights go, what a loss misses without a head.

Heads are counted from 0, as (block, head); results with one number a head are tensors (M, H). Only
self-attention is looked at, in the one `Transformer` that the model has. A batch is a tuple that begins with
the tokens (B, N), then segments and mask where the model takes them; what follows, as targets, is not read.
"""

from tformer_lib.analysis.ablation import ablation, mask_heads
from tformer_lib.analysis.deletion import Deletions, attention_against_deletion
from tformer_lib.analysis.pixels import attention_by_offset
from tformer_lib.analysis.profile import HeadProfile, head_profile
from tformer_lib.analysis.ranks import kendall_tau
from tformer_lib.analysis.rollout import attention_rollout
from tformer_lib.analysis.weights import attention_layers, attention_weights

__all__ = [
    "Deletions",
    "HeadProfile",
    "ablation",
    "attention_against_deletion",
    "attention_by_offset",
    "attention_layers",
    "attention_rollout",
    "attention_weights",
    "head_profile",
    "kendall_tau",
    "mask_heads",
]
