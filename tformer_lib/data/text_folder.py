"""A folder of text files, read a document at a time."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tformer_lib.numbers import brief

CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")  # those that no text needs: not tabs and ends of lines
MOST_CONTROLS = 0.01  # a file with a larger share of them is no text


class TextFolder:
    """The documents of all files in a folder and below it, in the order of their names; loop over it again.

    Each item is (name, text), where the name is the path within the folder. A document is a file, or, with
    a `separator`, what stands between two of these in a file. Documents of blanks alone are left out. Only
    one file at a time is in memory. Links to folders are followed, and no folder is read twice. An end of
    line in the separator is found as "\\n" and as "\\r\\n".

    Args:
        folder: where the files are.
        pattern: what their names look like, such as "*.txt" or "*.md".
        encoding: how they are written, such as "utf-8" or "latin-1".
        separator: a string between documents within a file, such as "<|endoftext|>"; none if None.
        without: files and folders to leave out.

    Raises:
        ValueError: if there is no such folder or no such file in it, the encoding is unknown, or the
            separator is empty; while reading, if no document has any text, if the separator is in no file,
            if a file is not in that encoding, or if more than one in a hundred of its characters are
            control characters, as in a picture or a program: the message names the file.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        pattern: str = "*.txt",
        encoding: str = "utf-8",
        separator: str | None = None,
        without: Iterable[str | os.PathLike[str]] = (),
    ):
        self.folder, self.pattern, self.encoding, self.separator = Path(folder), pattern, encoding, separator
        self.without = [Path(path).resolve() for path in without]
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
        there = self._all_files()
        # `match` reads a pattern from its end, as if "**/" stood before it
        wanted = self.pattern.removeprefix("**/")
        found = [p for p in there if p.relative_to(self.folder).match(wanted)]
        if not found:
            kinds = Counter(p.suffix or "none" for p in there)
            held = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(3)) or "nothing at all"
            raise ValueError(
                f"there is no text: no file in {self.folder} is called {self.pattern} (it holds {held})"
            )
        return sorted(found, key=lambda p: p.relative_to(self.folder).as_posix())

    def _all_files(self) -> list[Path]:
        """Those in the folder and below it that are neither hidden nor left out, whatever they are called."""
        found, seen, waiting = [], set(), [self.folder]
        while waiting:
            links = []
            for place in waiting:
                for here, folders, files in os.walk(place):
                    known = os.stat(here)
                    if (known.st_dev, known.st_ino) in seen:  # a link led here, or leads back
                        folders.clear()
                        continue
                    seen.add((known.st_dev, known.st_ino))
                    folders[:] = sorted(name for name in folders if self._is_wanted(Path(here, name)))
                    links += [Path(here, name) for name in folders if Path(here, name).is_symlink()]
                    found += [Path(here, name) for name in files if self._is_wanted(Path(here, name))]
            waiting = links  # after all real ones, so that a folder has its own name and not a link's
        return [path for path in found if path.is_file()]

    def _is_wanted(self, path: Path) -> bool:
        return not path.name.startswith(".") and not (self.without and path.resolve() in self.without)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        empty, cut, files = True, False, self.files()
        for path in files:
            name, text = path.relative_to(self.folder).as_posix(), self._read(path)
            pieces = self._cut(text)
            cut = cut or len(pieces) > 1
            for number, piece in enumerate(pieces):
                if piece.strip():
                    empty = False
                    yield (name if self.separator is None else f"{name} {number}"), piece
        if empty:
            raise ValueError(f"there is no text: the files {self.pattern} in {self.folder} are empty")
        if self.separator is not None and not cut:
            hint = ""
            if "\\" in self.separator:
                hint = " (it is taken letter by letter: an end of line is $'\\n' in a shell, \"\\n\" in YAML)"
            raise ValueError(
                f"the separator {self.separator!r} is in none of the {len(files)} file(s) {self.pattern} in "
                f"{self.folder}{hint}: leave it out, or give the one that stands there"
            )

    def _cut(self, text: str) -> list[str]:
        """The documents of a file; an end of line in the separator is that of any system."""
        if self.separator is None:
            return [text]
        lines = re.split(r"\r?\n", self.separator)
        return re.split(r"\r?\n".join(map(re.escape, lines)), text)

    def _read(self, path: Path) -> str:
        """The text of a file, without the mark that some editors put in front."""
        try:
            text = path.read_bytes().decode(self.encoding).removeprefix("\ufeff")
        except UnicodeError as error:
            raise ValueError(
                f"{path} cannot be read as {self.encoding}: {error}; is it in another encoding?"
            ) from error
        controls = len(CONTROLS.findall(text))
        if controls > MOST_CONTROLS * len(text):
            nulls = text.count("\0")
            kind = f"{nulls:,} of them NULs" if nulls else "such as those of a program or a picture"
            raise ValueError(
                f"{path} does not look like text: {controls:,} of its {len(text):,} characters are control "
                f"characters, {kind}. Take it out of the folder, or say its encoding if it is in another"
            )
        return text

    def checksum(self) -> str:
        """SHA-256 of the files' names and bytes, and of how they are read: other texts have another."""
        found = hashlib.sha256(repr((self.encoding, self.separator)).encode())
        for path in self.files():
            name, content = path.relative_to(self.folder).as_posix(), path.read_bytes()
            found.update(f"\n{name} {len(content)}\n".encode())
            found.update(content)
        return found.hexdigest()
