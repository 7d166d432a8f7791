"""The oldest and the newest versions that pyproject.toml lets the package run with, as pip wants them.

`python tools/bounds.py oldest` prints the lower ends of the ranges of what computes: "torch==2.6.0 ...";
`python tools/bounds.py newest` prints the ranges, of which pip takes the newest. A workflow installs them
over what the tests need, each in turn, and runs the unit tests; notebooks and pictures belong to the pinned
version.
"""

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPUTES = ("torch", "numpy")


def bounds(which: str, project: Path = ROOT / "pyproject.toml") -> list[str]:
    """What to hand to `pip install --upgrade`.

    Raises:
        ValueError: if a range has no lower end.
    """
    asked = tomllib.loads(project.read_text("utf8"))["project"]["dependencies"]
    found = []
    for name in COMPUTES:
        range_ = next(each for each in asked if re.match(rf"{name}\b", each))
        least = re.search(r">=\s*([\d.]+)", range_)
        if least is None:
            raise ValueError(f"{range_} has no lower end")
        oldest = least[1] + ".0" * (2 - least[1].count("."))
        found.append(f"{name}=={oldest}" if which == "oldest" else range_)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("oldest", "newest"))
    print(*bounds(parser.parse_args().which))
