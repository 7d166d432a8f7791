"""GGUF files of Llama's family: one file with settings, tokenizer and tensors, which may be quantised.

The package gguf reads and dequantises them. The file's names differ from those of `transformers`, and the
rows of W_q and W_k stand in the order in which our `Rotary` pairs them: who wrote the file has done what
`llama.neighbours` does.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained.foreign_weights import Source, built, fill, renamed
from tformer_lib.pretrained.rope import DividedBy, LinearScaling
from tformer_lib.pretrained.settings import Settings

LINEARS = {
    "attn_q": "self_attention.W_q",
    "attn_k": "self_attention.W_k",
    "attn_v": "self_attention.W_v",
    "attn_output": "self_attention.W_o",
    "ffn_gate": "mlp.W_gate",
    "ffn_up": "mlp.W_in",
    "ffn_down": "mlp.W_out",
}


def load_gguf(
    path: str | os.PathLike[str],
    *,
    dtype: torch.dtype = torch.float32,
    make_backend: Callable[[], Backend] | None = None,
) -> GPT:
    """The model of a GGUF file of the architecture "llama", with what was quantised as numbers again.

    As in `load`, every tensor is used, every parameter filled, and every shape compared. The numbers are
    those that the file stands for, not those that were there before they were quantised.

    Args:
        path: the file.
        dtype: of the parameters.
        make_backend: builds a backend for each attention layer.

    Raises:
        ImportError: if the package gguf is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, of another architecture, or does not fit the model it describes.
    """
    return gguf_model(*read_gguf(path), dtype=dtype, make_backend=make_backend)


def gguf_model(
    settings: Settings,
    tensors: dict[str, Tensor],
    *,
    dtype: torch.dtype = torch.float32,
    make_backend: Callable[[], Backend] | None = None,
) -> GPT:
    """What `load_gguf` returns, from what `read_gguf` returns.

    Raises:
        ValueError: as `load_gguf`.
    """
    settings.one_of("general.architecture", "llama")
    factors = tensors.get("rope_freqs.weight")
    model = built(settings, lambda: _build(settings.beside(tensors), tensors, factors, make_backend))
    fill(model, tensors, _sources(model), where=settings.where, dtype=dtype, ignored=r"rope_freqs\.weight")
    return model.eval()


def read_gguf(path: str | os.PathLike[str], *, tensors: bool = True) -> tuple[Settings, dict[str, Tensor]]:
    """The file's settings, and its tensors as float32; without the tensors, if these are not asked for.

    Raises:
        ImportError: if the package gguf is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, or quantised in a way that the package cannot undo.
    """
    try:
        from gguf import GGUFReader, dequantize
    except ImportError as error:
        raise ImportError(
            "GGUF files are read by the package gguf: pip install 'tformer-lib[smollm2]'"
        ) from error
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")

    class Reader(GGUFReader):
        """Reads nothing beyond the end, where the package finds empty arrays, as many as it is told."""

        def _get(self, offset: Any, dtype: Any, count: Any = 1, *args: Any, **kwargs: Any) -> Any:
            found = super()._get(offset, dtype, count, *args, **kwargs)
            if len(found) != count:
                raise ValueError(f"it ends before byte {offset}, where {count} numbers should begin")
            return found

    try:
        file = Reader(path)
        values = {name: field.contents() for name, field in file.fields.items()}
        held = {
            tensor.name: torch.tensor(dequantize(tensor.data, tensor.tensor_type)).reshape(
                *(int(n) for n in reversed(tensor.shape))
            )
            for tensor in (file.tensors if tensors else ())
        }
    except Exception as error:  # whatever a damaged file makes the package raise
        raise ValueError(f"{path} is no GGUF file that can be read, or not a whole one: {error}") from error
    return Settings(str(path), values), held


def _build(
    settings: Settings,
    tensors: dict[str, Any],
    factors: Tensor | None,
    make_backend: Callable[[], Backend] | None,
) -> GPT:
    width, heads = settings.whole("llama.embedding_length"), settings.whole("llama.attention.head_count")
    config = TransformerConfig(
        d_model=width,
        n_heads=heads,
        n_blocks=settings.blocks("llama.block_count"),
        d_hidden=settings.whole("llama.feed_forward_length"),
        n_kv_heads=settings.whole("llama.attention.head_count_kv", heads),
        norm="rms",
        norm_eps=settings.number("llama.attention.layer_norm_rms_epsilon"),
        activation="swiglu",
        bias="blk.0.attn_q.bias" in tensors,
    )
    for name in ("llama.rope.dimension_count", "llama.attention.key_length", "llama.attention.value_length"):
        settings.one_of(name, width // heads)
    rescale: Callable[[Tensor], Tensor] | None = None
    if factors is not None:
        rescale = DividedBy(tuple(factors.tolist()))
    elif settings.one_of("llama.rope.scaling.type", "none", "linear") == "linear":
        rescale = LinearScaling(settings.number("llama.rope.scaling.factor"))
    base = settings.number("llama.rope.freq_base", 10000.0)
    vocab = settings.whole("llama.vocab_size", len(settings.get("tokenizer.ggml.tokens", [])))
    rotary = Rotary(width // heads, base, rescale=rescale)
    return GPT(config, vocab, rotary=rotary, make_backend=make_backend, tied="output.weight" not in tensors)


def _sources(model: GPT) -> list[Source]:
    """What the file must hold: the model's own parameters under other names, with the shapes of these."""
    names = {"token_embd": "embed", "output_norm": "transformer.final_norm", "output": "head"}
    for i in range(model.config.n_blocks):
        ours = f"transformer.blocks.{i}"
        names |= {
            f"blk.{i}.attn_norm": f"{ours}.self_attention_norm",
            f"blk.{i}.ffn_norm": f"{ours}.mlp_norm",
        }
        names |= {f"blk.{i}.{theirs}": f"{ours}.{name}" for theirs, name in LINEARS.items()}
    return renamed(model, names)
