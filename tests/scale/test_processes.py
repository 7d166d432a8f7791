"""Processes started from one program."""

import os
import signal

import pytest
import torch
import torch.distributed as dist

from tformer_lib.scale import launch


@pytest.mark.usefixtures("as_shipped")
def test_every_process_has_a_number_of_its_own_and_they_can_speak():
    def work(first, second):
        total = torch.tensor(float(dist.get_rank() + 1))
        dist.all_reduce(total)
        environment = {name: int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
        return dist.get_rank(), total, environment, first + second, torch.get_num_threads()

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    results = launch(work, 3, 40, 2)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert [rank for rank, *_ in results] == [0, 1, 2]
    assert [total.item() for _, total, *_ in results] == [6, 6, 6]
    for rank, (_, _, environment, args, threads) in enumerate(results):
        assert environment == {"RANK": rank, "WORLD_SIZE": 3, "LOCAL_RANK": rank}
        assert (args, threads) == (42, 1)


def test_a_process_that_fails_ends_the_others_and_says_why(capfd):
    def work():
        if dist.get_rank() == 1:
            raise KeyError("no such shard")
        dist.barrier()

    with pytest.raises(RuntimeError, match="process 1 of the run failed: KeyError: 'no such shard'"):
        launch(work, 2)
    assert "Traceback" not in capfd.readouterr().err  # said once, in what is raised


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX systems")
def test_a_process_that_is_killed_ends_the_others():
    def work():
        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.barrier()

    with pytest.raises(RuntimeError, match=r"SIGKILL|Connection (closed|reset) by peer"):
        launch(work, 2)


def test_bad_input():
    def work():
        return None

    with pytest.raises(ValueError, match="processes must be at least 1, got 0"):
        launch(work, 0)
    with pytest.raises(ValueError, match="timeout"):
        launch(work, 1, timeout=0.0)
    with pytest.raises(TypeError, match="function"):
        launch("work", 2)
    with pytest.raises(TypeError, match="processes"):
        launch(work, 1.5)
