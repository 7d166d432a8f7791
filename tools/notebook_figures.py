"""Comparing the figures of two runs of a notebook cell.

Two measures. `worst_tile` is for figures that must come out the same: the largest root-mean-square difference
over tiles of 24 x 24 pixels, since an average over the whole picture hides a label or a bent curve.
`coarse_mismatch` is for figures drawn from training or timing, whose curves differ between machines: the
share of the ink that has no counterpart near by, or the share of the area that changes from dark to light. A
blank, missing or swapped panel fails it; a jittered curve does not.
"""

import base64
import io
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from PIL import Image

TILE = 24  # pixels
WORST_TILE = 6.0  # of 255
BLOCK = 24  # pixels; coarse comparison
REACH = 1  # blocks that a curve may wander
COARSE = 0.07  # share of the ink that may lack a counterpart, and of the area that may flip
TIMED = 0.3  # the same for a figure of times: its curves move with whatever else the machine does
FLIP = 80  # of 255: a block that changes by more has flipped


def png_outputs(outputs: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """The PNG pictures among a cell's outputs, in order."""
    found = (output.get("data", {}).get("image/png") for output in outputs)
    return [base64.b64decode(text) for text in found if text]


def without_svg(outputs: Iterable[Mapping[str, Any]]) -> int:
    """How many of a cell's PNG pictures have no SVG beside them, for the site."""
    data = (output.get("data", {}) for output in outputs)
    return sum("image/png" in kinds and "image/svg+xml" not in kinds for kinds in data)


def drawn_by(png: bytes) -> str:
    """The program that drew the picture, by its Software chunk; "" if it does not say."""
    return str(Image.open(io.BytesIO(png)).info.get("Software", ""))


def pixels(png: bytes) -> np.ndarray:
    """The picture on white: (height, width, 3) floats from 0 to 255."""
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    return np.asarray(Image.alpha_composite(white, picture).convert("RGB"), dtype=float)


def figure_problem(expected: bytes, actual: bytes, *, coarse: float = 0) -> str | None:
    """What separates two figures, in words; None where they agree.

    With `coarse`, the share of their coarse structure that may differ, only that is compared.
    """
    a, b = pixels(expected), pixels(actual)
    if a.shape != b.shape:
        sizes = [f"{x.shape[1]} x {x.shape[0]}" for x in (a, b)]
        return f"the figure measures {sizes[1]} pixels, the committed one {sizes[0]}"
    if coarse:
        share = coarse_mismatch(a, b)
        if share > coarse:
            return f"{share:.0%} of its coarse structure has changed (allowed: {coarse:.0%})"
        return None
    worst = worst_tile(a, b)
    if worst > WORST_TILE:
        return f"the worst tile differs by {worst:.1f} of 255 (allowed: {WORST_TILE:g})"
    return None


def worst_tile(a: np.ndarray, b: np.ndarray) -> float:
    """The largest RMS difference over tiles; tiles at the rim may be smaller."""
    return float(np.sqrt(_block_means((a - b) ** 2, TILE).mean(axis=2)).max())


def coarse_mismatch(a: np.ndarray, b: np.ndarray) -> float:
    """The share of either picture's ink that the other lacks near by, or of flipped area, if larger."""
    ink_a, ink_b = (_block_means(255 - x, BLOCK) for x in (a, b))
    flipped = float((np.abs(ink_a - ink_b).max(axis=2) > FLIP).mean())
    return max(_unmatched(ink_a, ink_b), _unmatched(ink_b, ink_a), flipped)


def _unmatched(ink: np.ndarray, other: np.ndarray) -> float:
    """The share of `ink` beyond the closest value of `other` within reach and a tolerance of a half."""
    rows, columns = ink.shape[:2]
    padded = np.pad(other, ((REACH, REACH), (REACH, REACH), (0, 0)), mode="edge")
    shifts = range(2 * REACH + 1)
    near = np.stack([padded[i : i + rows, j : j + columns] for i in shifts for j in shifts])
    low, high = near.min(axis=0), near.max(axis=0)
    gap = np.maximum(ink - high, low - ink)
    lacking = np.where(gap > 0.5 * np.maximum(ink, high), np.maximum(ink, high), 0)
    return float(lacking.sum() / max(ink.sum(), 1e-9))


def _block_means(x: np.ndarray, size: int) -> np.ndarray:
    """Means over blocks of `size` x `size` pixels, each channel for itself."""
    sums, counts = x, np.ones((*x.shape[:2], 1))
    for axis in (0, 1):
        starts = np.arange(0, x.shape[axis], size)
        sums, counts = np.add.reduceat(sums, starts, axis), np.add.reduceat(counts, starts, axis)
    return sums / counts


def difference_picture(expected: bytes, actual: bytes) -> bytes:
    """Grey where the figures agree, red where they differ; both are placed at the upper left corner."""
    a, b = pixels(expected), pixels(actual)
    height, width = np.maximum(a.shape[:2], b.shape[:2])
    canvas = [np.full((height, width, 3), 255.0) for _ in range(2)]
    for sheet, x in zip(canvas, (a, b), strict=True):
        sheet[: x.shape[0], : x.shape[1]] = x
    faint = 200 + canvas[0].mean(axis=2, keepdims=True) * 55 / 255
    strength = np.minimum(np.abs(canvas[0] - canvas[1]).max(axis=2, keepdims=True) / 64, 1)
    picture = faint * (1 - strength) + np.array([213.0, 0.0, 0.0]) * strength
    buffer = io.BytesIO()
    Image.fromarray(picture.round().astype("uint8")).save(buffer, format="png")
    return buffer.getvalue()
