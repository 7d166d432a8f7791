"""Whether two rows of numbers stand in the same order."""

from jaxtyping import Bool, Float
from torch import Tensor


def kendall_tau(
    a: Float[Tensor, "B N"], b: Float[Tensor, "B N"], asked: Bool[Tensor, "B N"]
) -> Float[Tensor, "B"]:
    """(concordant - discordant) / pairs, row by row, over the entries asked: 1 same order, -1 reversed.

    With ties it is Kendall's tau-b: sum s_ij t_ij / sqrt(sum s_ij^2 sum t_ij^2) over the pairs i, j,
    where s and t are the signs of their differences in `a` and `b` (Kendall 1945). A row with fewer than two
    different values has no tau: NaN.
    """
    pairs = asked[:, :, None] & asked[:, None, :]
    s, t = ((x[:, :, None] - x[:, None, :]).sign() * pairs for x in (a.double(), b.double()))
    squares = (s.square().sum((1, 2)) * t.square().sum((1, 2))).sqrt()
    return ((s * t).sum((1, 2)) / squares).float()
