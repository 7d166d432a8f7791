"""Catalogues of messages: what a program says in English, and what its translators made of it.

Three kinds of file: gettext's text (.po), gettext's binary (.mo), and JupyterLab's JSON. Each reader gives
(English, other) as it stands there; a message with a plural gives two pairs.
"""

import ast
import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from tformer_lib.data.pairs import Pair

FIELD = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?)\s+(".*")\s*')
DEFAULT = re.compile(r'Default: "(.*)"', re.DOTALL)
CONTEXT, PLURAL = "\x04", "\0"  # what divides context from message, and one from several, in .mo and JSON
MAGIC = 0x950412DE


def read_po(text: str) -> Iterator[Pair]:
    """The messages of a .po file, without those marked as fuzzy or obsolete.

    Where a comment gives the English text (`Default: "..."`, as Plone's do), the message itself is only a
    name, and the comment's text takes its place.
    """
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if any(line.startswith("#,") and "fuzzy" in line for line in lines):
            continue
        fields: dict[str, str] = {}
        name = ""
        for line in lines:
            if begins := FIELD.fullmatch(line):
                name = begins[1]
                fields[name] = ast.literal_eval(begins[2])
            elif line.startswith('"') and name:
                fields[name] += ast.literal_eval(line.strip())
        comment = DEFAULT.search(" ".join(line[2:].strip() for line in lines if line.startswith("#.")))
        english = comment[1].replace('\\"', '"') if comment else fields.get("msgid", "")
        if fields.get("msgid"):
            yield english, fields.get("msgstr", fields.get("msgstr[0]", ""))
            if "msgid_plural" in fields:
                yield fields["msgid_plural"], fields.get("msgstr[1]", "")


def read_mo(content: bytes) -> Iterator[Pair]:
    """The messages of a .mo file.

    Raises:
        ValueError: if it is none.
    """
    order = next((o for o in "<>" if content[:4] == struct.pack(f"{o}I", MAGIC)), None)
    if order is None or len(content) < 20:
        raise ValueError(f"a .mo file begins with {MAGIC:#x} and four numbers, got {content[:4].hex()}")
    count, *tables = struct.unpack_from(f"{order}3I", content, 8)
    for i in range(count):
        texts = []
        for table in tables:
            length, start = struct.unpack_from(f"{order}2I", content, table + 8 * i)
            texts.append(content[start : start + length].decode("utf-8").split(PLURAL))
        yield from in_pairs(*texts)


def read_json(text: str) -> Iterator[Pair]:
    """The messages of a JSON file of JupyterLab's: {"message": ["translation", ...]}."""
    for english, others in json.loads(text).items():
        if isinstance(others, list):
            yield from in_pairs(english.split(PLURAL), [str(other) for other in others])


def in_pairs(english: list[str], others: list[str]) -> Iterator[Pair]:
    """A message and its plural, if it has one, each with its translation, the context taken off."""
    english = [english[0].rpartition(CONTEXT)[2], *english[1:]]
    if english[0]:
        yield from zip(english, others, strict=False)


READERS: dict[str, Callable[[Path], Iterator[Pair]]] = {
    ".po": lambda path: read_po(path.read_text(encoding="utf-8")),
    ".mo": lambda path: read_mo(path.read_bytes()),
    ".json": lambda path: read_json(path.read_text(encoding="utf-8")),
}


def read_catalogue(path: Path) -> list[Pair]:
    """The messages of a file, by its ending.

    Raises:
        ValueError: if it is of no kind that is known here.
    """
    if path.suffix not in READERS:
        raise ValueError(f"a catalogue ends in {', '.join(READERS)}, got {path.name}")
    return list(READERS[path.suffix](path))
