"""`python -m tformer_lib.train [STEP] --config settings.yaml --data.folder texts --out run`.

STEP is one of tokenise, train, evaluate, sample, or all, which is the default. `--print_config` prints a
file of settings to begin from. A run that was stopped goes on when the same command is given again. Several
processes: `torchrun --nproc-per-node=2 -m tformer_lib.train` and the same arguments.
"""

import difflib
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

from tformer_lib.train import steps
from tformer_lib.train.group import RunError, process_group, rank
from tformer_lib.train.settings import GROUPS, Settings, every_setting

STEPS = {
    "tokenise": (steps.tokenise,),
    "train": (steps.check, steps.train),
    "evaluate": (steps.evaluate, steps.report),
    "sample": (steps.sample, steps.report),
    "all": (steps.check, steps.tokenise, steps.train, steps.evaluate, steps.sample, steps.report),
}


ERRORS = (ValueError, TypeError, OSError, ImportError, FloatingPointError)


def make_parser() -> Any:
    """The parser of the command line and of files of settings.

    Raises:
        ImportError: if jsonargparse is not installed.
    """
    try:
        from jsonargparse import ArgumentParser
    except ImportError as error:
        raise ImportError('jsonargparse is not installed: pip install "tformer-lib[train]"') from error
    parser = ArgumentParser(
        prog="python -m tformer_lib.train",
        description="A language model of a folder of texts. A run that was stopped goes on when the same "
        "command is given again.",
        exit_on_error=False,
    )
    parser.add_argument("step", nargs="?", choices=[*STEPS], default="all", help="one step, or all of them")
    parser.add_argument("--config", action="config", help="a file of settings (YAML or JSON)")
    for name, type_, default, text in every_setting():
        parser.add_argument(f"--{name}", type=type_, default=default, help=text)
    return parser


def parse(arguments: Sequence[str] | None = None) -> tuple[str, Settings]:
    """The step to take, and the settings; file first, then the command line.

    Raises:
        ValueError: if there is no such setting, or a value is not of its type.
    """
    from argparse import ArgumentError

    parser = make_parser()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    known = [*(name for name, *_ in every_setting()), "config", "print_config", "help"]
    for name in (a[2:].partition("=")[0] for a in arguments if a.startswith("--")):
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"; is it {near[0]}?" if near else ""
            raise ValueError(f"there is no setting {name}{meant} (--help names all)")
    try:
        found = parser.parse_args(arguments).as_dict()
    except (ArgumentError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    content = {name: found[name] for name in (*GROUPS, "out", "device")}
    return found["step"], Settings.from_dict(content)


def complain(error: Exception) -> None:
    """One line on stderr."""
    print("error:", " ".join(str(error).split()), file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all went well; 2, and a line on stderr, if something is wrong with what was asked for."""
    warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # one process needs no group
    warnings.filterwarnings("ignore", message="Dynamo detected a call to a `functools.lru_cache`")
    try:
        step, settings = parse(arguments)
        with process_group():
            try:
                for work in STEPS[step]:
                    work(settings)
            except ERRORS as error:
                if rank():  # if all failed, torchrun ends this one when the first has spoken
                    time.sleep(10)
                if not (rank() and isinstance(error, RunError)):
                    complain(error)
                return 2
    except ERRORS as error:
        complain(error)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
