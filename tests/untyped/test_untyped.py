"""Cases without run-time types, which `torch.compile` cannot trace: each file in a new interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", ["compiled_models", "compiled_analysis"])
def test_without_run_time_types(name):
    options = ["--noconftest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore"]
    command = [sys.executable, "-m", "pytest", *options, str(FOLDER / f"{name}.py")]
    result = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert " passed" in result.stdout
