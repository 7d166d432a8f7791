"""Tokenizers on disk: one JSON file each, written in one step and checked when read."""

import json
import os
from typing import Any, get_args, get_origin

from tformer_lib.files import read_json, replace_file


def save_json(path: str | os.PathLike[str], kind: str, content: dict[str, Any]) -> None:
    """Write {"kind": kind, ...content}, in one step."""
    text = json.dumps({"kind": kind, **content}, ensure_ascii=True, indent=0)
    replace_file(path, text.encode())


def load_json(
    path: str | os.PathLike[str], kind: str, fields: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What `save_json` wrote.

    Args:
        path: the file.
        kind: what the file must say that it is.
        fields: the fields that it must have and their types: str, or list[str] and the like.
        optional: fields that older files do not have, and what counts for them there.

    Raises:
        ValueError: if the file is no JSON, is of another kind, or lacks a field or has it of another type;
            the message says which.
    """
    content = read_json(path)
    found = content.get("kind") if isinstance(content, dict) else None
    if found != kind:
        raise ValueError(f"{path} is not a {kind}: its kind is {found!r}")
    content = (optional or {}) | content
    types = fields | {name: type(value) for name, value in (optional or {}).items()}
    for field, type_ in types.items():
        value: Any = content.get(field)
        whole: Any = get_origin(type_) or type_
        items = get_args(type_)
        if not isinstance(value, whole) or (items and not all(isinstance(item, items) for item in value)):
            raise ValueError(f"{path}: the field {field!r} is missing or is not of type {type_}")
    return content
