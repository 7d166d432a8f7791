"""Cases without run-time types, which `torch.compile` cannot trace: in a new interpreter."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def test_without_run_time_types():
    files = sorted(map(str, FOLDER.glob("compiled_*.py")))
    assert len(files) == 2
    options = ["--noconftest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    result = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert " passed" in result.stdout
