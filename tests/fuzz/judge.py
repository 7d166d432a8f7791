"""The judge of odd inputs, a plugin of the processes that `run` starts, without checks of types.

The property: what is called returns something finite, or raises an error of ours, which is one of a few
types, comes from the package's own code, and says what was expected and what came. Nothing hangs, and what is
refused changes nothing. Sizes that would take the machine's memory are not among the inputs.
"""

import faulthandler
import math
import sys
import time
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import tformer_lib
from tformer_lib import causal_mask
from tformer_lib.tokenizers import CharTokenizer, WordPieceTokenizer

assert not hasattr(causal_mask, "__wrapped__"), "types are checked here, which readers do not have"
torch.set_num_threads(1)
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
few = settings(max_examples=60, suppress_health_check=list(HealthCheck))

OURS = (ValueError, TypeError, FloatingPointError, FileNotFoundError)
PYTHONS = ("not supported between", "object is not", "has no attribute", "unsupported operand", "argument")
ROOT = str(Path(tformer_lib.__file__).parent)
LIMIT = 120  # seconds for a case of some milliseconds: a machine that is that busy runs no tests
CASES = 0  # so far


@pytest.fixture(autouse=True)
def watched():
    """A case that hangs ends the process, with a picture of where it was."""
    yield
    faulthandler.cancel_dump_traceback_later()


def judged(call):
    """(what the call returns, None), or (None, the error), which must be one of ours."""
    global CASES
    CASES += 1
    faulthandler.dump_traceback_later(LIMIT, exit=True, file=sys.__stderr__)
    try:
        result = call()
    except OURS as error:
        kind, message = type(error), str(error)
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        assert kind in OURS, f"{kind.__name__}: {message}"
        assert where.startswith(ROOT), f"{kind.__name__} from {where}: {message}"
        assert message, "an error without a message"
        assert not [words for words in PYTHONS if words in message], message
        return None, error
    except Exception as error:
        raise AssertionError(f"not an error of ours: {type(error).__name__}: {error}") from error
    finite(result)
    return result, None


def finite(found):
    """Nothing that comes back is NaN."""
    if isinstance(found, torch.Tensor) and found.is_floating_point() and not found.is_meta:
        assert not found.isnan().any()
    elif isinstance(found, float):
        assert not math.isnan(found)
    elif isinstance(found, tuple | list):
        for part in found:
            finite(part)


ODD = [
    *(math.nan, math.inf, -math.inf, -1, 0, 1, 2, 0.5, -0.5, 2.5, 10**40, -(10**40), True, False),
    *("3", "", b"2", None, [], [1], (), {}, {1}, 1j, object(), float, Fraction(1, 2)),
    *(np.float32(0.5), np.float64("nan"), np.int64(2), np.bool_(True), np.array(2), np.array([1, 2])),
    *(torch.tensor(2), torch.tensor(0.5), torch.tensor([1]), torch.tensor(True), torch.tensor(1j)),
    torch.empty((), device="meta"),
]
odd = st.integers(0, len(ODD) - 1).map(ODD.__getitem__)
VOCAB = 7
CHARACTERS = CharTokenizer("abcdefg")
PIECES = WordPieceTokenizer(["[UNK]", "a", "##b"], ("[UNK]",))


@pytest.fixture(scope="session", autouse=True)
def said():
    yield
    print(f"\ncases: {CASES}, processor seconds: {time.process_time():.0f}")
