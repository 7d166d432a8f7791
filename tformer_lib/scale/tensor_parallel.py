"""Tensor parallelism: every matrix of a block in parts, one for each process.

In a block's self-attention process p holds the rows of W_q, W_k and W_v that make its heads, and the columns
of W_o that read them; in its MLP the rows of W_in (and W_gate) for its hidden features, and the columns of
W_out that read these. Each sublayer then costs one sum over processes forward and one backward
(Shoeybi et al. 2019). A GPT's embedding and head can be divided as well, by tokens of the vocabulary.
"""

import math
from typing import Any, Literal

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from tformer_lib.core.transformer import MLP, Block, Transformer
from tformer_lib.models.gpt import GPT


def tensor_parallel(
    model: nn.Module,
    mesh: DeviceMesh | None = None,
    *,
    sequence: bool = False,
    vocabulary: Literal["gathered", "divided"] | None = None,
) -> nn.Module:
    """The same function of the same tokens, with the matrices of every `Block` divided over the processes.

    Every process is called with the same tokens, and gets the whole result. Positions stay whole in each of
    them, and so do embedding and head unless `vocabulary` says otherwise. The model is changed in place: the
    weights of a block become `torch.distributed.tensor.DTensor`, each process keeping its part, and
    `whole_state` puts them together. All processes must hold the same weights before. To combine it with data
    parallelism, divide over one axis of a mesh with two, and call `fully_shard` with the other axis
    afterwards.

    Args:
        model: has one or more `Transformer`, such as a `GPT`.
        mesh: the processes, along one axis; all of the default group if None.
        sequence: whether norms, skip connections and what stands between sublayers are divided too, along
            the sequence (Korthikanti et al. 2022). A process then keeps N / P of the N tokens
            there, and the two sums of a sublayer become a gathering and a summing that scatters, of as many
            bytes together.
        vocabulary: whether the rows of a GPT's embedding and head are divided too, each process keeping those
            of V / P of the V tokens. "gathered" puts the logits together, of T V numbers for T tokens.
            "divided" leaves them a DTensor of which each process has V / P columns: then loss and backward
            pass go into `with torch.distributed.tensor.parallel.loss_parallel():`, which sends only 3 T
            numbers. A tied head stays tied. If P does not divide V, the last processes have fewer rows.

    Returns:
        The model.

    Raises:
        ValueError: if there is no `Transformer`; if the number of processes does not divide H, the heads of
            keys and values, or F; if the model has dropout, whose masks would have to agree where the tokens
            are whole and to differ where they are not; if blocks cross-attend, add a bias to scores, or have
            another MLP; if the mesh has more axes than one; with `vocabulary`, if the model is no GPT, has a
            head of its own make, or so few tokens that a process would have none; in forward, with
            `sequence`, if the number of processes does not divide N.
        RuntimeError: if no process group is open.
    """
    if not dist.is_initialized():
        raise RuntimeError("there are no processes to share the work: no process group is open")
    if mesh is None:
        mesh = init_device_mesh(next(model.parameters()).device.type, (dist.get_world_size(),))
    if mesh.ndim != 1:
        raise ValueError(f"matrices are divided along one axis of processes, and this mesh has {mesh.ndim}")
    stacks = [module for module in model.modules() if isinstance(module, Transformer)]
    if not stacks:
        raise ValueError("there is no Transformer in this model whose matrices could be divided")
    if any(isinstance(module, nn.Dropout) and module.p > 0 for module in model.modules()):
        raise ValueError("dropout must be 0: processes would draw other masks than one process does")
    for stack in stacks:
        for block in stack.blocks:
            _check(block, mesh.size())
    gpt = None if vocabulary is None else _whose_vocabulary(model, vocabulary, mesh.size())
    for stack in stacks:
        for block in stack.blocks:
            parallelize_module(block, mesh, _block_plan(block, sequence))
        if sequence:
            _divide_stream(stack, mesh)
        if sequence or gpt is not None:
            _leave(stack, mesh, sequence, local=gpt is None)
    if gpt is not None:
        _divide_vocabulary(gpt, mesh, gather=vocabulary == "gathered")
    return model


def _block_plan(block: nn.Module, sequence: bool) -> dict[str, ParallelStyle]:
    """What becomes of the parts of a block; in PyTorch's words rows of W are columns of W^T."""
    stream = Shard(1) if sequence else Replicate()
    whole = PrepareModuleInput(input_layouts=(stream,), desired_input_layouts=(Replicate(),))
    plan: dict[str, ParallelStyle] = {"self_attention": whole, "mlp": whole}
    for name in ("self_attention.W_q", "self_attention.W_k", "self_attention.W_v", "mlp.W_in", "mlp.W_gate"):
        plan[name] = ColwiseParallel()
    for name in ("self_attention.W_o", "mlp.W_out"):
        plan[name] = RowwiseParallel(output_layouts=stream)
    for name in ("self_attention.norm_q", "self_attention.norm_k"):  # of (B, H, N, Dh), divided along H
        plan[name] = SequenceParallel(sequence_dim=1, use_local_output=True)
    if sequence:
        plan |= dict.fromkeys(("self_attention_norm", "mlp_norm"), SequenceParallel(use_local_output=True))
    weighted = {name.rpartition(".")[0] for name, _ in block.named_parameters()}
    return {name: style for name, style in plan.items() if name in weighted or style is whole}


def _divide_stream(stack: Transformer, mesh: DeviceMesh) -> None:
    """Tokens are divided where they enter the stack."""

    def check(_: nn.Module, args: tuple[Any, ...]) -> None:
        if args[0].shape[1] % mesh.size():
            raise ValueError(f"{mesh.size()} processes cannot share {args[0].shape[1]} tokens evenly")

    if any(True for _ in stack.final_norm.parameters()):
        parallelize_module(stack.final_norm, mesh, SequenceParallel(use_local_output=True))
    stack.register_forward_pre_hook(check)
    enter = PrepareModuleInput(
        input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),), use_local_output=True
    )
    parallelize_module(stack, mesh, enter)


def _leave(stack: Transformer, mesh: DeviceMesh, sequence: bool, *, local: bool) -> None:
    """Tokens are whole where they leave the stack; as a DTensor if a divided head reads them.

    Then each process finds a part of their gradient on the way back, and the DTensor knows that it is a sum.
    """
    stream = Shard(1) if sequence else Replicate()
    leave = PrepareModuleOutput(
        output_layouts=(stream,), desired_output_layouts=(Replicate(),), use_local_output=local
    )
    parallelize_module(stack, mesh, leave)


def _divide_vocabulary(model: GPT, mesh: DeviceMesh, *, gather: bool) -> None:
    """A process looks up the tokens whose rows it has, and finds their logits.

    A GPT multiplies by `head.weight`, or by `embed.weight` if the head is tied, and calls no module for it.
    So what `ColwiseParallel` does around a head's forward is done around the stack's and the model's.
    """
    parallelize_module(model.embed, mesh, RowwiseParallel(input_layouts=Replicate()))
    if model.head is not None:
        parallelize_module(model.head, mesh, ColwiseParallel())

    def share(weight: Any) -> None:  # of the whole table's gradient, as a lookup finds it
        weight.grad = weight.grad.redistribute(placements=weight.placements)

    model.embed.weight.register_post_accumulate_grad_hook(share)
    if gather:
        whole = PrepareModuleOutput(output_layouts=(Shard(-1),), desired_output_layouts=(Replicate(),))
        parallelize_module(model, mesh, whole)


def _whose_vocabulary(model: nn.Module, vocabulary: str, processes: int) -> GPT:
    """The model, if its embedding and head can be divided; raise otherwise."""
    if vocabulary not in ("gathered", "divided"):
        raise ValueError(f"vocabulary must be 'gathered', 'divided' or None, got {vocabulary!r}")
    if not isinstance(model, GPT) or type(model).forward is not GPT.forward:
        raise ValueError(
            "only the embedding and the head of a GPT can be divided, by tokens of its vocabulary"
        )
    if model.head is not None and type(model.head) is not nn.Linear:
        raise ValueError(f"the head must be tied or an nn.Linear, got {type(model.head).__name__}")
    tokens = model.embed.num_embeddings
    if (processes - 1) * math.ceil(tokens / processes) >= tokens:  # the last would have none
        raise ValueError(f"{processes} processes cannot share {tokens} tokens")
    return model


def _check(block: nn.Module, processes: int) -> None:
    """Raise unless a block can be divided."""
    if not isinstance(block, Block) or type(block.mlp) is not MLP or block.config.cross_attention:
        raise ValueError("only blocks of self-attention and an MLP can be divided")
    backend = block.self_attention.backend
    if getattr(backend, "score_bias", None) is not None or any(True for _ in backend.parameters()):
        raise ValueError("what is added to scores is of all heads, and a process has only some of them")
    sizes = {
        "n_heads": block.self_attention.n_heads,
        "n_kv_heads": block.self_attention.n_kv_heads,
        "d_hidden": block.mlp.W_in.out_features,
    }
    for name, size in sizes.items():
        if size % processes:
            raise ValueError(f"{processes} processes cannot share {name}={size} evenly")
