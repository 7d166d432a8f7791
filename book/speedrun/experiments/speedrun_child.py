"""The processes of the speedrun: one trains an entry, others answer with what it trained, one keeps the pace.

`speedrun.py` starts them, each in a Python of its own on the same core, and speaks to them through pipes.
Each first gets what it works on, then says that it is ready, and only then runs a line of the entry:
the clock starts there.
"""

import importlib.util
import io
import os
import select
import struct
import sys
import tempfile
import time
from itertools import islice
from typing import IO, Any

import torch
from torch import Tensor

import tformer_lib.data.windows  # with torch, what entries import without paying for it
import tformer_lib.training  # noqa: F401
from tformer_book.speedrun.models import nanogpt

WARM, LEAST = 3, 8  # steps of the yardstick before its clock starts, and at least after that


def send(pipe: IO[bytes], content: Any) -> None:
    """A message of numbers, words and tensors."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    pipe.write(struct.pack("<q", buffer.tell()) + buffer.getbuffer())
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next message.

    Raises:
        EOFError: if the other side has gone.
    """
    (length,) = struct.unpack("<q", exactly(pipe, 8))
    return torch.load(io.BytesIO(exactly(pipe, length)), weights_only=True)


def exactly(pipe: IO[bytes], length: int) -> bytes:
    """So many bytes, and none of those behind them."""
    content = bytearray()
    while len(content) < length:
        more = pipe.read(length - len(content))
        if not more:
            raise EOFError("the other side has gone")
        content += more
    return bytes(content)


def find(path: str, table: str, name: str) -> Any:
    """An entry: runs the file, and takes `name` from its dictionary `table`."""
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["submission"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, table)[name]


def confine(core: int | None) -> None:
    """One core, if the system can do that, and one thread; no file can be written."""
    torch.set_num_threads(1)
    tempfile.tempdir = tempfile.gettempdir()  # which it finds by writing
    if core is not None:
        os.sched_setaffinity(0, {core})
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def warm() -> None:
    """Has PyTorch load what it loads at the first step of an optimiser, about a second's work."""
    weight = torch.nn.Parameter(torch.ones(1))
    weight.square().sum().backward()
    torch.optim.AdamW([weight]).step()


def train(entry: Any, work: tuple[Tensor, int, int], out: IO[bytes], into: IO[bytes]) -> None:
    """Sends the tensors that the entry trained."""
    send(out, dict(entry.train(*work)))


def answer(entry: Any, work: tuple[dict[str, Tensor], int], out: IO[bytes], into: IO[bytes]) -> None:
    """Builds a fresh model, loads the tensors, and sends logits for each batch of tokens that comes."""
    tensors, vocab = work
    model = entry.build(vocab)
    model.load_state_dict(tensors)
    model.eval()
    with torch.no_grad():
        while True:
            try:
                tokens = receive(into)
            except EOFError:
                return
            send(out, model(tokens))


def pace(work: tuple[Tensor, int, Tensor], out: IO[bytes], into: IO[bytes]) -> None:
    """Steps of nanoGPT's recipe until told to stop; what one costs, and what reading a window costs."""
    text, vocab, windows = work
    model = nanogpt.NanoGPT(vocab)
    steps = nanogpt.steps(model, nanogpt.batches(text, 0))
    list(islice(steps, WARM))
    send(out, time.process_time())
    receive(into)
    begin, made = time.process_time(), 0
    while made < LEAST or not select.select([into], [], [], 0)[0]:
        next(steps)
        made += 1
    middle = time.process_time()
    with torch.no_grad():
        model(windows[:, :-1])
    read = time.process_time() - middle
    send(out, {"step": (middle - begin) / made, "window": read / len(windows), "steps": made})


def main() -> None:
    """`python speedrun_child.py ROLE CORE [FILE TABLE NAME]`."""
    role, core, *where = sys.argv[1:]
    out, into = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb", buffering=0)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # what an entry prints is no message, and goes into no file
    os.dup2(nothing, 2)
    work = receive(into)
    confine(int(core) if core != "any" else None)
    if role == "pace":
        pace(work, out, into)
        return
    warm()
    send(out, time.process_time())
    receive(into)
    try:
        (train if role == "train" else answer)(find(*where), work, out, into)
    except Exception as error:
        send(out, f"{type(error).__name__}: {error}")
    os._exit(0)  # nothing runs after that


if __name__ == "__main__":
    main()
