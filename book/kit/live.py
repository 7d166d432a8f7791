"""The model that writes in the page, as data: whole numbers of eight bits, a scale for each row.

`live_model.json`, beside this file, is its only copy. Chapters load it by `live_model`; the site makes a
script of it (`book/site/extensions/tformer_live.py`).
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tformer_book.kit.models.recipes import MODERN
from tformer_lib.core.attention import Attend
from tformer_lib.models.gpt import GPT
from tformer_lib.tokenizers import CharTokenizer

FILE = Path(__file__).with_name("live_model.json")


def quantised_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """w[i, j] is nearly s[i] n[i, j], with whole n in [-127, 127] and s[i] = max_j |w[i, j]| / 127.

    The error of an entry is at most s[i] / 2.

    Args:
        weight: (rows, columns), finite.

    Returns:
        n (rows, columns) in int8 and s (rows,) in float32; a row of zeros has the scale 1.

    Raises:
        ValueError: if the weight is no matrix, or not finite.
    """
    if weight.ndim != 2:
        raise ValueError(f"rows are those of a matrix, got the shape {tuple(weight.shape)}")
    if not weight.isfinite().all():
        raise ValueError("the matrix holds NaN or infinity")
    largest = weight.float().abs().amax(dim=1)
    scale = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return (weight.float() / scale[:, None]).round().to(torch.int8), scale


def quantise_(model: nn.Module) -> nn.Module:
    """Puts s[i] n[i, j] in the place of each matrix: what the page computes with."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                whole, scale = quantised_rows(parameter)
                parameter.copy_(whole.float() * scale[:, None])
    return model


def packed(model: nn.Module) -> tuple[list[list[Any]], bytes]:
    """All parameters, one after the other, and a list of their names and shapes in that order.

    Of a matrix first the scales (float32, little-endian) and then the whole numbers (int8), row by row; of
    a vector its numbers (float32). A parameter that stands in two places is packed once.
    """
    listed: list[list[Any]] = []
    parts: list[bytes] = []
    for name, parameter in model.named_parameters():
        data = parameter.detach().cpu()
        if data.ndim == 2:
            whole, scale = quantised_rows(data)
            parts += [scale.numpy().astype("<f4").tobytes(), whole.numpy().tobytes()]
        else:
            parts.append(data.float().numpy().astype("<f4").tobytes())
        listed.append([name, list(data.shape)])
    return listed, b"".join(parts)


def unpacked(listed: list[list[Any]], data: bytes) -> dict[str, Tensor]:
    """The parameters that `packed` made bytes of, as float32.

    Raises:
        ValueError: if there are fewer or more bytes than the shapes ask for.
    """
    needed = sum(4 * s[0] + s[0] * s[1] if len(s) == 2 else 4 * int(np.prod(s)) for _, s in listed)
    if needed != len(data):
        raise ValueError(f"these shapes take {needed:,} bytes, got {len(data):,}")
    found, at = {}, 0
    for name, shape in listed:
        rows = shape[0]
        numbers = torch.from_numpy(np.frombuffer(data, "<f4", rows, at).astype(np.float32))
        at += 4 * rows
        if len(shape) == 2:
            whole = np.frombuffer(data, np.int8, rows * shape[1], at).reshape(shape)
            at += rows * shape[1]
            numbers = torch.from_numpy(whole.astype(np.float32)) * numbers[:, None]
        found[name] = numbers
    return found


def as_json(model: nn.Module, letters: str, facts: Mapping[str, Any]) -> str:
    """A line of JSON: facts, letters, names and shapes, bytes in base 64."""
    listed, data = packed(model)
    content = {**facts, "letters": letters, "parameters": listed, "data": base64.b64encode(data).decode()}
    return json.dumps(content, ensure_ascii=True) + "\n"


def from_json(text: str) -> dict[str, Any]:
    """What `as_json` wrote; "weights" are the parameters by name.

    Raises:
        ValueError: if the text is no such JSON, or its bytes do not fit its shapes.
    """
    try:
        content = json.loads(text)
        content["weights"] = unpacked(content["parameters"], base64.b64decode(content.pop("data")))
        content["letters"]  # without which nobody could read with them
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"a model that as_json wrote is expected, got {text[:40]!r}") from error
    return content


def as_script(text: str) -> str:
    """A script that sets `window.TformerModel` to what `as_json` wrote.

    The site is built without PyTorch, and says the same in `book/site/extensions/tformer_live.py`.
    """
    return f"window.TformerModel = {text.strip()};\n"


def from_script(text: str) -> dict[str, Any]:
    """What `from_json` reads, of a script that `as_script` wrote.

    Raises:
        ValueError: if the text is not such a script.
    """
    head, tail = "window.TformerModel = ", ";\n"
    if not (text.startswith(head) and text.endswith(tail)):
        raise ValueError(f"a script that begins with {head!r} is expected, got {text[:40]!r}")
    return from_json(text.removeprefix(head).removesuffix(tail))


def live_model(file: Path = FILE) -> tuple[GPT, CharTokenizer]:
    """The GPT that writes in the page, and its letters: the weights of eight bits as float32.

    `kit/experiments/live_model.py` has trained it on Shakespeare's plays, by the recipe MODERN: 4 blocks of
    width 128 with 4 heads. It reads 128 letters at most, shows its attention weights (`Attend`) and is in
    evaluation mode. The global generator of random numbers is left as it is.

    Raises:
        FileNotFoundError: if the file is not there.
        ValueError: if it does not hold this model.
    """
    content = from_json(file.read_text("utf8"))
    recipe = replace(MODERN, initialise=None)
    with torch.random.fork_rng(devices=[]):
        model = recipe.build(len(content["letters"]))
    try:
        model.load_state_dict(content["weights"])
    except RuntimeError as error:
        raise ValueError(f"{file.name} holds another model than the recipe MODERN makes: {error}") from error
    blocks: Any = model.transformer.blocks
    for block in blocks:
        block.self_attention.backend = Attend()
    return model.eval(), CharTokenizer(content["letters"])
