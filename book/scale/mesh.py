"""What a training step costs on a grid of GPUs: tensor parallel along one axis, sharded along the other.

A collective over g GPUs in each of m machines is done in two parts. Every GPU speaks across to those in its
place in the other machines, about a g-th of the tensor, and inside its machine about the whole:

    an all-gather or a reduce-scatter sends (g - 1) / g size inside, (m - 1) / m size / g between.

Together that is what a ring of g m sends, and no link between machines carries more than about a g-th of it.
"""

from dataclasses import dataclass

from tformer_book.scale.costs import (
    GPTShape,
    block_activations,
    block_parameters,
    outside_activations,
    parameters,
    root_parameters,
    state_bytes,
    step_flops,
)
from tformer_lib.numbers import check_fields, whole
from tformer_lib.scale.traffic import all_gather_bytes

WIDE = 2  # bytes of a number in bfloat16


@dataclass(frozen=True, kw_only=True)
class Machines:
    """GPUs in machines: what one makes in a second, and what it sends to each kind of neighbour.

    Args:
        gpus: all of them.
        each: in one machine.
        speed: operations that a GPU makes in a second, R u.
        inside: bytes that a GPU sends in a second within its machine.
        between: bytes that it sends in a second to other machines.

    Raises:
        ValueError: if machines are not filled, or a number is out of bounds.
    """

    gpus: int
    each: int = 8
    speed: float
    inside: float
    between: float

    def __post_init__(self) -> None:
        positive = "(0, inf)"
        check_fields(self, speed=positive, inside=positive, between=positive)
        if self.gpus % self.each:
            raise ValueError(f"{self.gpus} GPUs do not fill machines of {self.each}")


def two_part_bytes(size: int | float, inside: int, between: int) -> tuple[float, float]:
    """(g - 1) / g size and (m - 1) / m size / g: what a GPU sends inside its machine, and between machines.

    Args:
        size: the bytes of the whole that an all-gather leaves, or a reduce-scatter is given.
        inside: g, the GPUs of a machine that take part.
        between: m, the machines.
    """
    return all_gather_bytes(size, inside), all_gather_bytes(size / inside, between)


def places(n: int, nearer: int, each: int) -> tuple[int, int]:
    """How many of the n GPUs along an axis share a machine, and over how many machines they lie.

    Args:
        n: GPUs along the axis.
        nearer: GPUs along the axes that were placed before, and lie closer together.
        each: GPUs in a machine.

    Raises:
        ValueError: if the axis does not fill what is left of a machine, or whole machines.
    """
    room = max(each // nearer, 1)
    inside = min(n, room)
    if n % inside or room % inside or (nearer < each and each % nearer) or (nearer > each and nearer % each):
        raise ValueError(f"{n} GPUs beside {nearer} do not fit into machines of {each}")
    return inside, n // inside


def whole_in_tensor_parallel(shape: GPTShape, length: int) -> int:
    """Bytes of one row and block that tensor parallelism does not divide: what its two norms keep.

    In numbers a token, with LayerNorm, 4 D and 4: the inputs and the outputs, a mean and a scale. RMSNorm as
    it is written in the book keeps 6 D and 2.
    """
    d, layer = shape.config.d_model, shape.config.norm == "layer"
    return length * 2 * ((2 if layer else 3) * d + (2 if layer else 1)) * WIDE


def grid_memory(
    shape: GPTShape, rows: int, length: int, *, tensor: int, shards: int, sequence: bool
) -> dict[str, float]:
    """Bytes on each of tensor x shards GPUs, in bfloat16 with a float32 copy, without recomputation.

    States are divided by all; what is gathered for use, by the tensor parallel ones. So are activations, but
    for what the norms keep; with `sequence` that too (Korthikanti et al. 2022), if each keeps its share of a
    product's input and gathers it once more on the way back. Embedding and head are divided by tokens.

    Args:
        shape: of the model.
        rows: of the whole step.
        length: tokens in a row.
        tensor: GPUs that share a row.
        shards: groups of such GPUs, each with rows of its own.
        sequence: whether norms and skip connections are divided too.

    Raises:
        ValueError: if the groups cannot have equally many rows.
    """
    mine = _rows(rows, shards)
    states = sum(state_bytes(shape, "bfloat16").values()) / (tensor * shards)
    unit = WIDE * (block_parameters(shape) + root_parameters(shape))
    block = block_activations(shape, 1, length, "flash", "bfloat16")
    kept = shape.config.n_blocks * whole_in_tensor_parallel(shape, length)
    divided = shape.config.n_blocks * block - kept + outside_activations(shape, 1, length, "bfloat16")
    activations = mine * (divided / tensor + kept / (tensor if sequence else 1))
    gathered = unit / tensor if shards > 1 else 0.0
    return {"states": states, "gathered": gathered, "activations": activations}


def grid_seconds(
    shape: GPTShape,
    rows: int,
    length: int,
    machines: Machines,
    *,
    tensor: int,
    sequence: bool = False,
    tensor_first: bool = True,
) -> dict[str, float]:
    """Seconds of a step's products, of its tensor parallel messages and of those of sharding.

    Tensor parallel training sums B N D numbers four times in a block, with `sequence` as a gathering and a
    summing that scatters, and gathers twice more on the way back. Sharding gathers the weights twice and
    scatters their gradients. Left out are latencies, the messages of embedding and head, and that both kinds
    share links.

    Args:
        shape: of the model.
        rows: of the whole step.
        length: tokens in a row.
        machines: GPUs and links.
        tensor: GPUs that share a row; the others are shards.
        sequence: whether norms and skip connections are divided too.
        tensor_first: whether those that share a row lie closest together; otherwise shards do.

    Raises:
        ValueError: if the grid does not fit the machines, or the groups cannot have equally many rows.
    """
    gpus, tensor = machines.gpus, whole("tensor", tensor, 1)
    if gpus % tensor:
        raise ValueError(f"{gpus} GPUs cannot be cut into groups of {tensor}")
    shards = gpus // tensor
    mine = _rows(rows, shards)
    near = {"tensor": 1, "shards": tensor} if tensor_first else {"shards": 1, "tensor": shards}
    one = mine * length * shape.config.d_model * WIDE
    sizes = {
        "tensor": shape.config.n_blocks * one * (10 if sequence else 8),
        "shards": 3 * parameters(shape) * WIDE / tensor,
    }
    seconds = {"work": rows * step_flops(shape, 1, length) / (gpus * machines.speed)}
    for axis, n in (("tensor", tensor), ("shards", shards)):
        inside, between = two_part_bytes(sizes[axis], *places(n, near[axis], machines.each))
        seconds[axis] = inside / machines.inside + between / machines.between
    return seconds


def step_seconds(seconds: dict[str, float]) -> float:
    """Work, all tensor parallel messages, and what is left of sharding's behind the work.

    This is for code that waits for every tensor parallel message, as the book's does. On the way back, some
    could travel while gradients of weights are computed (`tformer_book.scale.timeline.waiting_lanes`).
    """
    return seconds["work"] + seconds["tensor"] + max(0.0, seconds["shards"] - seconds["work"])


def _rows(rows: int, shards: int) -> int:
    if whole("rows", rows, 1) % whole("shards", shards, 1):
        raise ValueError(f"{rows} rows cannot be shared by {shards} groups evenly")
    return rows // shards
