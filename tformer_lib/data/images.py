"""Images as tokens, from `tformer_lib.core.patches`, under the name by which the data are called."""

from tformer_lib.core.patches import from_patches as from_patches
from tformer_lib.core.patches import to_patches as to_patches
