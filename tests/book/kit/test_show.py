"""`show_source`: the library's own text, as a block that can be highlighted."""

import ast
import inspect

import pytest
import torch

import tformer_lib.core.masks
from tformer_book import show_source
from tformer_book.kit.show import Source
from tformer_lib import MultiHeadAttention, attention, causal_mask


@pytest.mark.parametrize(
    ("obj", "start"),
    [
        (causal_mask, "def causal_mask("),
        (attention, "def attention("),
        (MultiHeadAttention, "class MultiHeadAttention("),
        (MultiHeadAttention.forward, "@undone_if_refused\ndef forward("),
        (MultiHeadAttention.split_heads, "def split_heads("),
        (tformer_lib.core.masks, '"""Masks:'),
    ],
    ids=["function", "longer function", "class", "method", "short method", "module"],
)
def test_source(obj, start):
    source = show_source(obj)
    assert source.code.startswith(start)
    ast.parse(source.code)  # a method's body, too, is indented as Python wants it
    assert source.code == source.code.rstrip()
    assert repr(source) == source.code
    assert source._repr_markdown_() == f"```python\n{source.code}\n```"


def test_a_method_keeps_its_body_indented():
    lines = show_source(MultiHeadAttention.merge_heads).code.splitlines()
    assert lines[0].startswith("def ")
    assert lines[1].startswith('    """')
    assert lines[-1].startswith("    return ")


def test_what_is_shown_is_what_runs():
    file = inspect.getsourcefile(tformer_lib.core.masks)
    with open(file) as f:
        assert show_source(causal_mask).code in f.read()


def test_source_with_a_fence_in_it():
    assert Source('"""\n```\n"""')._repr_markdown_() == '````python\n"""\n```\n"""\n````'


@pytest.mark.parametrize("obj", [3, "text", len, torch.tensor(1.0), dict], ids=repr)
def test_no_source(obj):
    with pytest.raises(TypeError, match="show_source needs a class, a function or a module, got"):
        show_source(obj)
