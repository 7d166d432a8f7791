"""Analysis of models that are compiled or wrapped: run by `test_untyped.py`, without run-time types."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tformer_book.image_gpt.layer_means import layer_means
from tformer_book.inside.attribution import logit_attribution
from tformer_book.inside.circuits import induction_scores, patch_path, repeated_tokens
from tformer_book.inside.sinks import hidden_place, silent_place
from tformer_book.scale.mup import activations
from tformer_lib import GPT, TransformerConfig, record_attention
from tformer_lib.analysis import (
    ablate,
    ablation,
    attention_weights,
    mask_heads,
    patch,
    patching_grid,
    record,
)
from tformer_lib.analysis.lens import stream_after_blocks
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.models.language import language_loss

TOKENS = repeated_tokens(11, 3, 4, generator=torch.Generator().manual_seed(0))
OTHER = (TOKENS + 1) % 11
STREAM = "transformer.blocks.0"


def gpt():
    torch.manual_seed(0)
    config = TransformerConfig(d_model=16, n_heads=2, n_blocks=2)
    return GPT(config, 11, positions=LearnedPositions(12, 16)).eval()


def compiled(model):
    return torch.compile(model, backend="eager")


def in_place(model):
    model.compile(backend="eager")
    return model


def by_blocks(model):
    for i, block in enumerate(model.transformer.blocks):
        model.transformer.blocks[i] = torch.compile(block, backend="eager")
    return model


def by_forward(model):
    """As `fit_distributed(compiled=...)` does."""
    for block in model.transformer.blocks:
        block.forward = torch.compile(block.forward, backend="eager")
    return model


def distributed(model):
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(model)


WRAPPERS = {
    "compiled": compiled,
    "compiled in place": in_place,
    "blocks compiled": by_blocks,
    "forward of blocks compiled": by_forward,
    "DataParallel": nn.DataParallel,
    "DistributedDataParallel": distributed,
    "both": lambda model: compiled(nn.DataParallel(model)),
}


def within(context):
    """What the model says inside of this."""

    def measure(model):
        with context(model):
            return model(TOKENS)

    return measure


def recorded(model):
    with record(model, [STREAM, f"{STREAM}.mlp.input"]) as seen:
        model(TOKENS)
    return seen


def attended(model):
    with record_attention(model) as weights:
        model(TOKENS)
    return weights


def last(logits):
    return logits[:, -1, 0]


MEASURES = {
    "record": recorded,
    "record_attention": attended,
    "attention_weights": lambda model: attention_weights(model, (TOKENS,)),
    "patch": within(lambda model: patch(model, {STREAM: torch.zeros_like})),
    "ablate": within(lambda model: ablate(model, [f"{STREAM}.mlp"], "mean")),
    "mask_heads": within(lambda model: mask_heads(model, [(0, 1)])),
    "mask_heads by name": within(lambda model: mask_heads(model, [(f"{STREAM}.self_attention", 1)])),
    "ablation": lambda model: ablation(model, lambda model: language_loss(model, TOKENS)),
    "patching_grid": lambda model: patching_grid(model, (TOKENS,), (OTHER,), [STREAM], last),
    "patch_path": within(lambda model: patch_path(model, TOKENS, OTHER, (0, 0), (1, 1, "k"))),
    "logit_attribution": lambda model: logit_attribution(model, TOKENS, OTHER),
    "induction_scores": lambda model: vars(induction_scores(model, TOKENS, 4)),
    "hidden_place": within(lambda model: hidden_place(model, 0)),
    "silent_place": within(lambda model: silent_place(model, 0)),
    "stream_after_blocks": lambda model: stream_after_blocks(model, TOKENS),
    "layer_means": lambda model: layer_means(model, TOKENS),
    "coordinate_check": lambda model: activations(model, TOKENS),
}


FOR_ALL = ("record", "record_attention", "patch", "mask_heads")  # which all others are made of
PAIRS = [(m, w) for m in MEASURES for w in WRAPPERS if m in FOR_ALL or w in ("compiled", "DataParallel")]


@pytest.mark.parametrize(("name", "wrapper"), PAIRS)
@torch.no_grad()
def test_a_measure_is_the_same_whatever_the_model_is_wrapped_in(name, wrapper):
    torch._dynamo.reset()
    expected = MEASURES[name](gpt())
    model = WRAPPERS[wrapper](gpt())
    before = model(TOKENS)  # compiled code exists before any hook
    torch.testing.assert_close(MEASURES[name](model), expected)
    torch.testing.assert_close(model(TOKENS), before)  # and is not changed by what was measured


@torch.no_grad()
def test_what_changes_nothing_says_so():
    traced = torch.jit.trace(gpt(), TOKENS)
    with pytest.raises(RuntimeError, match="nothing was changed"), patch(traced, {STREAM: torch.zeros_like}):
        traced(TOKENS)
    model = gpt()
    with pytest.raises(RuntimeError, match="nothing was changed"), mask_heads(model, [(0, 1)]):
        pass


def test_copies_on_several_devices_are_refused():
    model = nn.DataParallel(gpt())
    model.device_ids = [0, 1]
    with pytest.raises(ValueError, match="2 copies"), record(model, [STREAM]):
        pass
