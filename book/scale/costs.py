"""What a training step costs, predicted from sizes alone: bytes, floating-point operations, days.

The formulas are those of the book's GPT. Bytes of parameters, gradients and optimiser states are exact; bytes
of activations are what autograd keeps on a processor, and so are operations of matrix products. Tests hold
each against what PyTorch really keeps and counts.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.numbers import check_fields, one_of, real, whole
from tformer_lib.scale.traffic import all_reduce_bytes, sharded_bytes

Kernel = Literal["plain", "fused", "flash"]
Precision = Literal["float32", "bfloat16", "autocast"]
Sharding = Literal["ddp", "zero1", "zero2", "zero3"]
Optimizer = Literal["adamw", "muon"]
IDS = 8  # bytes of a token's number
STATE_BYTES = {"float32": (4, 4, 0), "bfloat16": (2, 2, 4), "autocast": (4, 4, 0)}  # of a parameter: itself,
# its gradient, and the float32 copy that the optimiser moves where the parameter itself is coarser
DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class GPTShape:
    """The sizes of a GPT, and no weights.

    Raises:
        TypeError: if a size is no whole number.
        ValueError: if a size is out of bounds, or the stack cross-attends.
    """

    config: TransformerConfig
    vocab_size: int
    places: int = 0  # rows of the table of learned positions; 0 for rotary positions
    tied: bool = True  # whether the head is the embedding

    def __post_init__(self) -> None:
        check_fields(self, places=0)
        if self.config.cross_attention:
            raise ValueError("a GPT has no second sequence, but cross_attention=True")

    @property
    def hidden(self) -> int:
        """F, the hidden width of the MLP."""
        return self.config.d_hidden or 4 * self.config.d_model

    @property
    def key_width(self) -> int:
        """The width of all keys of a token together, D, or D G / H with G heads of keys."""
        return self.config.d_model // self.config.n_heads * (self.config.n_kv_heads or self.config.n_heads)


def block_matrices(shape: GPTShape) -> int:
    """2 D^2 + 2 D D_k + 2 D F: the entries of a block's matrices; 3 D F where the MLP has a gate."""
    d = shape.config.d_model
    mlp = 3 if shape.config.activation == "swiglu" else 2
    return 2 * d * d + 2 * d * shape.key_width + mlp * d * shape.hidden


def block_parameters(shape: GPTShape) -> int:
    """All parameters of one block: matrices, biases, norms."""
    c, d = shape.config, shape.config.d_model
    biases = 2 * d + 2 * shape.key_width + d + shape.hidden * (2 if c.activation == "swiglu" else 1)
    heads = 2 * (d // c.n_heads) if c.qk_norm else 0
    return block_matrices(shape) + c.bias * biases + 2 * _norm(c) + heads


def root_parameters(shape: GPTShape) -> int:
    """What stands outside the blocks: embedding, table of positions, final norm, a head of its own."""
    c = shape.config
    tables = shape.vocab_size * (1 if shape.tied else 2) + shape.places
    return tables * c.d_model + (_norm(c) if c.norm_placement == "pre" else 0)


def parameters(shape: GPTShape) -> int:
    """M times a block's parameters, and those outside the blocks."""
    return shape.config.n_blocks * block_parameters(shape) + root_parameters(shape)


def _norm(config: TransformerConfig) -> int:
    """The parameters of one norm: a gain, and with LayerNorm a bias."""
    return config.d_model * (2 if config.norm == "layer" and config.bias else 1)


def state_bytes(shape: GPTShape, precision: str = "float32", optimizer: str = "adamw") -> dict[str, int]:
    """Bytes of parameters, gradients, and what the optimiser keeps: 16 a parameter with AdamW.

    In float32, and under autocast, that is 4 + 4 + 8: AdamW keeps two averages. A model in bfloat16 takes
    2 + 2 + 12: the optimiser also keeps the float32 copy that it really moves (Rajbhandari et al. 2020,
    section 3.1). Muon keeps one average of the matrices of the blocks, and AdamW's two of everything else.
    PyTorch's AdamW also keeps one step count of 4 bytes for each tensor, which is left out.

    Raises:
        ValueError: if precision or optimiser is unknown.
    """
    one_of("precision", precision, Precision)
    one_of("optimizer", optimizer, Optimizer)
    own, gradient, copy = STATE_BYTES[precision]
    count = parameters(shape)
    averages = 2 * count
    if optimizer == "muon":
        averages -= shape.config.n_blocks * block_matrices(shape)
    return {
        "parameters": own * count,
        "gradients": gradient * count,
        "optimizer": copy * count + 4 * averages,
    }


def block_activations(
    shape: GPTShape, batch: int, length: int, kernel: str = "fused", precision: str = "float32"
) -> int:
    """Bytes that one block keeps for the backward pass: in numbers, (8 + 2 F/D) B N D and the weights.

    Eight vectors of width D for each token: the input and the output of both norms, query, key, value, and
    the merged heads. Then the hidden layer before and after GELU. The plain kernel adds the attention weights
    twice (before and after empty rows are filled), 2 B H N^2, and keeps queries, keys and the softmax in
    float32 whatever the model is in. The fused one adds its own output, B N D, one number for each query and
    head, and the mask as numbers, N^2. "flash" is a kernel that masks by itself: no mask, and its output is
    what the heads are merged from. (On a processor, queries that rotary positions have turned lie in another
    order, and the output is kept twice after all.) Two numbers for each token and norm, mean and deviation,
    are counted too.

    Args:
        shape: of the model.
        batch: rows B.
        length: tokens N in a row.
        kernel: "plain" is `Attend`, "fused" is `FusedAttend` under the GPT's mask.
        precision: of the numbers: "bfloat16" if the whole model is, "autocast" where products alone are.

    Raises:
        ValueError: if a choice is unknown, a size is not positive, or the kernel is fused and attention has
            dropout; under autocast, if the block is not the plain pre-norm one of GPT-2.
    """
    _check(shape, batch, length, kernel, precision)
    c, d, f = shape.config, shape.config.d_model, shape.hidden
    rows = batch * length
    wide = 2 if precision == "bfloat16" else 4  # bytes of a number in the stream
    e = 4 if precision == "float32" else 2  # bytes of a number in products
    attention, per_query = _attention(shape, batch, length, kernel, e)
    dropped = c.dropout > 0
    between = _hidden(c) * f
    if precision == "autocast":  # the norms' outputs are cast once for each product that reads them
        norms = 2 * (d * wide + 2 * 4) + 4 * d * e
        copies = block_matrices(shape) * e
    else:
        layer = c.norm == "layer"
        norms = 2 * ((2 if layer else 3) * d + (2 if layer else 1)) * e
        copies = 0
    heads = 0
    if c.qk_norm:  # input and normalised input, and one number for each head
        kv_heads = c.n_kv_heads or c.n_heads
        heads = (2 * (d + shape.key_width) + c.n_heads + kv_heads) * e
    noise = 2 * d * wide if dropped else 0
    token = norms + heads + 3 * d * e + per_query + d * e + between * e + noise
    return rows * token + attention + copies


def _attention(shape: GPTShape, batch: int, length: int, kernel: str, e: int) -> tuple[int, int]:
    """Bytes that a kernel keeps beside queries, keys, values and merged heads: in all, and for each token."""
    c, pairs = shape.config, length * length
    if kernel == "plain":  # scores and softmax are of float32; the product with the values is not
        noise = 4 if c.dropout > 0 else 0
        wider = 2 * c.d_model * (4 - e)  # queries and keys
        return batch * c.n_heads * pairs * (4 + noise + e) + 2 * pairs, wider
    if kernel == "flash":
        return 0, c.n_heads * 4
    return pairs * e + length, c.d_model * e + c.n_heads * 4


def _hidden(config: TransformerConfig) -> int:
    """How many numbers of each hidden feature are kept."""
    dropout = config.dropout if config.mlp_dropout is None else config.mlp_dropout
    kept = {"relu": 1, "swiglu": 4}.get(config.activation, 2)
    if dropout > 0:
        kept += 2 if config.activation == "relu" else 1
    return kept


def activation_bytes(
    shape: GPTShape,
    batch: int,
    length: int,
    kernel: str = "fused",
    precision: str = "float32",
    recompute: bool = False,
) -> int:
    """Bytes kept for the backward pass: M blocks, the final norm, B N vocab log-probabilities, the tokens.

    With recomputation a block keeps its input alone, B N D, and is computed again when its turn comes; the
    one block that is at work then is included (Chen et al. 2016).

    Args:
        shape: of the model.
        batch: rows B.
        length: tokens N in a row, without the last target.
        kernel: see `block_activations`.
        precision: likewise.
        recompute: whether each block is computed again during the backward pass.

    Raises:
        ValueError: as `block_activations`.
    """
    one = block_activations(shape, batch, length, kernel, precision)
    kept = (
        recomputed_inputs(shape, batch, length, precision) + one if recompute else shape.config.n_blocks * one
    )
    return kept + outside_activations(shape, batch, length, precision)


def recomputed_inputs(shape: GPTShape, batch: int, length: int, precision: str = "float32") -> int:
    """M B N D numbers: what is kept of the blocks if each keeps its input alone."""
    wide = 2 if precision == "bfloat16" else 4
    return shape.config.n_blocks * batch * length * shape.config.d_model * wide


def outside_activations(shape: GPTShape, batch: int, length: int, precision: str = "float32") -> int:
    """Bytes kept outside the blocks: final norm, log-probabilities in float32, numbers of tokens, noise."""
    _check(shape, batch, length, "plain", precision)
    c, d, rows = shape.config, shape.config.d_model, batch * length
    wide = 2 if precision == "bfloat16" else 4
    e = 4 if precision == "float32" else 2
    if precision == "autocast":
        norm = rows * (d * wide + 2 * 4 + d * e) + shape.vocab_size * d * e
    elif c.norm_placement == "post":
        norm = rows * d * e
    else:
        layer = c.norm == "layer"
        norm = rows * ((2 if layer else 3) * d + (2 if layer else 1)) * e
    noise = rows * d * wide if c.dropout > 0 else 0
    return norm + noise + rows * shape.vocab_size * 4 + batch * (length + 1) * IDS + rows * IDS


def forward_flops(shape: GPTShape, batch: int, length: int) -> int:
    """B N (2 P + 2 D vocab) + 4 M B N^2 D: two operations for each entry of each matrix product.

    P counts the entries of all matrices in the blocks. A product of (rows, in) with (in, out) multiplies and
    adds rows x in x out times. Masked pairs count as the others do; norms, softmax, biases and activation
    functions are left out.
    """
    _check(shape, batch, length, "plain", "float32")
    c, rows = shape.config, batch * length
    head = 2 * rows * c.d_model * shape.vocab_size
    return c.n_blocks * _block_flops(shape, batch, length) + head


def _block_flops(shape: GPTShape, batch: int, length: int) -> int:
    rows = batch * length
    return 2 * rows * block_matrices(shape) + 4 * rows * length * shape.config.d_model


def step_flops(shape: GPTShape, batch: int, length: int, recompute: bool = False) -> int:
    """Three times the forward pass: a product Y = X W costs one product forward and two backward.

    These are dX = dY W^T and dW = X^T dY. Recomputation adds the forward pass of the blocks, all but their
    last product, whose result nothing asks for where no norm follows it. Left out are the scores that a fused
    kernel computes again on the way back, 2 M B N^2 D.
    """
    c = shape.config
    last = 2 * batch * length * c.d_model * shape.hidden if c.norm_placement == "pre" else 0
    again = c.n_blocks * (_block_flops(shape, batch, length) - last)
    return 3 * forward_flops(shape, batch, length) + (again if recompute else 0)


def six_n_d(count: int | float, tokens: int | float) -> float:
    """6 N D with N parameters and D tokens: step_flops without the products of attention.

    Kaplan et al. (2020), section 2.1.
    """
    return 6.0 * real("count", count, "(0, inf)") * real("tokens", tokens, "(0, inf)")


def training_days(flops: int | float, gpus: int, rate: int | float, utilisation: int | float) -> float:
    """flops / (gpus x rate x utilisation), in days.

    With the operations of `step_flops` without recomputation, the utilisation is what Chowdhery et al. (2022)
    call model FLOPs utilisation; with recomputation, it is the hardware's.

    Args:
        flops: of the whole training.
        gpus: how many work on it.
        rate: what each could do at most, in operations a second.
        utilisation: the share of it that is reached, in (0, 1].
    """
    gpus = whole("gpus", gpus, 1)
    speed = gpus * real("rate", rate, "(0, inf)") * real("utilisation", utilisation, "(0, 1]")
    return real("flops", flops, "(0, inf)") / speed / DAY


def memory_per_gpu(
    shape: GPTShape,
    batch: int,
    length: int,
    *,
    gpus: int = 1,
    sharding: str = "ddp",
    kernel: str = "fused",
    precision: str = "float32",
    recompute: bool = False,
    optimizer: str = "adamw",
) -> dict[str, float]:
    """Bytes on each of n GPUs, by part; `batch` is one GPU's.

    | | parameters | gradients | optimiser | gathered |
    |---|---|---|---|---|
    | ddp | P | G | O | |
    | zero1 | P | G | O / n | |
    | zero2 | P | G / n | O / n | |
    | zero3 (FSDP) | P / n | G / n | O / n | one block, and what is outside the blocks |

    Activations are those of the GPU's own rows, and no sharding of these kinds divides them (Rajbhandari et
    al. 2020, section 3). Left out are buffers of messages, a block's gradient before it is scattered, blocks
    that are gathered ahead, the allocator's gaps and CUDA's own memory.

    Raises:
        ValueError: if a choice is unknown or a number out of bounds.
    """
    one_of("sharding", sharding, Sharding)
    gpus = whole("gpus", gpus, 1)
    states = state_bytes(shape, precision, optimizer)
    stage = get_args(Sharding).index(sharding)
    shared = {
        "parameters": gpus if stage == 3 else 1,
        "gradients": gpus if stage >= 2 else 1,
        "optimizer": gpus if stage >= 1 else 1,
    }
    parts: dict[str, float] = {name: states[name] / n for name, n in shared.items()}
    own = 4 if precision == "float32" else 2
    whole_unit = own * (block_parameters(shape) + root_parameters(shape))
    parts["gathered"] = float(whole_unit) if stage == 3 and gpus > 1 else 0.0
    parts["activations"] = float(activation_bytes(shape, batch, length, kernel, precision, recompute))
    return parts


def message_bytes(shape: GPTShape, *, gpus: int, sharding: str = "ddp", precision: str = "float32") -> float:
    """What each of n GPUs sends in a step, in a ring: 2 (n - 1) / n of the gradient's bytes.

    Under zero1 and zero2 the gradient is scattered and the new parameters are gathered, which is as much;
    under zero3 parameters are gathered twice, 3 (n - 1) / n in all.

    Raises:
        ValueError: if a choice is unknown or a number out of bounds.
    """
    one_of("sharding", sharding, Sharding)
    one_of("precision", precision, Precision)
    own, count = STATE_BYTES[precision][0], parameters(shape)
    return sharded_bytes(count, gpus, own) if sharding == "zero3" else all_reduce_bytes(own * count, gpus)


def _check(shape: GPTShape, batch: int, length: int, kernel: str, precision: str) -> None:
    whole("batch", batch, 1)
    whole("length", length, 1)
    one_of("kernel", kernel, Kernel)
    one_of("precision", precision, Precision)
    c = shape.config
    if kernel != "plain" and c.dropout > 0:
        raise ValueError(
            f"what a fused kernel keeps under dropout is not known here, got dropout={c.dropout}"
        )
    if precision == "autocast":
        usual = replace(c, d_model=4, n_heads=1, n_blocks=1, d_hidden=None, n_kv_heads=None, bias=True)
        plain = TransformerConfig(d_model=4, n_heads=1, n_blocks=1, norm_eps=c.norm_eps)
        if usual != plain or c.n_kv_heads not in (None, c.n_heads):
            raise ValueError("under autocast only the pre-norm block with LayerNorm and GELU is predicted")
