"""Seeds and the states of random generators; the device to compute on."""

import math
import random

import numpy as np
import torch
from torch import Tensor

from tformer_lib.numbers import whole


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and PyTorch alike, so that a run on one machine can be repeated exactly.

    Raises:
        TypeError: if the seed is no whole number.
        ValueError: if it does not lie in 0 to 2**32 - 1, which are NumPy's.
    """
    seed = whole("seed", seed, 0, 2**32 - 1)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def default_device() -> torch.device:
    """CUDA where there is one, else Apple's MPS, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def random_state() -> dict[str, Tensor]:
    """The states of Python's, NumPy's and PyTorch's global generators, as tensors by name.

    CUDA's and MPS's are among them where they are in use.
    """
    _, words, gauss = random.getstate()
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002
    assert isinstance(numpy, dict)  # the legacy form is a tuple
    state = {
        "python": torch.tensor(words, dtype=torch.int64),
        "python_gauss": torch.tensor(math.nan if gauss is None else gauss, dtype=torch.float64),
        "numpy": torch.from_numpy(numpy["state"]["key"].astype("int64")),
        "numpy_place": torch.tensor([numpy["state"]["pos"], numpy["has_gauss"]], dtype=torch.int64),
        "numpy_gauss": torch.tensor(numpy["gauss"], dtype=torch.float64),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_initialized():
        state |= {f"cuda_{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    if torch.backends.mps.is_available():
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_random_state(state: dict[str, Tensor]) -> None:
    """Put the generators back into a state that `random_state` returned; devices not here are passed over.

    Raises:
        ValueError: as `check_random_state`; the generators then stay as they are.
    """
    check_random_state(state)
    random.setstate(_python(state))
    np.random.set_state(_numpy(state))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    for i in range(torch.cuda.device_count()):
        if f"cuda_{i}" in state:
            torch.cuda.set_rng_state(state[f"cuda_{i}"], i)
    if "mps" in state and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"])


def check_random_state(state: dict[str, Tensor]) -> None:
    """Raise a ValueError unless generators can be put into this state; the global ones are left alone."""
    try:
        random.Random().setstate(_python(state))
        np.random.RandomState().set_state(_numpy(state))
        torch.Generator().set_state(state["torch"])
        devices = [name for name in state if name.startswith("cuda_") or name == "mps"]
        for name in devices:
            if state[name].dtype != torch.uint8 or state[name].ndim != 1:
                raise ValueError(f"{name} holds no bytes")
    except KeyError as error:
        raise ValueError(f"the state of a random generator is missing: {error.args[0]}") from error
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise ValueError(f"this is no state of the random generators: {error}") from error


def _python(state: dict[str, Tensor]) -> tuple[int, tuple[int, ...], float | None]:
    """What Python's generator calls its state."""
    words, gauss = state["python"], state["python_gauss"].item()
    if words.shape != (625,) or not bool(((words >= 0) & (words < 2**32)).all()):
        raise ValueError("Python's generator has 625 words of 32 bits")
    return 3, tuple(words.tolist()), None if math.isnan(gauss) else gauss


def _numpy(state: dict[str, Tensor]) -> tuple[str, np.ndarray, int, int, float]:
    """What NumPy's generator calls its state."""
    words, place = state["numpy"], state["numpy_place"]
    if words.shape != (624,) or not bool(((words >= 0) & (words < 2**32)).all()):
        raise ValueError("NumPy's generator has 624 words of 32 bits")
    if place.shape != (2,) or not (0 <= place[0] <= 624 and 0 <= place[1] <= 1):
        raise ValueError(f"NumPy's generator stands at one of its 624 words, got {place.tolist()}")
    at, has_gauss = place.tolist()
    return "MT19937", words.numpy().astype("uint32"), at, has_gauss, state["numpy_gauss"].item()
