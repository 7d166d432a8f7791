"""What hides behind the backward pass, and what waits."""

from itertools import pairwise

import pytest

from tformer_book.scale.drawings import messages as draw
from tformer_book.scale.timeline import data_parallel_lanes, waiting_lanes, waits


@pytest.mark.parametrize("groups", [1, 2, 4, 9])
@pytest.mark.parametrize("messages", [0.3, 2.0, 3.1])
def test_what_is_left_of_the_messages_is_the_formula(groups, messages):
    work, sent = data_parallel_lanes(1.0, 2.0, messages, groups)
    left = messages / groups if messages <= 2.0 else messages - 2.0 + 2.0 / groups
    assert waits(work, sent) == pytest.approx(left, abs=1e-12)
    for before, after in pairwise(sent):
        assert after.start >= before.end - 1e-12  # one message at a time
    ready = {span.name: span.end for span in work}
    assert all(span.start >= ready[span.name] - 1e-12 for span in sent)


def test_every_tensor_parallel_message_is_waited_for():
    work, sent = waiting_lanes([("attention", 2.0), ("MLP", 3.0)], 0.5)
    assert waits(work, sent) == 1.0
    assert (work[1].start, sent[1].end) == (2.5, 6.0)


@pytest.mark.parametrize(("behind", "left"), [(0.0, 1.0), (0.25, 0.75), (0.5, 0.5), (2.0, 0.5)])
def test_a_message_hides_behind_the_end_of_its_piece(behind, left):
    work, sent = waiting_lanes([("attention", 2.0), ("MLP", 3.0)], 0.5, (behind, 0.0))
    assert waits(work, sent) == left
    assert work[1].start >= max(work[0].end, sent[0].end)


def test_bad_input():
    with pytest.raises(ValueError, match="messages"):
        data_parallel_lanes(1.0, 2.0, 0.0, 4)
    with pytest.raises(ValueError, match="groups"):
        data_parallel_lanes(1.0, 2.0, 1.0, 0)
    with pytest.raises(ValueError, match="message"):
        waiting_lanes([("MLP", 1.0)], -1.0)
    with pytest.raises(ValueError, match="each of 1 pieces"):
        waiting_lanes([("MLP", 1.0)], 1.0, (2.0,))
    with pytest.raises(ValueError, match="at least one form"):
        draw.step_timelines({})
    with pytest.raises(ValueError, match="got 1 of 8"):
        draw.grid_of_gpus(1, 8, "fast", "slow")


def test_the_drawing_says_how_long_is_waited():
    lanes = (*data_parallel_lanes(1.0, 2.0, 3.0, 2), 1)
    assert "5.00 s in all, of which the GPU waits 2.00 s" in draw.step_timelines({"one": lanes}).description
