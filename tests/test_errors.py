"""Wrong input is refused with an error that names both sides, with and without run-time type checks."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, attention, causal_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.cache import KVCache, LayerCache
from tformer_lib.core.positions import ALiBi, LearnedPositions, Rotary, SinusoidalPositions, sinusoidal
from tformer_lib.core.transformer import MLP, Block
from tformer_lib.generation import generate, next_token_probabilities
from tformer_lib.models.gpt import GPT
from tformer_lib.models.vit import ViT

x = torch.randn(2, 5, 16)
layer = MultiHeadAttention(16, 4)
config = TransformerConfig(d_model=16, n_heads=4, n_blocks=1)
decoder = Transformer(TransformerConfig(d_model=16, n_heads=4, n_blocks=1, cross_attention=True))

gpt = GPT(config, 11, positions=LearnedPositions(8, 16))


@torch.no_grad()
def cached(stack, cache, *inputs, **masks):
    for tokens in inputs:
        stack(tokens, cache=cache, **masks)


@torch.no_grad()
def read(layer, cache, *contexts):
    for context in contexts:
        layer(x, context, cache=cache)


def qkv(q=(2, 4, 5, 8), k=(2, 4, 7, 8), v=(2, 4, 7, 8)):
    return torch.randn(q), torch.randn(k), torch.randn(v)


def ones(*shape):
    return torch.ones(shape, dtype=torch.bool)


# name: (exception, what its message must name, the call)
CASES = {
    "heads do not divide the width": (
        ValueError,
        ["d_model=16", "n_heads=3"],
        lambda: MultiHeadAttention(16, 3),
    ),
    "no heads": (ValueError, ["d_model=16", "n_heads=0"], lambda: MultiHeadAttention(16, 0)),
    "no width": (ValueError, ["d_model=0", "n_heads=4"], lambda: MultiHeadAttention(0, 4)),
    "key heads do not divide heads": (
        ValueError,
        ["n_heads=4", "n_kv_heads=3"],
        lambda: MultiHeadAttention(16, 4, n_kv_heads=3),
    ),
    "two dropouts": (
        ValueError,
        ["dropout=0.1", "FusedAttend"],
        lambda: MultiHeadAttention(16, 4, dropout=0.1, backend=FusedAttend()),
    ),
    "dropout out of range": (ValueError, ["1.5"], lambda: FusedAttend(dropout=1.5)),
    "x has another width": (
        ValueError,
        ["x", "d_model=16", "(2, 5, 17)"],
        lambda: layer(torch.randn(2, 5, 17)),
    ),
    "context has another width": (
        ValueError,
        ["context", "d_model=16", "(2, 7, 12)"],
        lambda: layer(x, torch.randn(2, 7, 12)),
    ),
    "mask is a float": (TypeError, ["boolean", "torch.float32"], lambda: layer(x, mask=torch.ones(5, 5))),
    "mask is an int": (TypeError, ["boolean", "torch.int64"], lambda: layer(x, mask=torch.ones(5, 5).long())),
    "mask is for another length": (
        ValueError,
        ["(4, 4)", "(2, 4, 5, 5)"],
        lambda: layer(x, mask=causal_mask(4)),
    ),
    "mask is a bare padding mask": (
        ValueError,
        ["(2, 5)", "(2, 4, 5, 5)"],
        lambda: layer(x, mask=ones(2, 5)),
    ),
    "mask has too many axes": (
        ValueError,
        ["(1, 1, 5, 7)", "(5, 7)"],
        lambda: attention(*qkv((5, 8), (7, 8), (7, 8)), ones(1, 1, 5, 7)),
    ),
    "mask would enlarge the scores": (
        ValueError,
        ["(3, 1, 1, 7)", "(1, 4, 5, 7)"],
        lambda: Attend()(*qkv((1, 4, 5, 8), (1, 4, 7, 8), (1, 4, 7, 8)), ones(3, 1, 1, 7)),
    ),
    "mask in a stack": (
        ValueError,
        ["(3, 3)", "(2, 4, 5, 5)"],
        lambda: Transformer(config)(x, mask=ones(3, 3)),
    ),
    "context mask in a stack": (
        ValueError,
        ["(5, 6)", "(2, 4, 5, 7)"],
        lambda: decoder(x, torch.randn(2, 7, 16), context_mask=ones(5, 6)),
    ),
    "rotary in cross-attention": (
        ValueError,
        ["rotary", "cross-attention"],
        lambda: MultiHeadAttention(16, 4, rotary=Rotary(4))(x, x),
    ),
    "stack has another width": (
        ValueError,
        ["d_model=16", "(2, 5, 8)"],
        lambda: Transformer(config)(torch.randn(2, 5, 8)),
    ),
    "block has another width": (
        ValueError,
        ["d_model=16", "(2, 5, 8)"],
        lambda: Block(config)(torch.randn(2, 5, 8)),
    ),
    "stack's context has another width": (
        ValueError,
        ["context", "d_model=16", "(2, 7, 8)"],
        lambda: decoder(x, torch.randn(2, 7, 8)),
    ),
    "context missing": (ValueError, ["cross_attention=True", "missing"], lambda: decoder(x)),
    "context unwanted": (ValueError, ["cross_attention=False", "given"], lambda: Transformer(config)(x, x)),
    "context mask alone": (
        ValueError,
        ["context_mask", "no context"],
        lambda: Transformer(config)(x, context_mask=ones(5, 5)),
    ),
    "config: heads do not divide": (
        ValueError,
        ["d_model=16", "n_heads=5"],
        lambda: TransformerConfig(d_model=16, n_heads=5, n_blocks=1),
    ),
    "config: key heads do not divide": (
        ValueError,
        ["n_heads=4", "n_kv_heads=3"],
        lambda: TransformerConfig(d_model=16, n_heads=4, n_blocks=1, n_kv_heads=3),
    ),
    "config: size": (
        ValueError,
        ["n_blocks", "0"],
        lambda: TransformerConfig(d_model=16, n_heads=4, n_blocks=0),
    ),
    "config: dropout": (
        ValueError,
        ["dropout", "1.0"],
        lambda: TransformerConfig(d_model=16, n_heads=4, n_blocks=1, dropout=1.0),
    ),
    "sequence longer than the table": (
        ValueError,
        ["max_len=4", "0 to 4"],
        lambda: LearnedPositions(4, 16)(x),
    ),
    "offset beyond the table": (
        ValueError,
        ["max_len=8", "4 to 8"],
        lambda: LearnedPositions(8, 16)(x, offset=4),
    ),
    "offset before the table": (
        ValueError,
        ["max_len=8", "-1 to 3"],
        lambda: LearnedPositions(8, 16)(x, offset=-1),
    ),
    "table has another width": (
        ValueError,
        ["d_model=8", "(2, 5, 1)"],
        lambda: LearnedPositions(9, 8)(x[..., :1]),
    ),
    "sinusoids have another width": (
        ValueError,
        ["d_model=8", "(2, 5, 16)"],
        lambda: SinusoidalPositions(8)(x),
    ),
    "odd width": (ValueError, ["even", "7"], lambda: sinusoidal(3, 7)),
    "odd width of a module": (ValueError, ["even", "7"], lambda: SinusoidalPositions(7)),
    "odd head": (ValueError, ["even", "5"], lambda: Rotary(5)),
    "rotary of another width": (
        ValueError,
        ["width 6", "(2, 4, 5, 4)"],
        lambda: MultiHeadAttention(16, 4, rotary=Rotary(6))(x),
    ),
    "no slopes": (ValueError, ["n_heads", "0"], lambda: ALiBi(0)),
    "ALiBi with more queries than keys": (ValueError, ["5 queries", "3 keys"], lambda: ALiBi(4)(5, 3)),
    "negative length": (ValueError, ["n=-1"], lambda: causal_mask(-1)),
    "negative past": (ValueError, ["past=-2"], lambda: causal_mask(3, past=-2)),
    "cache of another batch": (
        ValueError,
        ["(2, 4, 4)", "(1, 4, 4)"],
        lambda: cached(layer, LayerCache(), x, x[:1]),
    ),
    "cache while training": (RuntimeError, ["no_grad"], lambda: layer(x, cache=LayerCache())),
    "another context than the cached one": (
        ValueError,
        ["a context of 5 tokens", "has 4"],
        lambda: read(layer, LayerCache(), x, x[:, :4]),
    ),
    "mask without the cached tokens": (
        ValueError,
        ["(5, 5)", "(2, 4, 5, 10)"],
        lambda: cached(Transformer(config), KVCache(1), x, x, mask=causal_mask(5)),
    ),
    "cache beyond the table": (
        ValueError,
        ["max_len=8", "5 to 9"],
        lambda: cached(gpt, gpt.new_cache(), *torch.ones(2, 1, 5).long()),
    ),
    "temperature": (ValueError, ["temperature", "-0.5"], lambda: generate(gpt, [1], 2, temperature=-0.5)),
    "top_k": (ValueError, ["top_k", "0"], lambda: next_token_probabilities(torch.zeros(5), top_k=0)),
    "top_p": (ValueError, ["top_p", "1.5"], lambda: next_token_probabilities(torch.zeros(5), top_p=1.5)),
    "min_p": (ValueError, ["min_p", "1.5"], lambda: next_token_probabilities(torch.zeros(5), min_p=1.5)),
    "no logits": (ValueError, ["NaN"], lambda: next_token_probabilities(torch.full((5,), torch.nan))),
    "empty prompt": (ValueError, ["prompt", "empty"], lambda: generate(gpt, [], 2)),
    "one empty prompt": (ValueError, ["prompt 1", "empty"], lambda: generate(gpt, [[1], []], 2)),
    "unknown token": (ValueError, ["token 11", "of 11"], lambda: generate(gpt, [1, 11], 2)),
    "unknown stop token": (ValueError, ["stop token 12", "of 11"], lambda: generate(gpt, [1], 2, stop=12)),
    "fewer than no tokens": (ValueError, ["max_new_tokens", "-1"], lambda: generate(gpt, [1], -1)),
    "a token beyond the vocabulary": (
        ValueError,
        ["tokens", "0 to 10", "from 3 to 12"],
        lambda: gpt(torch.tensor([[3, 12]])),
    ),
    "a token below the vocabulary": (ValueError, ["0 to 10", "-1"], lambda: gpt(torch.tensor([[3, -1]]))),
    "config: epsilon": (
        ValueError,
        ["norm_eps", "-1.0"],
        lambda: TransformerConfig(d_model=16, n_heads=4, n_blocks=1, norm_eps=-1.0),
    ),
    "config: no epsilon": (
        ValueError,
        ["norm_eps", "nan"],
        lambda: TransformerConfig(d_model=16, n_heads=4, n_blocks=1, norm_eps=float("nan")),
    ),
    "head of no width": (
        ValueError,
        ["width", "(2, 4, 5, 0)"],
        lambda: attention(*qkv((2, 4, 5, 0), (2, 4, 7, 0))),
    ),
    "cache for another stack": (
        ValueError,
        ["2 blocks", "has 1"],
        lambda: cached(Transformer(config), KVCache(2), x),
    ),
    "context beyond the table": (
        ValueError,
        ["context=9", "max_len=8"],
        lambda: generate(gpt, [1], 2, context=9),
    ),
}
for _backend in (Attend, FusedAttend):
    _name = _backend.__name__
    CASES |= {
        f"{_name}: widths of queries and keys": (
            ValueError,
            ["(2, 4, 5, 8)", "(2, 4, 7, 6)"],
            lambda b=_backend: b()(*qkv(k=(2, 4, 7, 6))),
        ),
        f"{_name}: number of keys and values": (
            ValueError,
            ["7 keys", "6 values"],
            lambda b=_backend: b()(*qkv(v=(2, 4, 6, 8))),
        ),
        f"{_name}: mask is not boolean": (
            TypeError,
            ["boolean", "torch.float32"],
            lambda b=_backend: b()(*qkv(), torch.ones(5, 7)),
        ),
        f"{_name}: mask does not broadcast": (
            ValueError,
            ["(7, 5)", "(2, 4, 5, 7)"],
            lambda b=_backend: b()(*qkv(), ones(7, 5)),
        ),
        f"{_name}: score bias for other heads": (
            ValueError,
            ["(8, 5, 7)", "(2, 4, 5, 7)"],
            lambda b=_backend: b(score_bias=ALiBi(8))(*qkv()),
        ),
    }
CASES |= {
    "attention: widths": (
        ValueError,
        ["(2, 4, 5, 8)", "(2, 4, 7, 6)"],
        lambda: attention(*qkv(k=(2, 4, 7, 6))),
    ),
    "attention: number of values": (
        ValueError,
        ["7 keys", "6 values"],
        lambda: attention(*qkv(v=(2, 4, 6, 8))),
    ),
    "attention: mask is not boolean": (
        TypeError,
        ["boolean", "torch.float32"],
        lambda: attention(*qkv(), torch.ones(5, 7)),
    ),
}

# These a run-time type checker refuses first, by the annotation; without one they get our own error.
UNTYPED_CASES = {
    "targets in the place of a cache": (
        TypeError,
        ["model.new_cache()", "language_loss"],
        lambda: gpt(torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 3, dtype=torch.long)),
    ),
    "a backend in the place of a factory": (
        TypeError,
        ["make_backend=FusedAttend", "lambda: FusedAttend(...)"],
        lambda: GPT(config, 11, make_backend=FusedAttend()),
    ),
    "images of bytes": (
        TypeError,
        ["images (pixels / 255)", "uint8"],
        lambda: ViT(config, image_size=4, patch_size=2)(torch.zeros(1, 1, 4, 4, dtype=torch.uint8)),
    ),
    "leading axes": (
        ValueError,
        ["(2, 4, 5, 8)", "(1, 4, 7, 8)"],
        lambda: attention(*qkv(k=(1, 4, 7, 8), v=(1, 4, 7, 8))),
    ),
    "a context for one sequence only": (
        ValueError,
        ["(2, 4, 5, 4)", "(1, 4, 5, 4)"],
        lambda: layer(x, x[:1]),
    ),
    "no batch axis": (ValueError, ["x", "(B, N, d_model=16)", "(5, 16)"], lambda: layer(x[0])),
    "config: choice": (
        ValueError,
        ["norm", "'batch'"],
        lambda: TransformerConfig(d_model=16, n_heads=4, n_blocks=1, norm="batch"),
    ),
    "config: placement": (
        ValueError,
        ["norm_placement", "'middle'"],
        lambda: TransformerConfig(d_model=16, n_heads=4, n_blocks=1, norm_placement="middle"),
    ),
    "half a token more": (TypeError, ["max_new_tokens", "2.5"], lambda: generate(gpt, [1], 5 / 2)),
    "half a stop token": (TypeError, ["stop token", "2.5"], lambda: generate(gpt, [1], 2, stop=2.5)),
    "one axis of tokens": (ValueError, ["(B, N)", "(3,)"], lambda: gpt(torch.ones(3).long())),
    "tokens that are not whole": (TypeError, ["float32"], lambda: gpt(torch.ones(2, 3))),
    "another dtype than the weights": (TypeError, ["float32", "float64"], lambda: layer(x.double())),
    "half a width": (
        TypeError,
        ["d_model", "16.0"],
        lambda: TransformerConfig(d_model=16.0, n_heads=4, n_blocks=1),
    ),
    "mlp: choice": (ValueError, ["activation", "'tanh'"], lambda: MLP(16, activation="tanh")),
}


def verify(exception, parts, call):
    """Checks that the error is exactly of this class (a type checker's is not) and names both sides."""
    with pytest.raises(exception) as caught:
        call()
    message = str(caught.value)
    assert caught.type is exception, f"{caught.type.__name__}: {message}"
    assert not [part for part in parts if part not in message], message


@pytest.mark.parametrize(("exception", "parts", "call"), CASES.values(), ids=CASES)
def test_error(exception, parts, call):
    verify(exception, parts, call)


def test_the_same_errors_without_run_time_types():
    """A fresh interpreter without the import hook, which is how readers use the package."""
    code = (
        "import test_errors as t\n"
        "from tformer_lib.core.masks import causal_mask\n"
        "assert not hasattr(causal_mask, '__wrapped__'), 'types are checked here'\n"
        "cases = t.CASES | t.UNTYPED_CASES\n"
        "for case in cases.values(): t.verify(*case)\n"
        "print(len(cases))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) == len(CASES) + len(UNTYPED_CASES)


def test_run_time_types_are_on_in_these_tests():
    """Else the tests above would prove less than they say."""
    with pytest.raises(TypeError, match="Type-check error"):
        causal_mask("3")
    with pytest.raises(TypeError, match="Type-check error"):
        attention(*(t.long() for t in qkv()))


def test_a_bare_padding_mask_is_only_caught_when_its_shape_tells():
    """(B, S) with B = N is a mask in its own right, read as (N, S): the docstring warns of it."""
    square = torch.randn(5, 5, 16)
    assert layer(square, mask=ones(5, 5)).shape == (5, 5, 16)
    assert "(B, S)" in MultiHeadAttention.forward.__doc__
