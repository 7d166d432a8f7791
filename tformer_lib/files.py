"""Files that are whole or not there: what the package writes, it puts in place in one step."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

# whatever a damaged file makes safetensors raise: among these are wrong lengths, dtypes and names
DAMAGED = (SafetensorError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError)


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` where `path` is, in one step: whoever reads it finds the old content or the new, whole.

    It is written beside the old file, forced to disk, and takes its name by one `os.replace`. If that
    fails, the old file stays and nothing is left beside it; a process that is killed may leave the
    part, which the next one writes over.

    Raises:
        OSError: if it cannot be written; the error names `path`, as that of a full disk alone does not.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):  # a file system that is read only has no part to take away
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    if os.name == "posix":  # the new name has to reach the disk as well
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def parse_json(text: str | bytes) -> Any:
    """What the JSON text holds.

    Raises:
        ValueError: if it is no JSON, or is nested too deep to be read (some ten thousand brackets).
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds.

    Raises:
        ValueError: if it is none; the error names the file.
    """
    try:
        return parse_json(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from error


def checksum_of(path: Path) -> str:
    """SHA-256 of a file, read piece by piece."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
