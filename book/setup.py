"""The folder `book` is the package `tformer_book`, with whatever chapters lie in it.

Of a notebook the package has the code of its cells, which the notebooks beside it import (`kit/carried.py`).
"""

import json
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

PACKAGE = "tformer_book"
HERE = Path(__file__).resolve().parent
parts = find_packages(exclude=["site", "site.*", "api", "api.*"])


class BuildWithCells(build_py):
    """Writes `chapter.cells.json` for `chapter.ipynb`."""

    def run(self) -> None:
        """The modules as ever, then the cells."""
        super().run()
        for notebook in HERE.glob("*/*.ipynb"):
            cells = json.loads(notebook.read_text("utf8"))["cells"]
            code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
            folder = Path(self.build_lib, PACKAGE, notebook.parent.name)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{notebook.stem}.cells.json").write_text(json.dumps(code), "utf8")


setup(
    packages=[PACKAGE, *(f"{PACKAGE}.{part}" for part in parts)],
    package_dir={PACKAGE: "."},
    package_data={f"{PACKAGE}.{part}": ["*.json", "records/*.json"] for part in parts},
    cmdclass={"build_py": BuildWithCells},
)
