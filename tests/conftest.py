"""For the unit tests: both packages check shapes and types at run time, and hypothesis repeats itself."""

from pathlib import Path

import pytest
import torch
from beartype import BeartypeConf, BeartypeDecorPlace
from beartype.claw import beartype_packages
from hypothesis import settings
from jaxtyping import config, install_import_hook

ROOT = Path(__file__).parents[1]
# Modules with shapes in their signatures. A call that jaxtyping checks takes many times as long as one that
# beartype checks alone, and what counts pairs of letters makes millions.
FOLDERS = {"tformer_lib": ROOT / "tformer_lib", "tformer_book": ROOT / "book"}
SHAPED = [
    ".".join([package, *path.relative_to(folder).with_suffix("").parts])
    for package, folder in FOLDERS.items()
    for path in folder.rglob("*.py")
    if "from jaxtyping import" in path.read_text("utf8") and path.parent.name != "experiments"
]
SCRIPTS = tuple(
    f"tformer_book.{path.parent.name}.experiments" for path in (ROOT / "book").glob("*/experiments")
)
CHECKER = tuple(f"tformer_book.kit.exercises.{name}" for name in ("checker", "compare", "limits"))
# Before anything imports them:
install_import_hook(SHAPED, "beartype.beartype")
beartype_packages(
    FOLDERS,
    conf=BeartypeConf(
        claw_decor_place_func=BeartypeDecorPlace.FIRST,  # below decorators that make something else of it
        claw_is_pep526=False,
        claw_skip_package_names=CHECKER
        + SCRIPTS,  # through the first goes whatever a reader's function returns
        violation_type=TypeError,
    ),
)

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture
def one_thread():
    """Tensors as small as a test's gain nothing from a second thread, and lose by waiting for it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _unchecked():
    """Without run-time checks of shapes, which take three quarters of the time of a small model."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


unchecked = pytest.fixture(_unchecked)
unchecked_file = pytest.fixture(scope="module")(_unchecked)
