"""The scripts that Chapter 14 quotes run as they stand, on two processes and on one, with the same losses."""

import ast
import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import cloudpickle
import pytest
import torch.distributed as dist

from tformer_lib.scale import launch

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # other processes need not find this file

CHAPTER = Path(__file__).parents[2] / "book" / "scale"
FLOAT32 = 2e-5  # of a loss


def quoted_script(name: str) -> str:
    """The one `{code-block} python` of the chapter's notebooks that begins with `# name`."""
    cells = [cell for path in CHAPTER.glob("*.ipynb") for cell in json.loads(path.read_text("utf8"))["cells"]]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    (found,) = re.findall(rf"^```\{{code-block\}} python\n(# {re.escape(name)}.*?)^```$", text, re.M | re.S)
    return found


def printed(folder: Path, name: str) -> str:
    """What two processes print that torchrun starts; one of them prints for both."""
    (folder / name).write_text(quoted_script(name), "utf8")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", name]  # any free port
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    return run.stdout


def run_scripts(scripts: list[str]) -> list[str]:
    """What each script prints, one after the other in the group of processes that is open."""
    outputs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "init_process_group", lambda backend: None)
        patch.setattr(dist, "destroy_process_group", lambda: None)
        for script in scripts:
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(script, "script", "exec"), {"__name__": "__main__"})
            outputs.append(output.getvalue())
    return outputs


def changed(name: str, *changes: tuple[str, str]) -> str:
    script = quoted_script(name)
    for old, new in changes:
        assert script.count(old) == 1, old
        script = script.replace(old, new)
    return script


def losses(text: str) -> list[float]:
    return [float(line) for line in text.split()]


@pytest.fixture(scope="module")
def alone() -> list[str]:
    """What the two scripts print on one process."""
    return launch(run_scripts, 1, [quoted_script("run.py"), quoted_script("ddp.py")])[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[float]:
    """What the program with DDP prints on two processes."""
    return losses(printed(tmp_path_factory.mktemp("ddp"), "ddp.py"))


def test_two_processes_print_the_losses_of_one(alone, tmp_path):
    one, two = ast.literal_eval(alone[0]), ast.literal_eval(printed(tmp_path, "run.py"))
    assert len(one) == 24
    assert one[-1] < one[0] - 0.1
    assert two == pytest.approx(one, rel=0, abs=FLOAT32)


def test_the_program_with_ddp_learns_the_same_on_one_process_and_on_two(alone, whole):
    one = losses(alone[1])
    assert len(one) == 20
    assert one[-1] < one[0] - 0.5
    assert whole == pytest.approx(one, rel=0, abs=1e-4)


def test_what_the_exercise_on_two_processes_says(whole):
    """Of the hypotheses that it drops, one changes the losses, one the first weights and one nothing."""
    other_weights = ("gpt = GPT(", "if rank == 1:\n    torch.manual_seed(1)\ngpt = GPT(")
    scripts = [
        changed("ddp.py", ("rows.chunk(n)[rank]", "rows.split([6, 2])[rank]")),
        changed("ddp.py", ("nn.parallel.DistributedDataParallel(gpt)", "gpt")),
        changed("ddp.py", other_weights),
        changed("ddp.py"),
    ]
    unequal, alone, seeds, same = map(losses, launch(run_scripts, 2, scripts)[0])
    assert abs(unequal[0] - whole[0]) > 1e-4  # rounding is below 1e-5
    assert abs(alone[0] - whole[0]) < 1e-5  # two models, each of half of the rows
    assert alone[-1] < whole[-1] - 0.05  # each learns only four rows by heart
    assert (
        seeds == same == pytest.approx(whole, rel=0, abs=1e-5)
    )  # DDP gives every process the weights of process 0
