"""What a run says: text that is safe to show, signs of life, and errors in one sentence."""

import errno
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tformer_lib.runs.group import RunError
from tformer_lib.scale.sharded_checkpoints import steps_done
from tformer_lib.scale.together import rank

EVERY = 5.0  # seconds between signs of life
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
# what moves a terminal's cursor, rings its bell or turns its text around, but for tabs and ends of lines
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def say(text: str) -> None:
    """A line on stderr, by the first process."""
    if rank() == 0:
        print(text, file=sys.stderr, flush=True)


def shown(text: str, encoding: str | None = "utf-8") -> str:
    """The text with its control characters escaped, as `\\x1b`, and what the encoding does not have."""
    safe = UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return safe.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


@contextmanager
def signs_of_life(state: Callable[[], str]) -> Iterator[None]:
    """Say `state()` and the time that went by every few seconds, as long as the block lasts."""
    done, start = threading.Event(), time.monotonic()

    def speak() -> None:
        while not done.wait(EVERY):
            say(f"{state()} ({time.monotonic() - start:.0f} s)")

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        done.set()
        speaker.join()


def explained(error: BaseException, out: str) -> str:
    """One line for the user: what is wrong, and, where no more could be written, what there is to do."""
    text = " ".join(str(error).split())
    cause = error.__cause__ if isinstance(error, RunError) else error
    if not isinstance(cause, OSError) or cause.errno not in (*NO_ROOM, *NOT_ALLOWED, errno.EIO):
        return text
    try:
        done = steps_done(Path(out) / "checkpoint")
    except (OSError, ValueError):
        return text
    kept = f"the last checkpoint, after step {done}, is whole" if done else "there is no checkpoint yet"
    if cause.errno in NO_ROOM:
        what, cure = "there is no room left on the disk", "make room there"
    elif cause.errno in NOT_ALLOWED:
        what, cure = "that is not allowed", "allow it"
    else:
        what, cure = "the disk failed, or is full", "look after it"
    return (
        f"{cause.filename or 'a file'} could not be read or written: {what} ({cause.strerror}). Nothing that "
        f"was there is lost: {kept}; {cure}, or move {out} elsewhere and name it by --out, and give the "
        "same command again"
    )
