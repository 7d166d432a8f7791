"""Seeds and the states of random generators; the device to compute on."""

import math
import random

import numpy as np
import torch
from torch import Tensor


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and PyTorch alike, so that a run on one machine can be repeated exactly."""
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
    """Put the generators back into a state that `random_state` returned; devices not here are passed over."""
    gauss = state["python_gauss"].item()
    random.setstate((3, tuple(state["python"].tolist()), None if math.isnan(gauss) else gauss))
    place, has_gauss = state["numpy_place"].tolist()
    key = state["numpy"].numpy().astype("uint32")
    np.random.set_state(("MT19937", key, place, has_gauss, state["numpy_gauss"].item()))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    for i in range(torch.cuda.device_count()):
        if f"cuda_{i}" in state:
            torch.cuda.set_rng_state(state[f"cuda_{i}"], i)
    if "mps" in state and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"])
