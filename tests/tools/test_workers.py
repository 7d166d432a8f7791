"""One process for the tests more than cores, and no more than the memory is enough for."""

import os
from types import SimpleNamespace

import pytest
import workers as tool


@pytest.mark.parametrize(
    ("cores", "gigabytes", "quota", "most", "found"),
    [
        (1, 64, "max 100000", "max", 2),
        (2, 64, "max 100000", "max", 3),
        (4, 64, "max 100000", "max", 5),
        (64, 256, "max 100000", "max", 8),
        (64, 256, "350000 100000", "max", 4),  # a container's share of a large machine
        (4, 8, "max 100000", "max", 3),
        (8, 64, "max 100000", "16000000000", 6),
        (8, 4, "max 100000", "max", 2),
        (4, 64, None, None, 5),
    ],
)
def test_cores_and_memory_say_how_many(monkeypatch, tmp_path, cores, gigabytes, quota, most, found):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    free = SimpleNamespace(available=gigabytes * 1e9)
    monkeypatch.setattr(tool.psutil, "virtual_memory", lambda: free)
    for name, text in (("cpu.max", quota), ("memory.max", most)):
        if text:
            (tmp_path / name).write_text(f"{text}\n")
    assert tool.workers(tmp_path) == found


def test_pytest_asks_for_it(pytestconfig, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == tool.workers()
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "5")
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == 5
