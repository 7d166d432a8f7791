"""Pins what the book is built and tested with: `make lock`, or `make lock UPGRADE=1` for the newest of all.

`pyproject.toml` and `book/pyproject.toml` say what is needed: both packages' dependencies, the groups `site`
and `test`. uv finds one version of each and of whatever they need in turn, for every Python and system at
once, and says behind each why it is there. Two files are made of it: `requirements.txt`, everything, and
`requirements-site.txt`, what the site is built with, in the same versions. Pins that still fit stay, unless
all are to be raised.

What PyTorch's build for Linux asks for (CUDA) is left out: pip gets it where that build is installed, and the
build for processors, which is the same version, stays without it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tformer_lib.files import replace_file

ROOT = Path(__file__).resolve().parents[1]
OLDEST = "3.11"
OF_CUDA = re.compile(r"(nvidia-|cuda-|triton\b)")
HEAD = {
    "requirements.txt": "everything that the book is built and tested with; `make test` installs it",
    "requirements-site.txt": "what the site is built with, without PyTorch; `make book` installs it",
}
WANTED = {
    "requirements.txt": ["pyproject.toml", "book/pyproject.toml", "--extra", "smollm2", "--group", "test"],
    "requirements-site.txt": ["--group", "pyproject.toml:site"],
}


def uv(folder: Path) -> Path:
    """uv, in an environment of its own in this folder."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", "uv"], check=True)
    return folder / "bin" / "uv"


def blocks(text: str) -> list[str]:
    """uv's output, a package with the comments behind it at a time."""
    found: list[str] = []
    for line in text.splitlines():
        if re.match(r"\w", line):
            found.append(line)
        elif found and line.startswith(" "):
            found[-1] += f"\n{line}"
    return found


def compiled(program: Path, target: str, constraints: list[Path], upgrade: bool) -> list[str]:
    """The packages for one of the two files, pinned."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / target
        if not upgrade:
            output.write_text("\n".join(blocks((ROOT / target).read_text("utf8"))) + "\n", "utf8")
        command = [program, "pip", "compile", *WANTED[target], "--universal", "--python-version", OLDEST]
        command += ["--annotation-style", "line", "--no-header", "--no-emit-index-url", "-q", "-o", output]
        command += ["--no-emit-package", "tformer-lib"]  # it is this folder: the file's last lines name it
        command += [f"--constraint={path}" for path in constraints]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        found = blocks(re.sub(r"-c \S+, |, -c \S+", "", output.read_text("utf8")))
    return [block for block in found if not OF_CUDA.match(block)]


def main(arguments: list[str] | None = None) -> int:
    """Writes both files."""
    parser = argparse.ArgumentParser(description="Pin what the book is built and tested with.")
    parser.add_argument("--upgrade", action="store_true", help="raise every pin to the newest that fits")
    options = parser.parse_args(arguments)
    constraints: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="lock-") as folder:
        program = uv(Path(folder) / "env")
        for target, head in HEAD.items():
            pinned = compiled(program, target, constraints, options.upgrade)
            ours = ["-e .", "-e ./book"] if target == "requirements.txt" else []
            lines = [f"# Made by `make lock` of pyproject.toml: {head}.", *pinned, *ours]
            replace_file(ROOT / target, "\n".join([*lines, ""]).encode())
            everything = Path(folder) / "everything.txt"
            everything.write_text("\n".join(block.split("\n")[0] for block in pinned) + "\n", "utf8")
            constraints = [everything]
            print(f"{target}: {len(pinned)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
