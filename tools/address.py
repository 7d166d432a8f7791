"""Sets the repository's address wherever it stands: `make address URL=https://github.com/NAME/BOOK`.

It stands in `_config.yml` (buttons and links of the site), in the first cell of each notebook (what Colab
installs), in both `pyproject.toml`, in `CITATION.cff` and in `README.md`; the last two also name the site,
which GitHub serves under NAME.github.io. All of them are changed, or none.
"""

import re
import sys
from pathlib import Path

import yaml
from chapters import notebooks

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)/?")


def site_of(address: str) -> str:
    """Where GitHub serves the pages of a repository."""
    owner, name = ADDRESS.fullmatch(address).groups()
    return f"https://{owner.lower()}.github.io/{name}/"


def files(root: Path) -> list[Path]:
    """The files in which the address stands."""
    names = ("_config.yml", "pyproject.toml", "book/pyproject.toml", "CITATION.cff", "README.md")
    return [*(root / name for name in names), *notebooks(root)]


def current(root: Path) -> str:
    """The address in _config.yml."""
    return yaml.safe_load((root / "_config.yml").read_text("utf8"))["repository"]["url"]


def change(root: Path, new: str) -> list[Path]:
    """Writes the new address in place of the one that stands there.

    Raises:
        ValueError: if it is no repository's address, or a file lacks the one that is to be replaced;
            nothing is changed then.
    """
    if not ADDRESS.fullmatch(new):
        raise ValueError(f"an address is https://github.com/NAME/BOOK, got {new!r}")
    new, old = new.rstrip("/"), current(root)
    texts = {}
    for path in files(root):
        text = path.read_text("utf8")
        if old not in text:
            raise ValueError(f"{path.relative_to(root)} does not name {old}")
        texts[path] = re.sub(rf"{re.escape(old)}(?![\w-])", new, text).replace(site_of(old), site_of(new))
    for path, text in texts.items():
        path.write_text(text, "utf8")
    return list(texts)


if __name__ == "__main__":
    try:
        changed = change(ROOT, sys.argv[1] if len(sys.argv) > 1 else "")
    except ValueError as error:
        sys.exit(f"Nothing was changed: {error}")
    print(f"{len(changed)} files name {sys.argv[1]} now.")
