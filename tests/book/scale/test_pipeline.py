"""Schedules of a pipeline: what they wait and what they keep."""

from itertools import pairwise

import pytest

from tformer_book.scale.pipeline import bubble, most_alive, pipeline_order, pipeline_times


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("cost", [None, {"F": 1, "B": 2}])
def test_the_bubble_is_n_minus_1_of_m_plus_n_minus_1(schedule, cost):
    for n in (1, 2, 4, 7):
        for m in (1, 2, 4, 9):
            orders = pipeline_order(schedule, n, m)
            assert bubble(orders, cost) == pytest.approx((n - 1) / (m + n - 1), abs=1e-12)


def test_every_micro_batch_passes_each_stage_once_each_way():
    for schedule in ("gpipe", "1f1b"):
        for order in pipeline_order(schedule, 3, 5):
            assert sorted(order) == [(way, i) for way in "BF" for i in range(5)]


def test_no_stage_begins_before_its_input_is_there():
    for schedule in ("gpipe", "1f1b"):
        times = [dict(found) for found in pipeline_times(pipeline_order(schedule, 4, 6))]
        for i in range(6):
            way = [times[stage]["F", i] for stage in range(4)]
            way += [times[stage]["B", i] for stage in (3, 2, 1, 0)]
            assert all(b > a for a, b in pairwise(way))


def test_1f1b_keeps_as_many_micro_batches_as_there_are_stages_behind():
    assert [most_alive(order) for order in pipeline_order("gpipe", 4, 8)] == [8, 8, 8, 8]
    assert [most_alive(order) for order in pipeline_order("1f1b", 4, 8)] == [4, 3, 2, 1]


def test_bad_input():
    with pytest.raises(ValueError, match="schedule must be"):
        pipeline_order("2f2b", 2, 2)
    with pytest.raises(ValueError, match="stages must be at least 1"):
        pipeline_order("gpipe", 0, 2)
    with pytest.raises(ValueError, match="never comes"):
        pipeline_times([[("B", 0), ("F", 0)]])
