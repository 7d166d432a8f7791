"""For the unit tests: tformer_lib checks shapes and types at run time, and hypothesis repeats itself."""

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("tformer_lib", "beartype.beartype")  # before anything imports tformer_lib

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture
def one_thread():
    """Tensors as small as a test's gain nothing from a second thread, and lose by waiting for it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
