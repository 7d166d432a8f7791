"""When a step's products and messages begin, on two lanes: one for the GPU, one for its link."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tformer_lib.numbers import real, whole


class Span(NamedTuple):
    """A stretch of one lane: what is done, in seconds from the start of the step."""

    name: str
    start: float
    length: float

    @property
    def end(self) -> float:
        """When it is done."""
        return self.start + self.length


def data_parallel_lanes(
    forward: float, backward: float, messages: float, groups: int
) -> tuple[list[Span], list[Span]]:
    """Gradients leave in groups: each when its layers are through and the link is free.

    The step then waits for T / K if the messages' T seconds are at most the backward pass's W, and otherwise
    for T - W + W / K, with K groups that take equally long.

    Args:
        forward: seconds of the forward pass.
        backward: W, those of the backward pass.
        messages: T, those of all messages.
        groups: K; the last group of layers is through first.

    Returns:
        What the GPU does, and what its link does.
    """
    forward, backward, messages = (
        real(name, value, "(0, inf)")
        for name, value in (("forward", forward), ("backward", backward), ("messages", messages))
    )
    groups = whole("groups", groups, 1)
    work, sent, free = [Span("forward", 0.0, forward)], [], 0.0
    for i in range(groups):
        name = str(groups - i)
        work.append(Span(name, forward + i * backward / groups, backward / groups))
        sent.append(Span(name, max(free, work[-1].end), messages / groups))
        free = sent[-1].end
    return work, sent


def waiting_lanes(
    work: Sequence[tuple[str, float]], message: float, behind: Sequence[float] = ()
) -> tuple[list[Span], list[Span]]:
    """Tensor parallel: each piece of work has a message, and the next piece waits for it.

    The message leaves when its piece is done, or before the end of it that does not change what is sent. (On
    the way back, the gradient of x can travel while those of the weights are computed.)

    Args:
        work: what each piece is called, and its seconds.
        message: seconds of each message.
        behind: how many of each piece's seconds, its last, the message can hide behind; none if left out.

    Raises:
        ValueError: if there are not as many of these as pieces, or one is below 0 or longer than its piece.
    """
    message, now = real("message", message, "(0, inf)"), 0.0
    behind = behind or [0.0] * len(work)
    if len(behind) != len(work) or not all(0 <= b <= w for b, (_, w) in zip(behind, work, strict=True)):
        raise ValueError(f"each of {len(work)} pieces needs its own share of seconds, got {list(behind)}")
    done, sent = [], []
    for (name, length), late in zip(work, behind, strict=True):
        done.append(Span(name, now, length))
        sent.append(Span(name, done[-1].end - late, message))
        now = max(done[-1].end, sent[-1].end)
    return done, sent


def waits(work: Sequence[Span], sent: Sequence[Span]) -> float:
    """Seconds until the last message in which the GPU does nothing."""
    end = max(span.end for span in (*work, *sent))
    return end - math.fsum(span.length for span in work)
