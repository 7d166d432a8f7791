"""Tokenizers on disk: one JSON file each, written in one step and checked when read."""

import json
import os
from pathlib import Path
from typing import Any, get_args, get_origin

from tformer_lib.files import replace_file


def save_json(path: str | os.PathLike[str], kind: str, content: dict[str, Any]) -> None:
    """Write {"kind": kind, ...content}, in one step."""
    text = json.dumps({"kind": kind, **content}, ensure_ascii=True, indent=0)
    replace_file(path, text.encode())


def load_json(path: str | os.PathLike[str], kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What `save_json` wrote.

    Args:
        path: the file.
        kind: what the file must say that it is.
        fields: the fields that it must have and their types: str, or list[str] and the like.

    Raises:
        ValueError: if the file is no JSON, is of another kind, or lacks a field or has it of another type;
            the message says which.
    """
    try:
        content = json.loads(Path(path).read_text("utf8"))
    except ValueError as error:  # UnicodeDecodeError is one
        raise ValueError(f"{path} is not a JSON file: {error}") from error
    found = content.get("kind") if isinstance(content, dict) else None
    if found != kind:
        raise ValueError(f"{path} is not a {kind}: its kind is {found!r}")
    for field, type_ in fields.items():
        value: Any = content.get(field)
        whole = get_origin(type_) or type_
        if not isinstance(value, whole) or not all(
            isinstance(item, get_args(type_) or str) for item in value
        ):
            raise ValueError(f"{path}: the field {field!r} is missing or is not of type {type_}")
    return content
