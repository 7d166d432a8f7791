"""Every notebook, strictly, on all the machines that this one can play: instructions, threads, Pythons.

`make portable` runs all notebooks under each setting of a matrix:

- the instructions of the processor: all it has; AVX2, as most laptops; AVX2 in the libraries and none in
  PyTorch's own kernels ("mixed"); or none beyond the oldest ("plain"), by the switches of PyTorch, MKL,
  oneDNN, OpenBLAS and numpy;
- one thread, or two;
- each Python from 3.11 to 3.13 that is installed (`--pythons` names others), in an environment of its own,
  `.venv-3.12` for instance, which is made where it is missing.

What a Python changes (texts, orders) has nothing to do with what instructions and threads change (last
digits). So not every combination is tried: each Python, each set of instructions and both numbers of threads
are, with two threads under those instructions whose digits differ most, and AVX2 under another Python where
there is one. Outputs and figures are compared as `make test` does.

A table says for each notebook and setting: passed, or which cells differed, and its processor time over
that of the first setting, which tells how slow that machine is. With one thread a notebook's cost is held as
a multiple of a calibration loop, the training of a small model, which is timed before and after each setting
on the same machine; with two, threads that wait for each other count as well, and nothing is held.
Messages are left in `_build/portable/`, and what was found is kept there: `--resume` goes on where a run
stopped, and `--record` records of it the settings under which all notebooks have been run.

It ends with 1 if a cell failed, or a notebook costs more than it may: a chapter, which all readers run, half
of what its laboratory and its exercises may.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from tformer_book.kit.records import record
from tformer_lib.files import replace_file

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "_build" / "portable"
KEPT = RESULTS / "kept.json"
VERSIONS = ("3.11", "3.12", "3.13")
# A notebook's processor time over the calibration loop's: 45 s and 90 s where that takes 0.225.
MOST_LOOPS = {"chapter": 200, "other": 400}
INSTRUCTIONS = {
    "all": {},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "mixed": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    },
    "plain": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    },
}
CALIBRATION = """
import time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
x = torch.ones(256, 64)
optimizer = torch.optim.AdamW(model.parameters())
def steps(n):
    for _ in range(n):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
steps(50)
start = time.process_time()
steps(300)
print(time.process_time() - start)
"""


@dataclass(frozen=True)
class Setting:
    """One machine of the matrix."""

    python: str  # its version
    instructions: str
    threads: int

    def __str__(self) -> str:
        return f"Python {self.python}, {self.instructions}, {self.threads} thread" + "s" * (self.threads > 1)

    def environment(self) -> dict[str, str]:
        """The variables under which its notebooks run; pictures must compare, as in CI."""
        switches = {name for each in INSTRUCTIONS.values() for name in each}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "TFORMER_"))}
        kept = {k: v for k, v in kept.items() if k not in switches}
        threads = {"TFORMER_THREADS": str(self.threads), "OMP_NUM_THREADS": str(self.threads)}
        return kept | INSTRUCTIONS[self.instructions] | threads | {"CI": "true"}


@dataclass
class Run:
    """What one notebook did under one setting."""

    cpu_seconds: float = 0.0
    cells: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # what went wrong, by cell


def version(python: str) -> str | None:
    """The version of an interpreter, "3.12"; None if it does not run or is too old."""
    code = "import sys; print('%d.%d' % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def find_pythons(named: list[str]) -> dict[str, str]:
    """An interpreter for each version, this one's first."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for python in named or [f"python{v}" for v in VERSIONS]:
        number = version(python)
        if number is None and named:
            sys.exit(f"{python} is no Python 3.11 or newer that runs")
        if number is not None:
            found.setdefault(number, python)
    return found


def environment_of(number: str, python: str) -> Path:
    """The interpreter of the environment in which this Python runs the notebooks; made if there is none."""
    if python == sys.executable:
        return Path(python)
    folder = ROOT / f".venv-{number}"
    if not (folder / ".installed").exists():
        made = subprocess.run(
            [python, str(ROOT / "tools" / "bootstrap.py")], env={**os.environ, "VENV": folder.name}
        )
        if made.returncode:
            sys.exit(made.returncode)
    return folder / "bin" / "python"


def matrix(versions: list[str]) -> list[Setting]:
    """All settings, the reference first."""
    first, *others = versions
    digits = [("all", 1), ("plain", 1), ("mixed", 2)] + [("AVX2", 1)] * (not others)
    pythons = [(other, "all" if n % 2 else "AVX2") for n, other in enumerate(others)]
    return [Setting(first, i, t) for i, t in digits] + [Setting(other, i, 1) for other, i in pythons]


def calibrate(python: Path, setting: Setting) -> float:
    """Processor seconds of the calibration loop under a setting."""
    command = [str(python), "-c", CALIBRATION]
    done = subprocess.run(command, env=setting.environment(), capture_output=True, text=True, check=True)
    return float(done.stdout)


def run(python: Path, setting: Setting, notebooks: list[str]) -> dict[str, Run]:
    """Runs the notebooks under a setting: two beside each other with one thread, else one by one."""
    report = RESULTS / f"{re.sub(r'[^0-9A-Za-z.]+', '-', str(setting))}.xml"
    report.unlink(missing_ok=True)
    workers = ["-n", "2", "--dist", "loadfile"] if setting.threads == 1 else ["-n", "0"]
    command = [str(python), "-m", "pytest", *notebooks, *workers, "-q", f"--junitxml={report}"]
    with report.with_suffix(".log").open("w") as log:
        subprocess.run(command, cwd=ROOT, env=setting.environment(), stdout=log, stderr=subprocess.STDOUT)
    if not report.exists():
        sys.exit(f"pytest left no report under {setting}: see {report.with_suffix('.log')}")
    return read(report)


def read(report: Path) -> dict[str, Run]:
    """What a JUnit report says of each notebook."""
    runs: dict[str, Run] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        place = (case.get("classname") or "").split(".")[1:-1]  # "book.bert.chapter.ipynb"
        found = runs.setdefault("/".join(place), Run())
        found.cells += 1
        for item in case.iter("property"):
            if item.get("name") == "notebook_cpu":
                found.cpu_seconds = max(found.cpu_seconds, float(item.get("value") or 0))
        for problem in (*case.findall("failure"), *case.findall("error")):
            found.failed[case.get("name") or "?"] = (problem.text or problem.get("message") or "").strip()
    return runs


def table(results: list[dict]) -> str:
    """The table in Markdown: a row for each notebook, a column for each setting."""
    heads = [r["setting"] for r in results]
    lines = ["| Notebook | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name in results[0]["notebooks"]:
        cells = []
        for result in results:
            one = result["notebooks"].get(name)
            if one is None:
                cells.append("not run")
            elif one["failed"]:
                cells.append("failed: " + ", ".join(one["failed"]))
            else:
                cells.append(f"passed, {one['cpu_seconds']:.0f} s, x {one['ratio']:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    totals = [f"{sum(n['cpu_seconds'] for n in r['notebooks'].values()):.0f} s" for r in results]
    return "\n".join([*lines, "| all | " + " | ".join(totals) + " |"])


def summary(results: list[dict]) -> str:
    """The table in short: a row for each setting."""
    lines = ["| Setting | Notebooks passed | Processor time of all | Largest ratio |", "|---|---|---|---|"]
    for result in results:
        runs = result["notebooks"].values()
        passed = f"{sum(not n['failed'] for n in runs)} of {len(runs)}"
        seconds, ratio = sum(n["cpu_seconds"] for n in runs), max((n["ratio"] for n in runs), default=1.0)
        lines.append(f"| {result['setting']} | {passed} | {seconds:.0f} s | {ratio:.2f} |")
    return "\n".join(lines)


def keep(setting: Setting, runs: dict[str, Run], loop: float) -> None:
    """Adds what was found under a setting to what is kept."""
    kept = load_kept()
    rows = kept.setdefault(str(setting), {})
    for name, one in runs.items():
        rows[name] = {
            "notebook": digest(name),
            "cpu_seconds": round(one.cpu_seconds, 1),
            "loops": round(one.cpu_seconds / loop, 1),
            "failed": sorted(one.failed),
        }
    replace_file(KEPT, json.dumps(kept, indent=1).encode())


def load_kept() -> dict[str, dict[str, dict]]:
    """What was found, by setting and notebook."""
    return json.loads(KEPT.read_text("utf8")) if KEPT.exists() else {}


def digest(name: str) -> str:
    """A notebook's code and outputs in short: what was found of others counts no more."""
    notebook = json.loads((ROOT / "book" / f"{name}.ipynb").read_text("utf8"))
    code = [(c["source"], c["outputs"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code, sort_keys=True).encode()).hexdigest()[:16]


def done(setting: Setting, name: str) -> bool:
    """Whether this notebook, as it is, has passed under this setting."""
    found = load_kept().get(str(setting), {}).get(name)
    return found is not None and not found["failed"] and found["notebook"] == digest(name)


def most_loops(name: str) -> int:
    """What a notebook may cost: "attention/chapter" less than "attention/laboratory"."""
    return MOST_LOOPS.get(name.rpartition("/")[2], MOST_LOOPS["other"])


def gather(settings: list[Setting], names: list[str]) -> list[dict]:
    """What is kept of these notebooks under each setting; ratios are to the first."""
    kept, results = load_kept(), []
    first = kept.get(str(settings[0]), {})
    for setting in settings:
        rows = {}
        for name in names:
            found = kept.get(str(setting), {}).get(name)
            if found is None or found["notebook"] != digest(name):
                continue
            reference = first.get(name, found)["cpu_seconds"]
            ratio = round(found["cpu_seconds"] / reference, 2) if reference else 1.0
            rows[name] = {k: found[k] for k in ("cpu_seconds", "loops", "failed")} | {"ratio": ratio}
        results.append({"setting": str(setting), "notebooks": rows})
    return results


def main(arguments: list[str] | None = None) -> int:
    """Runs the matrix and prints its table; 1 if something failed."""
    parser = argparse.ArgumentParser(description="Run every notebook under a matrix of settings.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of the book if none is named")
    parser.add_argument("--pythons", nargs="*", default=[], help="interpreters beside this one")
    parser.add_argument("--only", nargs="*", default=[], help="words, all of them in a setting's name")
    parser.add_argument("--resume", action="store_true", help="leave out what has passed and is unchanged")
    parser.add_argument("--record", action="store_true", help="record the settings that are complete")
    options = parser.parse_args(arguments)
    paths = [path.resolve() for path in options.notebooks] or sorted((ROOT / "book").glob("*/*.ipynb"))
    names = [path.relative_to(ROOT / "book").with_suffix("").as_posix() for path in paths]
    pythons = find_pythons(options.pythons)
    settings = matrix(list(pythons))
    chosen = [s for s in settings if all(word in str(s) for word in options.only)]
    if not chosen:
        sys.exit(f"no setting has {options.only} in its name: {', '.join(map(str, settings))}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for setting in chosen:
        wanted = [n for n in names if not (options.resume and done(setting, n))]
        if not wanted:
            continue
        print(f"{setting}: {', '.join(wanted)} ...", flush=True)
        python = environment_of(setting.python, pythons[setting.python])
        before = calibrate(python, setting)
        runs = run(python, setting, [f"book/{name}.ipynb" for name in wanted])
        keep(setting, runs, (before + calibrate(python, setting)) / 2)
        for name, one in runs.items():
            for cell, message in one.failed.items():
                print(f"  {name}, {cell}:\n    " + message[:1500].replace("\n", "\n    "), flush=True)
    results = gather(settings, names)
    text = table(results)
    (RESULTS / "table.md").write_text(text + "\n", "utf8")
    print(text, summary(results), sep="\n\n")
    rows = [row for result in results for row in result["notebooks"].values()]
    single = [
        (name, row)
        for s, r in zip(settings, results, strict=True)
        if s.threads == 1
        for name, row in r["notebooks"].items()
    ]
    bad = any(row["failed"] for row in rows)
    bad = bad or any(row["loops"] > most_loops(name) for name, row in single)
    if options.record:
        whole = [result for result in results if len(result["notebooks"]) == len(names)]
        if not whole:
            sys.exit("nothing is recorded: under no setting have all notebooks been run (--resume)")
        seconds = sum(row["cpu_seconds"] for result in whole for row in result["notebooks"].values())
        print("recorded:", record("portable", whole, seeds=[0], cpu_seconds=seconds))
    return int(bad)


if __name__ == "__main__":
    shutil.rmtree(ROOT / "_build" / "figure-diffs", ignore_errors=True)
    sys.exit(main())
