"""Tokens on disk: a text that is larger than memory, read in windows that come in random order.

A folder of shards holds `tformer_tokenizer.json`, files of bare numbers such as `train-00000.bin`, and
`index.json`, which counts them and keeps a checksum of each. `write_shards` writes it.
"""

import hashlib
import json
import os
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from tformer_lib.comparison import check_fits, differences
from tformer_lib.files import checksum_of, read_json
from tformer_lib.numbers import brief, whole
from tformer_lib.tokenizers import BPETokenizer, CharTokenizer

INDEX, TOKENIZER, KIND, FORMAT = "index.json", "tformer_tokenizer.json", "token shards", 1
SPLITS = ("train", "held_out")
DTYPES = {"uint16": "<u2", "uint32": "<u4"}  # little-endian on every machine
KINDS: dict[str, type[BPETokenizer] | type[CharTokenizer]] = {
    "byte-pair tokenizer": BPETokenizer,
    "character tokenizer": CharTokenizer,
}


class Shards:
    """tokens[start:stop] of a folder of shards, mapped into memory: only what is asked for is read.

    Args:
        folder: where `write_shards` wrote.
        tokenizer: the one that they must have been written with; any will do if None.
        verify: whether to compare every file with its checksum, which reads all of it once. Sizes are
            compared in any case.

    Raises:
        ValueError: if there is no index, or it is not one of shards, if a shard is missing, cut off or
            altered, or if they were written with another tokenizer; the message names the file.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        tokenizer: BPETokenizer | CharTokenizer | None = None,
        verify: bool = True,
    ):
        self.folder = Path(folder)
        self.index = read_index(self.folder)
        self.dtype: np.dtype[Any] = np.dtype(DTYPES[self.index["dtype"]])
        self.end: int = self.index["end"]  # the token behind each document
        self.identity: str = self.index["sha256"]  # the same for the same tokens
        self._starts = {
            split: list(accumulate((s["tokens"] for s in self.index[split]["shards"]), initial=0))
            for split in SPLITS
        }
        self._maps: dict[str, np.ndarray] = {}
        for split in SPLITS:
            for shard in self.index[split]["shards"]:
                self._check(shard, verify)
        self.tokenizer = self._load_tokenizer()
        if tokenizer is not None and tokenizer != self.tokenizer:
            raise ValueError(
                f"the shards in {self.folder} were written with another tokenizer: theirs is a "
                f"{type(self.tokenizer).__name__} of {self.tokenizer.vocab_size} tokens, and the one given a "
                f"{type(tokenizer).__name__} of {tokenizer.vocab_size}"
            )

    def _check(self, shard: dict[str, Any], verify: bool) -> None:
        path = self.folder / shard["file"]
        if not path.is_file():
            raise ValueError(f"the shard {path} is missing")
        size, wanted = path.stat().st_size, shard["tokens"] * self.dtype.itemsize
        if size != wanted:
            raise ValueError(f"the shard {path} is cut off or altered: {size} bytes in place of {wanted}")
        if verify and checksum_of(path) != shard["sha256"]:
            raise ValueError(f"the shard {path} is altered: its checksum is not that of the index")

    def _load_tokenizer(self) -> BPETokenizer | CharTokenizer:
        path = (
            self.folder / Path(self.index["tokenizer"]["file"]).name
        )  # older ones have it as tokenizer.json
        if not path.is_file() or checksum_of(path) != self.index["tokenizer"]["sha256"]:
            raise ValueError(f"{path} is not the tokenizer with which these shards were written")
        return load_tokenizer(path)

    @property
    def vocab_size(self) -> int:
        """The number of different tokens, the end of a document included."""
        return self.tokenizer.vocab_size

    def tokens(self, split: str) -> int:
        """How many tokens "train" or "held_out" has, ends of documents included.

        Raises:
            ValueError: if there is no such part.
        """
        return self._starts[_split(split)][-1]

    def read(self, split: str, start: int, stop: int) -> Int[Tensor, " T"]:
        """The tokens start, ..., stop - 1 of a part, across the borders of shards.

        Raises:
            ValueError: if there is no such part, or no such tokens.
        """
        starts, total = self._starts[_split(split)], self.tokens(split)
        if not 0 <= start <= stop <= total:
            raise ValueError(f"{split} has tokens 0 to {total}: there is no {start} to {stop}")
        pieces, shards = [], self.index[split]["shards"]
        number = bisect_right(starts, start) - 1
        while start < stop:
            end = min(stop, starts[number + 1])
            pieces.append(self._map(shards[number]["file"])[start - starts[number] : end - starts[number]])
            start, number = end, number + 1
        found = np.concatenate(pieces) if pieces else np.empty(0, self.dtype)
        return torch.from_numpy(found.astype(np.int64))

    def _map(self, file: str) -> np.ndarray:
        if file not in self._maps:
            self._maps[file] = np.memmap(self.folder / file, self.dtype, mode="r")
        return self._maps[file]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_maps": {}}  # to another process goes the place, not the tokens


class ShardBatches:
    """Batch k holds the windows pi_e(w) of the places p = kB, ..., kB + B - 1, with p = e W + w.

    The text is cut into W windows of N + 1 tokens, each beginning with the last token of the one before, and
    epoch e reads all of them in an order pi_e of its own. So batch k is a function of k: to go on where a
    run stopped takes the number k and replays nothing. Where the cut begins varies from epoch to epoch as
    far as the rest allows, which is shorter than a window. The iterator never ends, and gives int64 tensors
    (B, N + 1): what `language_loss` reads.

    Args:
        shards: the tokens, or their folder, which is then verified.
        batch: the number B of windows in a batch, over all processes.
        length: the number N of tokens that the model reads.
        split: "train" or "held_out".
        seed: of the orders.

    Raises:
        TypeError: if a number is not whole.
        ValueError: if a number is out of bounds, or the text is shorter than one window.
    """

    def __init__(
        self,
        shards: Shards | str | os.PathLike[str],
        *,
        batch: int,
        length: int,
        split: str = "train",
        seed: int = 0,
    ):
        self.shards = shards if isinstance(shards, Shards) else Shards(shards)
        self.batch, self.length = whole("batch", batch, 1), whole("length", length, 1)
        self.split, self.seed = _split(split), whole("seed", seed, 0)
        tokens = self.shards.tokens(split)
        if tokens < self.length + 1:
            raise ValueError(
                f"the text is too short: a window takes {self.length + 1} tokens, and {split} has {tokens}"
            )
        self.windows, self.rest = divmod(tokens - 1, self.length)
        self.rank, self.world_size, self.taken = 0, 1, 0
        self._order: tuple[int, Tensor, int] | None = None

    def shard(self, rank: int, world_size: int) -> "ShardBatches":
        """The same batches from here on, of which each gives the rows of one process.

        Process 0 has the first B / world_size rows, and so on: the rows of all, put below each other, are
        the batch. The state is a count of whole batches, so another number of processes can go on with it.

        Raises:
            TypeError: if a number is not whole.
            ValueError: if the processes cannot share a batch evenly, or there is no such process.
        """
        world_size = whole("world_size", world_size, 1)
        if self.batch % world_size:
            raise ValueError(f"a batch of {self.batch} windows cannot be shared by {world_size} processes")
        view = object.__new__(type(self))
        view.__dict__ |= self.__dict__
        view.rank, view.world_size = whole("rank", rank, 0, world_size - 1), world_size
        return view

    def __iter__(self) -> "ShardBatches":
        return self

    def __next__(self) -> Int[Tensor, "B M"]:
        rows = self.batch // self.world_size
        first = self.taken * self.batch + self.rank * rows
        self.taken += 1
        return torch.stack([self._window(place) for place in range(first, first + rows)])

    def _window(self, place: int) -> Int[Tensor, " M"]:
        epoch, number = divmod(place, self.windows)
        order, offset = self.order(epoch)
        start = offset + int(order[number]) * self.length
        return self.shards.read(self.split, start, start + self.length + 1)

    def order(self, epoch: int) -> tuple[Int[Tensor, " W"], int]:
        """In which order an epoch reads its windows, and at which token the first of them begins."""
        if self._order is None or self._order[0] != epoch:
            mixed = np.random.SeedSequence((self.seed, epoch)).generate_state(1, np.uint64)
            generator = torch.Generator().manual_seed(int(mixed[0]))
            offset = int(torch.randint(self.rest + 1, (), generator=generator))
            self._order = epoch, torch.randperm(self.windows, generator=generator), offset
        return self._order[1:]

    def state_dict(self) -> dict[str, Any]:
        """How many batches were taken, and of what."""
        return {
            "batches": self.taken,
            "batch": self.batch,
            "length": self.length,
            "split": self.split,
            "seed": self.seed,
            "shards": self.shards.identity,
        }

    def load_state_dict(self, state: Any) -> None:
        """Go on behind the batches that were taken when `state_dict` was called.

        Raises:
            ValueError: if the state is of other batches; the message says what differs.
        """
        here = self.state_dict()
        if not isinstance(state, dict) or state.keys() != here.keys():
            raise ValueError(f"this is no state of batches from shards: {brief(state)}")
        then, now = ({k: v for k, v in each.items() if k != "batches"} for each in (state, here))
        check_fits("the state", differences(then, now), "is of other batches")
        self.taken = whole("batches", state["batches"], 0)


def read_index(folder: Path) -> dict[str, Any]:
    """The index of a folder of shards, whole.

    Raises:
        ValueError: if there is none, or it is damaged or of another kind.
    """
    path = folder / INDEX
    if not path.is_file():
        raise ValueError(f"there are no shards in {folder}: it has no {INDEX}, which is written last")
    index = read_json(path)
    if not isinstance(index, dict) or index.get("kind") != KIND:
        raise ValueError(f"{path} is no index of token shards")
    if index.get("format") != FORMAT:
        raise ValueError(f"{path} is of format {brief(index.get('format'))}, and only {FORMAT} is known here")
    if index.get("sha256") != checksum_of_index(index):
        raise ValueError(f"{path} is altered: its checksum is not that of its content")
    return index


def load_tokenizer(path: Path) -> BPETokenizer | CharTokenizer:
    """The book's tokenizer of either kind that a file holds.

    Raises:
        ValueError: if it holds none.
    """
    content = read_json(path)
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind not in KINDS:
        raise ValueError(f"{path} is none of {', '.join(KINDS)}: its kind is {brief(kind)}")
    return KINDS[kind].load(path)


def checksum_of_index(index: dict[str, Any]) -> str:
    """SHA-256 of all that an index says but this."""
    content = {key: value for key, value in index.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _split(split: str) -> str:
    if split not in SPLITS:
        raise ValueError(f'split is "train" or "held_out", got {brief(split)}')
    return split
