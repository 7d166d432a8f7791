"""A checkpoint in a folder, as `transformers` saves it, becomes a `GPT`, a `BERT`, a `ViT` or a `Marian`."""

import os
from collections.abc import Callable
from pathlib import Path

import torch

from tformer_lib.core.attention import Backend
from tformer_lib.models.bert import BERT, PretrainingBERT
from tformer_lib.models.gpt import GPT
from tformer_lib.models.vit import ViT
from tformer_lib.numbers import brief
from tformer_lib.pretrained import bert, gpt2, llama, marian, vit
from tformer_lib.pretrained.foreign_weights import built, fill, read_tensors
from tformer_lib.pretrained.settings import Settings

# by the model_type that config.json states
FAMILIES = {"bert": bert, "gpt2": gpt2, "llama": llama, "marian": marian, "mistral": llama, "vit": vit}


def load(
    folder: str | os.PathLike[str],
    *,
    dtype: torch.dtype = torch.float32,
    make_backend: Callable[[], Backend] | None = None,
) -> GPT | BERT | PretrainingBERT | ViT | marian.Marian:
    """The model of a folder with a `config.json` and `model.safetensors`, or its shards with their index.

    Every tensor of the file is used, every parameter is filled, and every shape compared; nothing is
    unpickled, downloaded, or initialised in order to be overwritten. The model has no dropout, and is in
    evaluation mode. Families are GPT-2 (`model_type` gpt2) and Llama (llama, and mistral without a window),
    which become a `GPT`; BERT (bert), a `PretrainingBERT` where the file has the head for masked tokens, and
    a `BERT` where it has the encoder alone; the vision transformer (vit), a `ViT`, with a head where the file
    has one; and Marian's translators (marian), a `Marian`.

    Args:
        folder: where the checkpoint lies.
        dtype: of the parameters; files in half precision are converted.
        make_backend: builds a backend for each attention layer, for instance `FusedAttend`.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, the model is of another family or of a kind that these do not
            cover, or a size is more than the tensors could fill, or tensors are missing, left over, misshapen
            or not of finite numbers; the message names all of them.
    """
    folder = Path(folder)
    settings = Settings.read(folder / "config.json")
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        supported = ", ".join(map(repr, FAMILIES))
        raise ValueError(
            f"{settings.where}: model_type {brief(kind)} is not supported; supported are {supported}"
        )
    if "quantization_config" in settings.values:
        raise ValueError(f"{settings.where}: quantised checkpoints are not supported")
    family = FAMILIES[kind]
    tensors = read_tensors(folder)
    model = built(settings, lambda: family.build(settings.beside(tensors), make_backend, tensors))
    fill(
        model,
        tensors,
        family.sources(model, tensors),
        where=str(folder),
        dtype=dtype,
        copies=family.copies(model, tensors),
        ignored=family.IGNORED,
    )
    return model.eval()
