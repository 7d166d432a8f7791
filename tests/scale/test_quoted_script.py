"""The scripts that Chapter 14 quotes run as they stand, on two processes and on one, with the same losses."""

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


def quoted_script(name: str) -> str:
    """The one `{code-block} python` of the chapter that begins with `# name`."""
    cells = json.loads(NOTEBOOK.read_text("utf8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    (found,) = re.findall(rf"^```\{{code-block\}} python\n(# {re.escape(name)}.*?)^```$", text, re.M | re.S)
    return found


def printed(folder: Path, processes: int, script: str = "run.py") -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", script]  # any free port
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    return run.stdout  # one process of all prints


def test_two_processes_print_the_losses_of_one(tmp_path):
    (tmp_path / "run.py").write_text(quoted_script("run.py"), "utf8")
    one, two = (ast.literal_eval(printed(tmp_path, n)) for n in (1, 2))
    assert len(one) == 24
    assert one[-1] < one[0] - 0.1
    assert two == pytest.approx(one, rel=0, abs=FLOAT32)


def ddp_losses(folder: Path, processes: int, *changes: tuple[str, str]) -> list[float]:
    script = quoted_script("ddp.py")
    for old, new in changes:
        assert script.count(old) == 1, old
        script = script.replace(old, new)
    (folder / "ddp.py").write_text(script, "utf8")
    return [float(line) for line in printed(folder, processes, "ddp.py").split()]


def test_the_program_with_ddp_learns_the_same_on_one_process_and_on_two(tmp_path):
    one, two = ddp_losses(tmp_path, 1), ddp_losses(tmp_path, 2)
    assert len(one) == 20
    assert one[-1] < one[0] - 0.5
    assert two == pytest.approx(one, rel=0, abs=1e-4)


def test_what_the_exercise_on_two_processes_says(tmp_path):
    """Of the hypotheses that it drops, one changes the losses, one the first weights and one nothing."""
    whole = ddp_losses(tmp_path, 2)
    unequal = ddp_losses(tmp_path, 2, ("rows.chunk(n)[rank]", "rows.split([6, 2])[rank]"))
    assert abs(unequal[0] - whole[0]) > 1e-3
    alone = ddp_losses(
        tmp_path, 2, ("nn.parallel.DistributedDataParallel(gpt)", "gpt")
    )  # two models, each of half of the rows
    assert abs(alone[0] - whole[0]) < 1e-5
    assert alone[-1] < whole[-1] - 0.05  # each learns only four rows by heart
    seeds = ddp_losses(
        tmp_path,
        2,
        ("torch.manual_seed(0)", "torch.manual_seed(dist.get_rank())"),
        ("rows = torch", "torch.manual_seed(0)\nrows = torch"),
    )
    same = ddp_losses(tmp_path, 2, ("rows = torch", "torch.manual_seed(0)\nrows = torch"))
    assert seeds == same  # DDP gives every process the weights of process 0
