"""The stream of batches: begun again as often as it takes, and wound forward to where a run stopped."""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from tformer_lib.training.seeds import random_state, set_random_state

NONE_LEFT = object()


class BatchIterator:
    """The batches one after another; when they run out, `batches` is looped over again.

    It knows its place: `passes` that have begun, `position` in the last of them, and, where it is to
    `remember` that, the state of the random generators when the pass began, from which a loader that
    shuffles draws its order.
    """

    def __init__(self, batches: Iterable[Any], steps: int, *, remember: bool = False):
        self.batches, self.steps, self.remember = batches, steps, remember
        self.taken = self.passes = self.position = 0
        self.random: dict[str, Tensor] = {}
        self.iterator: Iterator[Any] = iter(())
        self.replayed: tuple[int, dict[str, Tensor]] | None = None  # a pass, and how it began

    def take(self) -> Any:
        """The next batch.

        Raises:
            ValueError: if the batches cannot be begun again, or there are none.
        """
        batch = next(self.iterator, NONE_LEFT)
        if batch is NONE_LEFT:
            self.begin_pass()
            batch = next(self.iterator, NONE_LEFT)
        if batch is NONE_LEFT:
            raise ValueError(f"the batches ran out after {self.taken} of {self.steps} steps")
        self.taken, self.position = self.taken + 1, self.position + 1
        return batch

    def begin_pass(self) -> None:
        """Loop over the batches anew."""
        self.passes, self.position = self.passes + 1, 0
        if self.replayed and self.replayed[0] == self.passes:
            set_random_state(self.replayed[1])
        if self.remember:
            self.random = random_state()
        self.iterator = iter(self.batches)

    def wind(self, taken: int, passes: int, position: int, random: dict[str, Tensor]) -> None:
        """Take `taken` batches and drop them; `random` is how the last pass among them began.

        Raises:
            ValueError: if that does not end at `position` of pass number `passes`.
        """
        if not 0 <= taken <= self.steps:
            raise ValueError(f"of {self.steps} steps {taken} cannot be done already")
        self.replayed = (passes, random)
        while self.taken < taken:
            self.take()
        self.replayed = None
        if (self.passes, self.position) != (passes, position):
            raise ValueError(
                f"these are not the batches of the checkpoint: {taken} of them end at batch {self.position} "
                f"of pass {self.passes}, and then it was batch {position} of pass {passes}"
            )
