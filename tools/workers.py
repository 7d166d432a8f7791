"""How many processes share the tests: one more than there are cores, if the memory is enough for them."""

import os
from pathlib import Path

import psutil

MOST = 8  # more would wait for the longest files
MEMORY = 2.5e9  # bytes for one: the package with torch, a notebook beside it or a browser
CGROUP = Path("/sys/fs/cgroup")  # what Linux allows this container


def limit(file: Path) -> float:
    """The first number of a file over its second, if there is one; infinite where nothing is limited."""
    try:
        first, *rest = file.read_text("utf8").split()
        return float(first) / float(rest[0]) if rest else float(first)
    except (OSError, ValueError):  # no such file, or the word max
        return float("inf")


def workers(group: Path = CGROUP) -> int:
    """A number of processes, at least two: while one waits for a browser or a process, the others work."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min(seen, limit(group / "cpu.max"))
    memory = min(psutil.virtual_memory().available, limit(group / "memory.max"))
    return max(2, int(min(cores + 1, memory // MEMORY, MOST)))
