"""The core's fixtures: float64 throughout."""

from tests.core.conftest import agree, copied, float64  # noqa: F401
