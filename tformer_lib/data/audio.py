"""Sound as tokens: the frames of a spectrogram, and tones to try them on."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def spectrogram_frames(
    signal: Float[Tensor, "B T"], *, frame: int, hop: int, floor: float = 1e-6
) -> Float[Tensor, "B N F"]:
    """log(|DFT(window * frame_n)| + floor), frame n being samples n * hop to n * hop + frame - 1.

    N = 1 + (T - frame) // hop frames, a rest shorter than a frame left out, and F = frame // 2 + 1
    frequencies from 0 to half the sampling rate. The window is Hann's, (1 - cos(2 pi t / frame)) / 2, which
    keeps a tone from leaking into far frequencies.

    Raises:
        ValueError: if frame or hop is below 1, or the signal is shorter than a frame.
    """
    if frame < 1 or hop < 1:
        raise ValueError(f"frame and hop are at least 1, got {frame} and {hop}")
    if signal.shape[1] < frame:
        raise ValueError(f"a frame takes {frame} samples, and the signal has {signal.shape[1]}")
    window = torch.hann_window(frame, dtype=signal.dtype, device=signal.device)
    return (torch.fft.rfft(signal.unfold(1, frame, hop) * window).abs() + floor).log()


def tone(
    frequency: float | int, seconds: float | int, rate: int = 8_000, amplitude: float | int = 1.0
) -> Float[Tensor, " T"]:
    """amplitude * sin(2 pi frequency t) at t = 0, 1 / rate, 2 / rate, ...

    Raises:
        ValueError: if the frequency is not below half the rate: the samples would be those of another.
    """
    if not 0 <= frequency < rate / 2:
        raise ValueError(f"a rate of {rate} holds frequencies below {rate / 2:g}, got {frequency:g}")
    times = torch.arange(round(seconds * rate)) / rate
    return amplitude * torch.sin(2 * math.pi * frequency * times)


def tones(
    frequencies: Sequence[float | int], seconds: float | int, rate: int = 8_000, amplitude: float | int = 1.0
) -> Float[Tensor, " T"]:
    """Tones one after the other, each of `seconds`: a melody, and a signal whose spectrogram is known.

    Raises:
        ValueError: if there is none, or as `tone`.
    """
    if not frequencies:
        raise ValueError("there are no tones")
    return torch.cat([tone(f, seconds, rate, amplitude) for f in frequencies])
