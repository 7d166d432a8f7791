"""Initial weights: GPT-2's, and those with which every block begins as the identity."""

import math

from torch import nn

from tformer_lib.core.transformer import Block
from tformer_lib.models.gpt import GPT


def residual_projections(model: GPT) -> list[nn.Linear]:
    """The linear maps whose output joins the residual stream: W_o of attention, W_out of the MLP."""
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    return [linear for block in blocks for linear in (block.self_attention.W_o, block.mlp.W_out)]


def gpt2_initialisation(model: GPT, std: float = 0.02) -> None:
    """Weights from N(0, std^2), those into the residual stream from N(0, std^2 / (2M)), biases 0.

    The weights are those of linear maps, embeddings and learned positions, and M is the number of blocks: the
    2M sublayers add up to a sum whose variance does not grow with M (Radford et al. 2019, section 2.3).
    Norms begin as they are, with gain 1. A GPT in its own right begins with Xavier's linear maps.

    Args:
        model: changed in place.
        std: 0.02 in GPT-2.

    Raises:
        ValueError: if `std` is not positive.
    """
    if not std > 0:
        raise ValueError(f"std must be positive, got {std}")
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    table = getattr(model.positions, "table", None)
    if table is not None:
        nn.init.normal_(table, std=std)
    for linear in residual_projections(model):
        nn.init.normal_(linear.weight, std=std / math.sqrt(2 * model.config.n_blocks))


def quiet_initialisation(model: GPT) -> None:
    """W_o and W_out are 0, with their biases: every block begins as the identity.

    The other weights stay as they are.

    At the first step the logits are those of the embeddings alone, and the first gradients reach only the
    projections, the final norm and the embeddings (Zhang et al. 2019, Fixup; Bachlechner et al. 2021,
    ReZero, begin likewise with silent branches).

    Args:
        model: changed in place.
    """
    for linear in residual_projections(model):
        nn.init.zeros_(linear.weight)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
