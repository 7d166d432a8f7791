"""From documents to token shards: whole or not there, and the index last."""

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tformer_lib.data.shards import DTYPES, FORMAT, INDEX, KIND, SPLITS, TOKENIZER, Shards, checksum_of_index
from tformer_lib.files import checksum_of, replace_file
from tformer_lib.numbers import real, whole
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer

END = "<|endoftext|>"  # the special token of byte pairs behind a document
END_CHARACTER = "\x03"  # that of characters: ASCII's own "end of text"


def make_tokenizer(
    texts: Iterable[tuple[str, str]], kind: str = "bpe", vocab_size: int = 1024, *, most: int = 10_000_000
) -> tuple[BPETokenizer | CharTokenizer, int]:
    """A tokenizer made for these documents, and the number of its token for the end of one.

    Args:
        texts: pairs (name, text), looped over once.
        kind: "bpe" learns its merges from the texts, and can write any other; "char" has every character that
            occurs in them, and no other.
        vocab_size: how many tokens "bpe" has: 256 bytes, the end of a document, and merges.
        most: of how many characters, from the beginning, merges are learnt at most.

    Raises:
        ValueError: if the kind is unknown, the vocabulary too small, or a text holds the character that
            marks the end of one.
    """
    if kind == "bpe":
        pieces, left = [], whole("most", most, 1)
        for _, text in texts:
            pieces.append(text[:left])
            left -= len(pieces[-1])
            if not left:
                break
        tokenizer = BPETokenizer.train("\n".join(pieces), vocab_size, (END,))
        return tokenizer, tokenizer.special_tokens[END]
    if kind != "char":
        raise ValueError(f'a tokenizer is of kind "bpe" or "char", got {kind!r}')
    characters: set[str] = set()
    for name, text in texts:
        if END_CHARACTER in text:
            raise ValueError(f"{name} holds the character {END_CHARACTER!r}, which marks the end of a text")
        characters |= set(text)
    alphabet = CharTokenizer("".join(sorted(characters | {END_CHARACTER})))
    return alphabet, alphabet.ids[END_CHARACTER]


def write_shards(
    texts: Iterable[tuple[str, str]],
    folder: str | os.PathLike[str],
    tokenizer: BPETokenizer | CharTokenizer,
    end: int,
    *,
    held_out: float | int = 0.1,
    seed: int = 0,
    shard_tokens: int = 50_000_000,
    notes: dict[str, Any] | None = None,
    drawn: "HeldOut | None" = None,
    on_document: Callable[[str, int], None] | None = None,
) -> Shards:
    """document_1 end document_2 end ..., in files of `shard_tokens` numbers each; and the same held out.

    Whole documents are held out, as `draw_held_out` draws them. A number takes two
    bytes where 65,536 tokens are enough, else four, the lowest byte first. Each file is put in its place in
    one step, and the index last: before it is there, there are no shards, and a run that was stopped is
    simply begun again.

    Args:
        texts: pairs (name, text), looped over twice; a `TextFolder`, or a list.
        folder: made if it is not there.
        tokenizer: goes with the shards.
        end: the token behind each document.
        held_out: the share of the text to hold out, counted in characters; with 0, none is.
        seed: of the draw.
        shard_tokens: how many tokens a file holds.
        notes: kept in the index, as JSON can hold them.
        drawn: what `draw_held_out` gave for these arguments, where it is known already.
        on_document: called before each document is cut, with its name and the characters before it.

    Raises:
        TypeError: if a number is none.
        ValueError: if there are shards already, if `draw_held_out` refuses, if a number is out of bounds, or
            if the tokenizer cannot read a text: the message says which.
        OSError: if a file cannot be written; there are no shards then, and no part of one is left.
    """
    folder, held_out = Path(folder), real("held_out", held_out, "[0, 1)")
    shard_tokens, seed = whole("shard_tokens", shard_tokens, 1), whole("seed", seed, 0)
    end = whole("end", end, 0, tokenizer.vocab_size - 1)
    if (folder / INDEX).exists():
        raise ValueError(f"there are shards in {folder} already")
    drawn = draw_held_out(texts, held_out, seed) if drawn is None else drawn
    folder.mkdir(parents=True, exist_ok=True)
    dtype = "uint16" if tokenizer.vocab_size <= 1 << 16 else "uint32"
    parts = {split: _Part(folder, split, np.dtype(DTYPES[dtype]), shard_tokens) for split in SPLITS}
    try:
        done = 0
        for number, (name, text) in enumerate(texts):
            if on_document is not None:
                on_document(name, done)
            done += len(text)
            try:
                ids = tokenizer.encode(text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            parts["held_out" if number in drawn.numbers else "train"].add(name, text, [*ids, end])
        tokenizer.save(folder / TOKENIZER)
        index = {
            "kind": KIND,
            "format": FORMAT,
            "dtype": dtype,
            "end": end,
            "vocab_size": tokenizer.vocab_size,
            "tokenizer": {"file": TOKENIZER, "sha256": checksum_of(folder / TOKENIZER)},
            **{split: part.close() for split, part in parts.items()},
            "duplicates": drawn.duplicates,
            "seed": seed,
            "notes": notes or {},
        }
        index["sha256"] = checksum_of_index(index)
        replace_file(folder / INDEX, json.dumps(index, indent=1).encode())
    except OSError:  # such as a full disk, on which what cannot be used should not stay
        for path in (folder / TOKENIZER, *(p for part in parts.values() for p in part.written)):
            path.unlink(missing_ok=True)
        raise
    return Shards(folder, verify=False)


@dataclass(frozen=True)
class HeldOut:
    """Which documents are held out."""

    numbers: frozenset[int]  # of those held out, counted from 0
    documents: int  # all of them
    characters: int  # of all of them
    duplicates: int  # how many are another one again
    share: float  # of the characters, held out


def draw_held_out(texts: Iterable[tuple[str, str]], held_out: float | int, seed: int) -> HeldOut:
    """The documents that `write_shards` holds out: whole ones, drawn at random, a share of the text.

    Documents that are the same, but for blanks, stay on one side, so that nothing is judged by a text it was
    trained on. They are taken in a random order, each group if it brings the sum of characters nearer
    to the share that is wanted: at least one group, and at least one is left.

    Args:
        texts: pairs (name, text), looped over once.
        held_out: the share of the characters; with 0, none is.
        seed: of the order.

    Raises:
        ValueError: if there is no document, or if all are the same and `held_out` is not 0.
    """
    groups: dict[bytes, list[int]] = {}
    sizes: dict[bytes, int] = {}
    documents, last = 0, ""
    for name, text in texts:
        key = hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).digest()
        groups.setdefault(key, []).append(documents)
        sizes[key] = sizes.get(key, 0) + len(text)
        documents, last = documents + 1, name
    if not documents:
        raise ValueError("there is no text to write shards of")
    total, keys = sum(sizes.values()), [*groups]
    taken: list[bytes] = []
    if held_out and len(keys) == 1:
        which = (
            f"{last} is the only document" if documents == 1 else f"all {documents} documents are the same"
        )
        raise ValueError(
            f"{which}, and whole documents are held out: say what stands between documents in it "
            "(--data.separator), give more, or hold out nothing (--data.held_out 0)"
        )
    if held_out:
        wanted, found = held_out * total, 0
        order = [keys[i] for i in random.Random(seed).sample(range(len(keys)), len(keys))]
        for key in order:
            nearer = abs(found + sizes[key] - wanted) <= abs(found - wanted)
            if nearer and len(taken) < len(keys) - 1:
                taken.append(key)
                found += sizes[key]
        taken = taken or [min(order, key=lambda key: sizes[key])]
    return HeldOut(
        frozenset(number for key in taken for number in groups[key]),
        documents,
        total,
        documents - len(keys),
        sum(sizes[key] for key in taken) / total,
    )


class _Part:
    """The shards of one part, written when they are full."""

    def __init__(self, folder: Path, split: str, dtype: "np.dtype[Any]", size: int):
        self.folder, self.split, self.dtype, self.size = folder, split, dtype, size
        self.waiting: list[np.ndarray] = []
        self.held = 0  # the numbers that wait
        self.found: dict[str, Any] = {"documents": 0, "characters": 0, "tokens": 0, "shards": []}
        self.names: list[str] = []
        self.written: list[Path] = []

    def add(self, name: str, text: str, ids: list[int]) -> None:
        self.found["documents"] += 1
        self.found["characters"] += len(text)
        self.found["tokens"] += len(ids)
        if self.split == "held_out":
            self.names.append(name)
        self.waiting.append(np.array(ids, self.dtype))
        self.held += len(ids)
        while self.held >= self.size:
            self.write(self.size)

    def write(self, count: int) -> None:
        all_of_them = np.concatenate(self.waiting)
        self.waiting, self.held = [all_of_them[count:]], self.held - count
        path = self.folder / f"{self.split}-{len(self.found['shards']):05d}.bin"
        replace_file(path, all_of_them[:count].tobytes())
        self.written.append(path)
        self.found["shards"].append({"file": path.name, "tokens": count, "sha256": checksum_of(path)})

    def close(self) -> dict[str, Any]:
        if self.held:
            self.write(self.held)
        return self.found | ({"names": self.names} if self.split == "held_out" else {})
