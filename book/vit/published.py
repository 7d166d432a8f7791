"""A photograph shown to a vision transformer that others trained, from a folder of Hugging Face's layout."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from tformer_lib import record_attention
from tformer_lib.analysis import attention_rollout
from tformer_lib.models.vit import ViT
from tformer_lib.pretrained import load

NAME = "preprocessor_config.json"


@dataclass
class Seen:
    """What a model says of a photograph.

    `rollout` is how much of each patch would be in the class token's output if blocks only mixed tokens.
    """

    names: list[tuple[str, float]]  # the likeliest classes and their probabilities, the best first
    picture: Float[Tensor, "H W 3"]  # in [0, 1], what the model was shown, before it was standardised
    rollout: Float[Tensor, "rows columns"]
    last: Float[Tensor, "rows columns"]  # the class token's weights in the last block, the heads' mean


def cropped(photograph: Any, settings: Mapping[str, Any]) -> Float[Tensor, "H W 3"]:
    """A photograph (H, W, 3) of bytes in the size that the settings ask for, in [0, 1].

    A size of height and width squeezes it; a shortest edge keeps its shape, and `crop_size`, if it is to be
    cropped, cuts out the middle. Both are those of `preprocessor_config.json`.
    """
    picture, size = Image.fromarray(np.asarray(photograph)).convert("RGB"), settings.get("size", 224)
    if settings.get("do_resize", True):
        if isinstance(size, Mapping) and "shortest_edge" in size:
            edge, (width, height) = size["shortest_edge"], picture.size
            short = min(width, height)
            wanted = (int(edge * width / short), int(edge * height / short))
        else:
            wanted = _width_height(size)
        picture = picture.resize(wanted, Image.Resampling(settings.get("resample", 2)))
    if settings.get("do_center_crop", False):
        width, height = _width_height(settings["crop_size"])
        left, top = (picture.width - width) // 2, (picture.height - height) // 2
        picture = picture.crop((left, top, left + width, top + height))
    return torch.from_numpy(np.array(picture)).float() / 255


def standardised(picture: Float[Tensor, "H W 3"], settings: Mapping[str, Any]) -> Float[Tensor, "1 3 H W"]:
    """Each colour less its mean, over its standard deviation, both those of the settings."""
    if settings.get("do_normalize", True):
        picture = (picture - torch.tensor(settings["image_mean"])) / torch.tensor(settings["image_std"])
    return picture.permute(2, 0, 1)[None]


def _width_height(size: Any) -> tuple[int, int]:
    return (size["width"], size["height"]) if isinstance(size, Mapping) else (size, size)


class Published:
    """A folder with `config.json`, `model.safetensors` and `preprocessor_config.json`, ready to look.

    `Published(folder).look(photograph)` is all that it takes.

    Args:
        folder: of a vision transformer with a classifier, as `transformers` saves it.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the model has no classifier, or as `tformer_lib.pretrained.load`.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        model = load(folder)
        if not isinstance(model, ViT) or model.head is None:
            raise ValueError(f"{folder} holds no vision transformer with a classifier")
        self.model = model
        self.settings = json.loads((Path(folder) / NAME).read_text("utf8"))
        names = json.loads((Path(folder) / "config.json").read_text("utf8")).get("id2label", {})
        self.names = [names.get(str(n), str(n)) for n in range(model.head.out_features)]

    def prepare(self, photograph: Any) -> Float[Tensor, "1 3 H W"]:
        """What the model reads of a photograph, (H, W, 3) of bytes."""
        return standardised(cropped(photograph, self.settings), self.settings)

    @torch.no_grad()
    def look(self, photograph: Any, most: int = 5) -> Seen:
        """The likeliest classes of a photograph, (H, W, 3) of bytes, and what the class token attends to."""
        with record_attention(self.model) as weights:
            p = self.model(self.prepare(photograph))[0].softmax(dim=0)
        best = p.topk(min(most, len(p)))
        names = [(self.names[n], q) for q, n in zip(best.values.tolist(), best.indices.tolist(), strict=True)]
        last = list(weights.values())[-1].mean(dim=1)
        rolled = attention_rollout(weights)
        maps = [of[0, 0, self.model.before :].reshape(self.model.grid) for of in (rolled, last)]
        return Seen(names, cropped(photograph, self.settings), *maps)
