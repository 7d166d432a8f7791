"""Processes that start at once: they are forked from one that has imported what all of them need."""

import multiprocessing

import pytest

from tformer_lib.scale import processes

NEEDED = (
    "cloudpickle",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch.testing",
    "tformer_lib.models.language",
    "tformer_lib.models.gpt",
    "tformer_lib.scale",
)


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Without it each process imports torch again, which takes longer than what most tests do with it."""
    with pytest.MonkeyPatch.context() as patch:
        if "forkserver" in multiprocessing.get_all_start_methods():
            multiprocessing.set_forkserver_preload(list(NEEDED))
            patch.setattr(processes, "START_METHOD", "forkserver")
        yield


@pytest.fixture
def as_shipped(forked, monkeypatch):
    """As for readers: each process is a new Python."""
    monkeypatch.setattr(processes, "START_METHOD", "spawn")
