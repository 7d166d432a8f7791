"""Odd inputs and damaged files, as readers would meet them: in a process without the checks of types."""

import os
import re
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).parent / "fuzz" / "cases.py"


def test_odd_inputs_and_damaged_files(tmp_path):
    """See `fuzz/cases.py`. A case that hangs ends the process there, after two minutes."""
    settings = tmp_path / "pytest.ini"  # of its own: no plugin, and no conftest.py, which installs the checks
    settings.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-c", str(settings), f"--rootdir={tmp_path}", "--noconftest"]
    command += ["-q", "-s", "--tb=short", "--import-mode=importlib", "-p", "no:cacheprovider", str(CASES)]
    root = str(CASES.parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    found = re.search(r"cases: (\d+)", done.stdout)
    assert found is not None
    assert int(found[1]) > 4000
