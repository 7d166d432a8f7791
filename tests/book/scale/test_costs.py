"""What a step is predicted to cost is what PyTorch keeps and counts."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from tformer_book.kit.published import PUBLISHED, training_flops_per_token
from tformer_book.scale.costs import (
    GPTShape,
    activation_bytes,
    block_activations,
    forward_flops,
    memory_per_gpu,
    message_bytes,
    outside_activations,
    parameters,
    recomputed_inputs,
    six_n_d,
    state_bytes,
    step_flops,
    training_days,
)
from tformer_lib import TransformerConfig
from tformer_lib.core.attention import Attend, Backend, FusedAttend
from tformer_lib.core.positions import LearnedPositions, Rotary
from tformer_lib.measures.memory import peak_memory
from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.scale import traffic
from tformer_lib.training import make_optimizers


class Flash(Backend):
    """A kernel that masks by itself."""

    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


KERNELS = {"plain": Attend, "fused": FusedAttend, "flash": Flash}
MODERN = {"norm": "rms", "activation": "swiglu", "qk_norm": True, "bias": False, "d_hidden": 40}
SHAPES = {
    "GPT-2": {},
    "wide": {"d_model": 48, "n_heads": 2, "n_blocks": 1},
    "no biases": {"bias": False, "activation": "gelu_tanh"},
    "post": {"norm_placement": "post", "activation": "relu"},
    "shared keys": {"n_kv_heads": 2, "activation": "squared_relu"},
    "modern": MODERN,
    "modern, shared keys": {**MODERN, "n_kv_heads": 1},
    "gate, LayerNorm": {"activation": "swiglu", "d_hidden": 56},
}


def kept_for_backward(function, owned):
    """Bytes of the distinct storages that autograd keeps while `function()` runs, by its own hooks.

    A storage that several operations keep counts once. What `owned()` yields (a model's parameters) is
    there anyway and does not count. Blocks that are computed again keep nothing that these hooks see.
    """
    known = {tensor.untyped_storage()._cdata for tensor in owned()}
    found = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in known:
            found[storage._cdata] = storage.nbytes(), tensor  # held, so that no other takes its place
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = function()
    del result
    return sum(size for size, _ in found.values())


def shaped(name="GPT-2", vocab=50, length=24, tied=True, **more):
    options = {"d_model": 32, "n_heads": 4, "n_blocks": 3} | SHAPES[name] | more
    rotary = name.startswith("modern")
    return GPTShape(
        config=TransformerConfig(**options), vocab_size=vocab, places=0 if rotary else length, tied=tied
    )


def built(shape, kernel="plain", dropout=0.0):
    c = shape.config
    positions = LearnedPositions(shape.places, c.d_model) if shape.places else None
    rotary = None if shape.places else Rotary(c.d_model // c.n_heads)
    make = partial(KERNELS[kernel], dropout) if dropout else KERNELS[kernel]
    return GPT(c, shape.vocab_size, positions=positions, rotary=rotary, make_backend=make, tied=shape.tied)


def tokens(shape, batch=3, length=24):
    return torch.randint(shape.vocab_size, (batch, length + 1), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_states_are_exact(name, tied, optimizer):
    shape = shaped(name, tied=tied)
    model = built(shape)
    language_loss(model, tokens(shape)).backward()
    predicted = state_bytes(shape, optimizer=optimizer)
    assert predicted["parameters"] == sum(p.nbytes for p in model.parameters()) == 4 * parameters(shape)
    assert predicted["gradients"] == sum(p.grad.nbytes for p in model.parameters())
    optimizers = make_optimizers(model, optimizer, lr=1e-3, weight_decay=0.1)
    for one in optimizers:
        one.step()
    kept = [x for one in optimizers for state in one.state.values() for x in state.values()]
    assert predicted["optimizer"] == sum(x.nbytes for x in kept if x.ndim > 0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SHAPES)
def test_activations_are_what_autograd_keeps(name, kernel):
    shape = shaped(name)
    model, batch = built(shape, kernel), tokens(shape)
    measured = kept_for_backward(lambda: language_loss(model, batch), model.parameters)
    predicted = activation_bytes(shape, 3, 24, kernel)
    if kernel == "flash" and not shape.places:  # the output in another order than its merged heads
        predicted += shape.config.n_blocks * 3 * 24 * shape.config.d_model * 4
    assert predicted == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(("batch", "length"), [(1, 24), (8, 6), (2, 90)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_activations_at_other_lengths(kernel, batch, length):
    shape = shaped(length=length, vocab=11)
    model, data = built(shape, kernel), tokens(shape, batch, length)
    measured = kept_for_backward(lambda: language_loss(model, data), model.parameters)
    assert activation_bytes(shape, batch, length, kernel) == pytest.approx(measured, rel=3e-3)


@pytest.mark.parametrize("activation", ["gelu", "relu", "squared_relu", "swiglu"])
@pytest.mark.parametrize("mlp_dropout", [None, 0.0])
def test_dropout_keeps_its_noise(activation, mlp_dropout):
    shape = shaped(dropout=0.1, activation=activation, mlp_dropout=mlp_dropout)
    model, batch = built(shape, "plain", 0.1), tokens(shape)
    measured = kept_for_backward(lambda: language_loss(model, batch), model.parameters)
    assert activation_bytes(shape, 3, 24, "plain") == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize("kernel", ["plain", "fused"])
def test_a_model_in_bfloat16_keeps_half(kernel):  # tiny: half precision is slow on many processors
    shape = shaped(length=8)
    model, batch = built(shape, kernel).bfloat16(), tokens(shape, 2, 8)
    measured = kept_for_backward(lambda: language_loss(model, batch), model.parameters)
    assert activation_bytes(shape, 2, 8, kernel, "bfloat16") == pytest.approx(measured, rel=1e-3)


@pytest.mark.parametrize("bias", [True, False])
def test_autocast_keeps_copies(bias):
    shape = shaped(length=8, bias=bias)
    model, batch = built(shape, "fused"), tokens(shape, 2, 8)

    def loss():
        with torch.autocast("cpu", torch.bfloat16):
            return language_loss(model, batch)

    measured = kept_for_backward(loss, model.parameters)
    assert activation_bytes(shape, 2, 8, "fused", "autocast") == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize("kernel", ["plain", "fused"])
def test_recomputation_keeps_the_inputs(kernel):
    shape = shaped(length=64)
    batch = tokens(shape, 4, 64)
    found = {}
    for again in (False, True):
        model = built(shape, kernel)
        if again:
            for block in model.transformer.blocks:
                block.forward = partial(checkpoint, block.forward, use_reentrant=False)
        found[again] = peak_memory(lambda model=model: language_loss(model, batch).backward())
    saved = found[False] - found[True]
    predicted = activation_bytes(shape, 4, 64, kernel) - activation_bytes(
        shape, 4, 64, kernel, recompute=True
    )
    assert predicted == pytest.approx(saved, rel=0.05)
    parts = recomputed_inputs(shape, 4, 64) + outside_activations(shape, 4, 64)
    assert parts + block_activations(shape, 4, 64, kernel) == activation_bytes(
        shape, 4, 64, kernel, recompute=True
    )


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_operations_are_exact(name, again):
    shape = shaped(name)
    model, batch = built(shape), tokens(shape)
    if again:
        for block in model.transformer.blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    with FlopCounterMode(display=False) as counter:
        loss = language_loss(model, batch)
        forward = counter.get_total_flops()
        loss.backward()
    assert forward_flops(shape, 3, 24) == forward
    assert step_flops(shape, 3, 24, recompute=again) == counter.get_total_flops()


def published(name):
    spec = PUBLISHED[name]
    return GPTShape(
        config=spec.config,
        vocab_size=spec.vocab_size,
        places=0 if spec.family == "llama" else spec.length,
        tied=not spec.classes,
    )


@pytest.mark.parametrize("name", ["GPT-2 small", "GPT-2 XL", "GPT-3 175B", "Llama 3 8B"])
def test_published_shapes_are_counted_as_elsewhere(name):
    shape, spec = published(name), PUBLISHED[name]
    assert parameters(shape) == spec.parameters()
    token = training_flops_per_token(spec.config, 1024, vocab_size=spec.vocab_size)
    assert step_flops(shape, 1, 1024) == 1024 * token


def test_six_n_d_is_the_count_without_attention():
    shape = published("GPT-3 175B")
    exact = step_flops(shape, 1, 1)
    assert six_n_d(parameters(shape), 1) == pytest.approx(exact, rel=0.001)
    assert six_n_d(parameters(shape), 300e9) == pytest.approx(3.14e23, rel=0.002)


def test_sixteen_bytes_a_parameter_whatever_the_precision():
    shape = published("Llama 3 8B")
    for precision in ("float32", "bfloat16"):
        assert sum(state_bytes(shape, precision).values()) == 16 * parameters(shape)


@pytest.mark.parametrize("gpus", [1, 2, 64])
def test_each_stage_divides_one_part_more(gpus):
    shape = shaped()
    parts = {
        s: memory_per_gpu(shape, 2, 8, gpus=gpus, sharding=s) for s in ("ddp", "zero1", "zero2", "zero3")
    }
    alone = state_bytes(shape)
    for stage, (name, found) in enumerate(parts.items()):
        divided = ["optimizer", "gradients", "parameters"][:stage]
        for part, size in alone.items():
            assert found[part] == size / (gpus if part in divided else 1), name
        assert found["activations"] == activation_bytes(shape, 2, 8)
    assert (parts["zero3"]["gathered"] > 0) == (gpus > 1)
    assert parts["zero2"]["gathered"] == 0


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_messages_are_those_of_the_forms(gpus):
    shape = GPTShape(config=TransformerConfig(d_model=16, n_heads=4, n_blocks=2), vocab_size=32)
    count = parameters(shape)
    for precision, itemsize in (("float32", 4), ("bfloat16", 2)):
        whole = traffic.data_parallel_bytes(count, gpus, itemsize)
        for sharding in ("ddp", "zero1", "zero2"):
            assert message_bytes(shape, gpus=gpus, sharding=sharding, precision=precision) == whole
        shared = message_bytes(shape, gpus=gpus, sharding="zero3", precision=precision)
        assert shared == traffic.sharded_bytes(count, gpus, itemsize) == 1.5 * whole
    with pytest.raises(ValueError, match="sharding"):
        message_bytes(shape, gpus=2, sharding="zero4")


def test_days():
    assert training_days(3.12e14 * 0.5 * 10 * 86400, 10, 3.12e14, 0.5) == pytest.approx(1)


def test_bad_input_is_named():
    shape = shaped()
    with pytest.raises(ValueError, match="kernel must be one of"):
        activation_bytes(shape, 1, 1, "quick")
    with pytest.raises(ValueError, match="sharding must be one of"):
        memory_per_gpu(shape, 1, 1, sharding="zero4")
    with pytest.raises(ValueError, match="optimizer must be one of"):
        state_bytes(shape, optimizer="sgd")
    with pytest.raises(ValueError, match="batch must be at least 1"):
        step_flops(shape, 0, 1)
    with pytest.raises(ValueError, match="dropout"):
        activation_bytes(shaped(dropout=0.1), 1, 1, "fused")
    with pytest.raises(ValueError, match="autocast"):
        activation_bytes(shaped("modern"), 1, 1, precision="autocast")
    with pytest.raises(ValueError, match="utilisation must lie in"):
        training_days(1.0, 1, 1.0, 1.2)
    with pytest.raises(ValueError, match="cross_attention"):
        GPTShape(
            config=TransformerConfig(d_model=4, n_heads=1, n_blocks=1, cross_attention=True), vocab_size=3
        )
    with pytest.raises(TypeError, match="vocab_size"):
        GPTShape(config=shape.config, vocab_size=3.0)
