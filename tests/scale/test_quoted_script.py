"""The script that Chapter 14 quotes runs as it stands, on two processes and on one, with the same losses."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "book" / "14_scale.ipynb"
FLOAT32 = 2e-5  # of a loss


def quoted_script() -> str:
    """The one `{code-block} python` of the chapter that begins with `# run.py`."""
    cells = json.loads(NOTEBOOK.read_text("utf8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    (found,) = re.findall(r"^```\{code-block\} python\n(# run\.py.*?)^```$", text, re.M | re.S)
    return found


def losses(folder: Path, processes: int) -> list[float]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "run.py"]  # any free port
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    return ast.literal_eval(run.stdout)  # one process of all prints


def test_two_processes_print_the_losses_of_one(tmp_path):
    (tmp_path / "run.py").write_text(quoted_script(), "utf8")
    one, two = losses(tmp_path, 1), losses(tmp_path, 2)
    assert len(one) == 24
    assert one[-1] < one[0] - 0.1
    assert two == pytest.approx(one, rel=0, abs=FLOAT32)
