"""`torch.compile(fullgraph=True)` and `torch.export`: run by `test_untyped.py`, without run-time types."""

import pytest
import torch
from torch.export import Dim, export

from tformer_lib import GPT, TransformerConfig
from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions, Rotary, Rotary2D
from tformer_lib.models.bert import BERT, bert_config
from tformer_lib.models.translator import Translator
from tformer_lib.models.vit import ViT

SMALL = TransformerConfig(d_model=16, n_heads=2, n_blocks=1)
TWO = TransformerConfig(d_model=16, n_heads=2, n_blocks=2)  # which share a table of rotations
TOKENS = torch.randint(9, (2, 7), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
MODELS = {
    "GPT, learned": (lambda: GPT(SMALL, 9, positions=LearnedPositions(12, 16)), (TOKENS,)),
    "GPT, rotary": (lambda: GPT(TWO, 9, rotary=Rotary(8)), (TOKENS,)),
    "GPT, fused": (lambda: GPT(TWO, 9, rotary=Rotary(8), make_backend=FusedAttend), (TOKENS,)),
    "BERT": (lambda: BERT(bert_config(d_model=16, n_heads=2, n_blocks=2), 9, max_len=12), (TOKENS,)),
    "ViT": (lambda: ViT(SMALL, image_size=8, patch_size=4), (IMAGES,)),
    "ViT, rotary": (lambda: ViT(TWO, image_size=8, patch_size=4, rotary=Rotary2D(8, (2, 2))), (IMAGES,)),
    "translator": (lambda: Translator(SMALL, 9), (TOKENS, TOKENS)),
}
models = pytest.mark.parametrize("name", MODELS)
FLOATS = [(name, torch.float32) for name in MODELS]
# What looks at the type of numbers: rotations of one axis and of two, kernels, places that are computed.
HALVES = [(name, torch.bfloat16) for name in ("GPT, rotary", "GPT, fused", "ViT, rotary", "translator")]


def case(name, dtype):
    torch._dynamo.reset()
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    return make().eval().to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


@pytest.mark.parametrize(("name", "dtype"), FLOATS + HALVES, ids=str)
def test_one_graph_says_what_the_model_says(name, dtype):
    model, inputs = case(name, dtype)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*inputs), model(*inputs))
    longer = tuple(x if x.is_floating_point() else x.repeat(1, 2)[:, :9] for x in inputs)
    torch.testing.assert_close(compiled(*longer), model(*longer))


@models
def test_one_graph_has_the_model_s_gradients(name):
    model, inputs = case(name, torch.float32)
    gradients = []
    for called in (model, torch.compile(model, fullgraph=True, backend="eager")):
        model.zero_grad()
        called(*inputs).square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    ("name", "dtype", "strict"),
    [(*each, strict) for each in FLOATS for strict in (False, True)] + [(*each, False) for each in HALVES],
    ids=str,
)
def test_export_first_and_the_model_afterwards(name, dtype, strict):
    """What an export computes stays in it: tables of rotations are remembered from call to call."""
    model, inputs = case(name, dtype)
    exported = export(model, inputs, strict=strict).module()
    torch.testing.assert_close(exported(*inputs), model(*inputs))


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("GPT")])
@pytest.mark.parametrize("strict", [False, True])
def test_a_gpt_with_an_open_batch_and_length(name, strict):
    model, inputs = case(name, torch.float32)
    shapes = {"tokens": {0: Dim("B"), 1: Dim("N", min=2, max=12)}}
    exported = export(model, inputs, dynamic_shapes=shapes, strict=strict).module()
    for shape in ((2, 7), (5, 3), (1, 12)):
        tokens = torch.randint(9, shape)
        torch.testing.assert_close(exported(tokens), model(tokens))


def test_a_token_outside_is_told_where_nothing_is_compiled():
    model, _ = case("GPT, rotary", torch.float32)
    with pytest.raises(ValueError, match="0 to 8"):
        model(torch.full((1, 2), 9))
