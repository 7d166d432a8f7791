"""Positions: ways to tell a transformer where each token stands.

Two add a vector to each token; `Rotary`, and `Rotary2D` in a plane, turn queries and keys. `ALiBi` and
`RelativeBias`, which add to the scores, stand in `tformer_lib.core.score_bias` and can be had from here too.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tformer_lib.core.score_bias import ALiBi as ALiBi
from tformer_lib.core.score_bias import RelativeBias as RelativeBias
from tformer_lib.inputs import check_frequencies, check_grid, check_heads, check_places, check_tokens
from tformer_lib.numbers import flag, multiple, real, whole

PAIRS = "sine and cosine come in pairs: the width must be even"
HALVES = "half of the pairs turn by rows, half by columns"
FAR = 2**53  # places beyond it float64 cannot tell apart


def sinusoidal(
    n: int,
    d_model: int,
    *,
    offset: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "N D"]:
    """P[n, 2i] = sin(n w_i), P[n, 2i+1] = cos(n w_i), with w_i = 10000^(-2i/D).

    Vaswani et al. (2017), section 3.5.

    Args:
        n: how many positions N.
        d_model: the width D, even.
        offset: the number of the first position.
        device: where to build the table.
        dtype: of the table; the angles are computed in float64 in any case.

    Raises:
        TypeError: if a number is not whole.
        ValueError: if `d_model` is odd, or `n` negative.
    """
    n, d_model = whole("the number of positions", n, 0), multiple("d_model", d_model, 2, PAIRS)
    offset = whole("offset", offset, -FAR, FAR)
    angles = _angles(n, d_model, offset=offset, base=10000.0)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1).to(dtype).to(device)


def _angles(
    n: int, d: int, *, offset: int, base: float, frequencies: tuple[float, ...] | None = None
) -> Float[Tensor, "N pairs"]:
    """angles[n, i] = (n + offset) * w_i, with w_i = base^(-2i/d) unless the frequencies are given.

    In float64, because large positions need the digits, and on the processor, because some accelerators
    have no float64.
    """
    positions = torch.arange(offset, offset + n, device="cpu", dtype=torch.float64)
    if frequencies is None:
        return positions[:, None] * _frequencies(d, base)
    return positions[:, None] * torch.tensor(frequencies, device="cpu", dtype=torch.float64)


def _frequencies(d: int, base: float) -> Float[Tensor, " pairs"]:
    """w_i = base^(-2i/d)."""
    return base ** (-torch.arange(0, d, 2, device="cpu", dtype=torch.float64) / d)


@torch.inference_mode(False)  # or a table made while generating could not serve training
def _turns(
    n: int,
    d: int,
    offset: int,
    base: float,
    rescale: Callable[[Tensor], Tensor] | None,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """cos + i sin of `_angles`, (N, Dh/2) complex numbers: all layers of a stack ask for the same.

    They are remembered by what `rescale` makes of the frequencies, not by `rescale`, which may change.
    """
    frequencies = None
    if rescale is not None:
        rescaled = rescale(_frequencies(d, base))
        check_frequencies(rescaled, d // 2)
        frequencies = tuple(rescaled.tolist())
    return _made(_table, n, d, whole("offset", offset, -FAR, FAR), base, frequencies, dtype, device)


def _made(table: Any, *key: Any) -> Tensor:
    """The table that is remembered; while a model is compiled or exported a new one, part of the graph."""
    return (table.__wrapped__ if torch.compiler.is_compiling() else table)(*key)


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _table(
    n: int,
    d: int,
    offset: int,
    base: float,
    frequencies: tuple[float, ...] | None,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    angles = _angles(n, d, offset=offset, base=base, frequencies=frequencies)
    return torch.complex(angles.cos().to(dtype), angles.sin().to(dtype)).to(device)


class SinusoidalPositions(nn.Module):
    """x_n + P_n with the fixed table of `sinusoidal`; nothing is learned, and any length will do."""

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = multiple("d_model", d_model, 2, PAIRS)

    def forward(self, x: Float[Tensor, "B N _D"], offset: int = 0) -> Float[Tensor, "B N _D"]:
        check_tokens("x", x, self.d_model)
        return x + sinusoidal(x.shape[1], self.d_model, offset=offset, device=x.device, dtype=x.dtype)


class LearnedPositions(nn.Module):
    """x_n + p_n, one learned vector for each of `max_len` positions (Gehring et al. 2017, section 3.1).

    Args:
        max_len: the longest sequence the table serves.
        d_model: the width D.

    Raises:
        TypeError: if a size is no whole number.
        ValueError: if a size is not positive; in forward, if the sequence is longer than the table.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.max_len = whole("max_len", max_len, 1)
        self.table = nn.Parameter(torch.empty(self.max_len, whole("d_model", d_model, 1)))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, x: Float[Tensor, "B N _D"], offset: int = 0) -> Float[Tensor, "B N _D"]:
        check_tokens("x", x, self.table.shape[1])
        offset = whole("offset", offset, -FAR, FAR)
        check_places(offset, x.shape[1], self.max_len)
        return x + self.table[offset : offset + x.shape[1]]


class Rotary(nn.Module):
    """Turns the pair (x_2i, x_2i+1) of the token at n by the angle n w_i, with w_i = base^(-2i/Dh).

    A pair is a complex number x_2i + i x_2i+1, and to turn it is to multiply it by exp(i n w_i).
    Turned so, the places n and s enter the score of a query with a key through n - s alone (Su et al.
    2024, RoFormer, section 3.2). Pairs are neighbours, as in that paper; some libraries pair i with
    i + Dh/2, which is the same up to an order of the features. Half-precision input is turned in
    float32, and returned as it came.

    Args:
        d_head: the width Dh of a head, even.
        base: the frequencies w_i fall geometrically from 1 towards 1 / base.
        rescale: maps the frequencies (Dh/2,) to others, as models do that were trained on short contexts
            before long ones; w_i as they are if None.

    Raises:
        ValueError: if `d_head` is odd, or `base` not positive; in forward, if the input is not `d_head` wide.
        TypeError: in forward, if the input has no floating-point numbers, which could be turned.
    """

    def __init__(
        self, d_head: int, base: float = 10000.0, *, rescale: Callable[[Tensor], Tensor] | None = None
    ):
        super().__init__()
        self.d_head, self.base = multiple("d_head", d_head, 2, PAIRS), real("base", base, "(0, inf)")
        self.rescale = rescale

    def forward(self, x: Float[Tensor, "*batch N Dh"], offset: int = 0) -> Float[Tensor, "*batch N Dh"]:
        check_heads(x, self.d_head)
        precise = torch.promote_types(x.dtype, torch.float32)
        return _turned(
            x, _turns(x.shape[-2], self.d_head, offset, self.base, self.rescale, precise, x.device)
        )


def _turned(x: Tensor, turns: Tensor) -> Tensor:
    """Each pair (x_2i, x_2i+1) of each token, read as a complex number, times its entry of `turns`."""
    in_order = x.to(turns.real.dtype).clone(memory_format=torch.contiguous_format)
    pairs = torch.view_as_complex(in_order.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class Rotary2D(nn.Module):
    """Turns the first half of a patch's pairs by r w_i and the second by c w_i, in row r and column c.

    With w_i = base^(-4i/Dh), i = 0 ... Dh/4 - 1. The places of two patches enter their score through the
    difference of their rows and that of their columns alone, so that no table has to grow with the image.

    Tokens that stand before the patches, as a class token does, are no patches and are not turned: they are
    at the origin of rows and columns. With `centred=False` that is the place of the first patch, at the upper
    left; with `centred=True` it is the middle of the grid, wherever that is. Scores among patches are the
    same either way, those with the tokens before them are not.

    Args:
        d_head: the width Dh of a head, a multiple of 4.
        grid: the rows and columns of patches, which come in reading order.
        base: the frequencies fall geometrically from 1 towards 1 / base.
        before: how many tokens stand before the patches.
        centred: whether rows and columns are counted from the middle of the grid.

    Raises:
        ValueError: if `d_head` is no multiple of 4, a size is out of range, or `base` not positive; in
            forward, if the tokens are not those of the grid, or the input is not `d_head` wide.
        TypeError: if a size is no whole number; in forward, if the input has no floating-point numbers.

    Source:
        Heo et al. 2024, section 3.2 (axial frequencies, with base 100).
    """

    def __init__(
        self,
        d_head: int,
        grid: tuple[int, int],
        *,
        base: float = 100.0,
        before: int = 1,
        centred: bool = False,
    ):
        super().__init__()
        self.d_head = multiple("d_head", d_head, 4, f"{HALVES}: 4 must divide d_head={d_head}")
        self.grid = whole("the number of rows", grid[0], 1), whole("the number of columns", grid[1], 1)
        self.base, self.before = real("base", base, "(0, inf)"), whole("before", before, 0)
        self.centred = flag("centred", centred)

    def forward(self, x: Float[Tensor, "*batch N Dh"], offset: int = 0) -> Float[Tensor, "*batch N Dh"]:
        check_heads(x, self.d_head)
        check_grid(x.shape[-2], offset, self.grid, self.before)
        precise = torch.promote_types(x.dtype, torch.float32)
        key = (self.d_head, self.grid, self.base, self.before, self.centred, precise, x.device)
        return _turned(x, _made(_plane, *key))


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _plane(
    d: int,
    grid: tuple[int, int],
    base: float,
    before: int,
    centred: bool,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """cos + i sin of the angles of `Rotary2D`, (before + rows * columns, Dh/2) complex numbers."""
    rows, columns = (torch.arange(side, device="cpu", dtype=torch.float64) for side in grid)
    if centred:
        rows, columns = rows - rows.mean(), columns - columns.mean()
    places = torch.cartesian_prod(rows, columns).reshape(-1, 2)  # reading order
    angles = (places[:, :, None] * _frequencies(d // 2, base)).flatten(1)
    angles = torch.cat([angles.new_zeros(before, d // 2), angles])
    return torch.complex(angles.cos().to(dtype), angles.sin().to(dtype)).to(device)
