"""`python -m tformer_lib.train [STEP] --config settings.yaml --data.folder texts --out run`.

STEP is one of tokenise, train, evaluate, sample, or all, which is the default. `--print_config` prints a
file of settings to begin from. A run that was stopped goes on when the same command is given again. Several
processes: `torchrun --nproc-per-node=2 -m tformer_lib.train` and the same arguments.
"""

import difflib
import re
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import fields
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from tformer_lib.runs.settings import Settings, helps

STEPS = {  # functions of `tformer_lib.runs.steps`
    "tokenise": ("tokenise",),
    "train": ("check", "train"),
    "evaluate": ("evaluate", "report"),
    "sample": ("sample", "report_if_allowed"),
    "all": ("check", "tokenise", "train", "evaluate_if_held_out", "sample", "report"),
}
ERRORS = (ValueError, TypeError, OSError, ImportError, FloatingPointError)
NEEDED = ("cloudpickle", "filelock", "jsonargparse")  # what the extra brings


def check_installed() -> None:
    """Raise an ImportError that says what to install, before anything is imported that is not there."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ImportError(f'{", ".join(missing)} not installed: pip install "tformer-lib[train]"')


def make_parser() -> Any:
    """The parser of the command line and of files of settings.

    Raises:
        ImportError: if jsonargparse is not installed.
    """
    check_installed()
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog="python -m tformer_lib.train",
        description="A language model of a folder of texts. A run that was stopped goes on when the same "
        "command is given again.",
        exit_on_error=False,
    )
    parser.add_argument("step", nargs="?", choices=[*STEPS], default="all", help="one step, or all of them")
    parser.add_argument("--config", action="config", help="a file of settings (YAML or JSON)")
    parser.add_class_arguments(Settings, as_group=False)
    for name, group in (parser.groups or {}).items():
        group.title = str(getattr(Settings(), name).__doc__).strip(".")
    lines = helps()
    for action in parser._actions:  # it would take them from docstrings, with one more package
        action.help = lines.get(action.dest, action.help)
    return parser


def parse(arguments: Sequence[str] | None = None) -> tuple[str, Settings]:
    """The step to take, and the settings; file first, then the command line.

    Raises:
        ValueError: if there is no such setting, or a value is not of its type.
    """
    from argparse import ArgumentError

    parser = make_parser()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    known = [*helps(), "config", "print_config", "help"]
    for name in (a[2:].partition("=")[0] for a in arguments if a.startswith("--")):
        if name not in known:
            raise ValueError(_unknown(name, known))
    for file in _files_of_settings(arguments):
        try:
            parser.parse_path(str(file))
        except (ArgumentError, TypeError, OSError, UnicodeError) as error:
            text = " ".join(str(error).split())
            wrong = re.search(r"(?:Group '(.+?)' does not accept o|O)ption '(.+?)'", text)
            name = ".".join(filter(None, wrong.groups())) if wrong else ""
            raise ValueError(f"{file}: {_unknown(name, known) if wrong else text}") from error
    try:
        found = parser.parse_args(arguments).as_dict()
    except (ArgumentError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    return found["step"], Settings.from_dict({each.name: found[each.name] for each in fields(Settings)})


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    if not near:  # such as `stepz` without its group
        near = difflib.get_close_matches(name.split(".")[-1], [k.split(".")[-1] for k in known], 1)
        near = [k for k in known if near and k.split(".")[-1] == near[0]][:1]
    meant = f"; is it {near[0]}?" if near else ""
    return f"there is no setting {name}{meant} (--help names all)"


def _files_of_settings(arguments: Sequence[str]) -> list[Path]:
    """Those that --config names and that are there; what else may stand behind it is the parser's."""
    values = [a.partition("=")[2] for a in arguments if a.startswith("--config=")]
    values += [b for a, b in pairwise(arguments) if a == "--config"]
    return [
        Path(value) for value in values if len(value) < 4096 and "\n" not in value and Path(value).is_file()
    ]


def complain(text: str) -> None:
    """One line on stderr."""
    print("error:", " ".join(text.split()), file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all went well; 2, and a line on stderr, if something is wrong with what was asked for."""
    warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # one process needs no group
    warnings.filterwarnings("ignore", message="Dynamo detected a call to a `functools.lru_cache`")
    try:
        step, settings = parse(arguments)
    except ERRORS as error:
        complain(str(error))
        return 2
    # imported here, since they need what `check_installed` looked for
    from tformer_lib.runs import steps
    from tformer_lib.runs.group import RunError, process_group
    from tformer_lib.runs.words import explained
    from tformer_lib.scale.together import rank

    try:
        with process_group():
            try:
                for work in STEPS[step]:
                    getattr(steps, work)(settings)
            except ERRORS as error:
                if rank():  # if all failed, torchrun ends this one when the first has spoken
                    time.sleep(10)
                if not (rank() and isinstance(error, RunError)):
                    complain(explained(error, settings.out))
                return 2
    except ERRORS as error:
        complain(explained(error, settings.out))
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
