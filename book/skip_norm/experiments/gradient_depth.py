"""What of the gradient arrives at the first of 1 to 64 untrained blocks, with skips and without.

Six kinds of stack: with skips and without, and in each no norm, the norm before the sublayer (pre) and
behind it (post). Weights, tokens and the gradient at the end are those of Chapter 4's page: Xavier weights,
32 random tokens 64 wide, one draw. The first blocks of the stack of 64 are the shorter stacks. Beside the
gradient stands the share of the tokens that is their own at the end. In the record are a few depths; all of
them, as powers of ten, in `book/site/static/live/gradients.js`, for the figure in which one chooses. Half a
minute of one core.
"""

import json
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD
from tformer_book.skip_norm.models.residual_variants import NoSkipBlock
from tformer_lib.core.transformer import Block, Transformer, TransformerConfig
from tformer_lib.files import replace_file

SCRIPT = BUILD.parent / "book" / "site" / "static" / "live" / "gradients.js"
DEEPEST, LEAST = 64, 1e-15  # blocks; a share below this is rounding
IN_RECORD = (1, 8, 64)


class NormedAloneBlock(Block):
    """norm(f(x)), with nothing beside it: post-norm without its skip."""

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The sublayer's output alone, normalised."""
        return norm(self.dropout(sublayer(x)))


# Where the norm stands with a skip and without, by the names of the figure.
KINDS: dict[str, tuple[type[Block], str]] = {
    "skip none": (Block, "none"),
    "skip pre": (Block, "pre"),
    "skip post": (Block, "post"),
    "alone none": (NoSkipBlock, "none"),
    "alone pre": (NoSkipBlock, "pre"),
    "alone post": (NormedAloneBlock, "post"),
}


def stack(kind: str) -> nn.ModuleList:
    """The 64 blocks of this kind, untrained, with the page's weights."""
    block, norm = KINDS[kind]
    torch.manual_seed(0)
    config = TransformerConfig(
        d_model=64, n_heads=4, n_blocks=DEEPEST, norm_placement="post" if norm == "post" else "pre"
    )
    blocks: nn.ModuleList = Transformer(config, block=block).double().blocks
    for one in blocks if norm == "none" else ():
        one.self_attention_norm = one.mlp_norm = nn.Identity()
    return blocks


def tokens_and_gradient() -> tuple[Tensor, Tensor]:
    """The page's tokens, and the gradient that it sends back from the end: (1, 32, 64) each."""
    torch.manual_seed(5)
    tokens, gradient = torch.randn(2, 1, 32, 64, dtype=torch.float64)
    return tokens, gradient


def arriving(blocks: nn.ModuleList) -> tuple[list[float], list[float]]:
    """Of the first 1, 2, ... blocks: the gradient at the first over that at the end, and the own share.

    The gradients of all stacks go back together: behind each block one more of them ends.
    """
    x, gradient = tokens_and_gradient()
    states = [x]
    with torch.no_grad():
        for block in blocks:
            states.append(block(states[-1]))
    back = gradient[:0]
    for block, read in reversed(list(zip(blocks, states, strict=False))):
        back = torch.cat((gradient, back))
        leaf = read.expand_as(back).clone().requires_grad_()
        (back,) = torch.autograd.grad(block(leaf), leaf, back)
    lengths = back.flatten(1).norm(dim=1) / gradient.norm()
    own = [((x - x.mean(dim=1, keepdim=True)).norm() / x.norm()).item() for x in states[1:]]
    return lengths.tolist(), own


def tens(numbers: list[float], least: float = 0.0) -> list[float]:
    """Their powers of ten, to three digits; what is below the least counts as the least."""
    return [round(math.log10(max(x, least)), 3) for x in numbers]


def main() -> None:
    """Measure, and write both files."""
    torch.set_num_threads(1)
    found = {kind: arriving(stack(kind)) for kind in KINDS}
    powers = {kind: [tens(gradients), tens(own, LEAST)] for kind, (gradients, own) in found.items()}
    replace_file(SCRIPT, f"window.TformerGradients = {json.dumps(powers)};\n".encode())
    results = {
        kind: {str(depth): {"gradient": g[depth - 1], "own share": own[depth - 1]} for depth in IN_RECORD}
        for kind, (g, own) in found.items()
    }
    print(record("gradient_depth", results, seeds=[0]))


if __name__ == "__main__":
    main()
