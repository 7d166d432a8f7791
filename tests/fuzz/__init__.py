"""Odd inputs and damaged files, as readers would meet them: in processes without the checks of types."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run(cases: str, folder: Path) -> int:
    """Runs a file of cases and counts them. A case that hangs ends the process there, after two minutes."""
    settings = folder / "pytest.ini"  # of its own: no conftest.py, which installs the checks
    settings.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-c", str(settings), f"--rootdir={folder}", "--noconftest"]
    command += ["-p", "tests.fuzz.judge", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["-q", "-s", "--tb=short", str(HERE / cases)]
    path = os.pathsep.join(filter(None, (str(HERE.parents[1]), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    found = re.search(r"cases: (\d+)", done.stdout)
    assert found is not None, done.stdout[-6000:]
    return int(found[1])
