"""For the unit tests: tformer_lib checks shapes and types at run time, and hypothesis repeats itself."""

from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("tformer_lib", "beartype.beartype")  # before anything imports tformer_lib

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
