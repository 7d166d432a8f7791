"""A folder of text files, read a document at a time."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tformer_lib.numbers import brief


class TextFolder:
    """The documents of all files in a folder and below it, in the order of their names; loop over it again.

    Each item is (name, text), where the name is the path within the folder. A document is a file, or, with
    a `separator`, what stands between two of these in a file. Documents of blanks alone are left out. Only
    one file at a time is in memory.

    Args:
        folder: where the files are.
        pattern: what their names look like, such as "*.txt" or "*.md".
        encoding: how they are written, such as "utf-8" or "latin-1".
        separator: a string between documents within a file, such as "<|endoftext|>"; none if None.

    Raises:
        ValueError: if there is no such folder or no such file in it, the encoding is unknown, or the
            separator is empty; while reading, if no document has any text, or if a file is not in that
            encoding: the message names the file and the place.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        pattern: str = "*.txt",
        encoding: str = "utf-8",
        separator: str | None = None,
    ):
        self.folder, self.pattern, self.encoding, self.separator = Path(folder), pattern, encoding, separator
        try:
            "a".encode(encoding)
        except LookupError:
            raise ValueError(f"there is no encoding {brief(encoding)} of text") from None
        if separator == "":
            raise ValueError("the separator of documents is empty")
        self.files()

    def files(self) -> list[Path]:
        """The files, sorted by their paths; hidden ones, and those in hidden folders, are left out.

        Raises:
            ValueError: as the class.
        """
        if not self.folder.is_dir():
            raise ValueError(f"there is no text: {self.folder} is no folder")
        found = [p for p in self.folder.rglob(self.pattern) if p.is_file() and not self._is_hidden(p)]
        if not found:
            kinds = Counter(p.suffix or "none" for p in self.folder.rglob("*") if p.is_file())
            there = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(3)) or "nothing at all"
            raise ValueError(
                f"there is no text: no file in {self.folder} is called {self.pattern} (it holds {there})"
            )
        return sorted(found, key=lambda p: p.relative_to(self.folder).as_posix())

    def _is_hidden(self, path: Path) -> bool:
        return any(part.startswith(".") for part in path.relative_to(self.folder).parts)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        empty = True
        for path in self.files():
            name, text = path.relative_to(self.folder).as_posix(), self._read(path)
            pieces = [text] if self.separator is None else text.split(self.separator)
            for number, piece in enumerate(pieces):
                if piece.strip():
                    empty = False
                    yield (name if self.separator is None else f"{name} {number}"), piece
        if empty:
            raise ValueError(f"there is no text: the files {self.pattern} in {self.folder} are empty")

    def _read(self, path: Path) -> str:
        """The text of a file, without the mark that some editors put in front."""
        try:
            return path.read_bytes().decode(self.encoding).removeprefix("\ufeff")
        except UnicodeError as error:
            raise ValueError(
                f"{path} cannot be read as {self.encoding}: {error}; is it in another encoding?"
            ) from error

    def checksum(self) -> str:
        """SHA-256 of the files' names and bytes, and of how they are read: other texts have another."""
        found = hashlib.sha256(repr((self.encoding, self.separator)).encode())
        for path in self.files():
            name, content = path.relative_to(self.folder).as_posix(), path.read_bytes()
            found.update(f"\n{name} {len(content)}\n".encode())
            found.update(content)
        return found.hexdigest()
