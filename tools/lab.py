"""`make lab`: copies the notebooks to a folder of the reader's and starts JupyterLab there.

What the reader has changed stays: where the book has a newer version of such a notebook, it is written
beside it as `NAME.new.ipynb`. What was not changed is brought up to date. A file in the folder,
`.written.json`, remembers what was written.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "_build" / "html" / "notebooks" / "book"
FOLDER = ROOT / "my-notebooks"
WRITTEN = ".written.json"


@dataclass
class Copied:
    """What came of a copy: names of notebooks, relative to the folder."""

    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # the reader's, changed
    beside: list[str] = field(default_factory=list)  # newer versions of these


def digest(content: bytes) -> str:
    """What a file is known by."""
    return hashlib.sha256(content).hexdigest()


def copy(source: Path, folder: Path) -> Copied:
    """Copies all notebooks below `source` into the folder, and overwrites nothing that the reader changed."""
    folder.mkdir(parents=True, exist_ok=True)
    memory = folder / WRITTEN
    before = json.loads(memory.read_text("utf8")) if memory.exists() else {}
    after, done = dict(before), Copied()
    for file in sorted(source.rglob("*.ipynb")):
        name = file.relative_to(source).as_posix()
        content, target = file.read_bytes(), folder / name
        theirs = digest(target.read_bytes()) if target.exists() else ""
        new = digest(content)
        if theirs == new:
            after[name] = new
        elif not theirs or theirs == before.get(name):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            after[name] = new
            done.written.append(name)
        else:
            done.kept.append(name)
            if new != before.get(name):
                newer = target.with_suffix(".new.ipynb")
                newer.write_bytes(content)
                after[name] = new
                done.beside.append(newer.relative_to(folder).as_posix())
    memory.write_text(json.dumps(after, indent=1, sort_keys=True) + "\n", "utf8")
    return done


def pinned(package: str) -> str:
    """A package in the version of requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text("utf8").splitlines()
    return next((line.split()[0] for line in lines if line.startswith(f"{package}==")), package)


def install() -> None:
    """Puts JupyterLab into this environment if it is missing."""
    if find_spec("jupyterlab") is None:
        print("Installing JupyterLab into .venv (once) ...", flush=True)
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if subprocess.run([*command, pinned("jupyterlab")]).returncode:
            sys.exit("JupyterLab could not be installed: it takes the network once. Then run make lab again.")


def main(arguments: list[str] | None = None) -> int:
    """Copies and starts."""
    parser = argparse.ArgumentParser(description="Open the notebooks in JupyterLab, in a folder of your own.")
    parser.add_argument(
        "--to", type=Path, default=FOLDER, help=f"the folder ({FOLDER.name} if none is named)"
    )
    parser.add_argument("--copy-only", action="store_true", help="copy the notebooks and start nothing")
    options = parser.parse_args(arguments)
    built = subprocess.run([sys.executable, ROOT / "tools" / "build_site.py", "--if-stale"])
    if built.returncode:
        return built.returncode
    done = copy(NOTEBOOKS, options.to)
    print(f"{len(done.written)} notebooks written to {options.to}; {len(done.kept)} that you changed stay.")
    for name in done.beside:
        print(f"A newer version of one that you changed lies beside it: {name}")
    if options.copy_only:
        return 0
    install()
    os.execv(
        sys.executable, [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={options.to.resolve()}"]
    )


if __name__ == "__main__":
    sys.exit(main())
