"""Sound as tokens: the frames of a spectrogram, by frequency and by mel, and tones to try them on."""

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


def hertz_to_mel(frequency: Tensor) -> Tensor:
    """2595 log10(1 + f / 700): equal steps sound about equally large (O'Shaughnessy 1987)."""
    return 2595 * (1 + frequency / 700).log10()


def mel_to_hertz(mel: Tensor) -> Tensor:
    """700 (10^(m / 2595) - 1), the inverse of `hertz_to_mel`."""
    return 700 * (10 ** (mel / 2595) - 1)


def mel_filterbank(
    n_mels: int, frame: int, rate: float | int, lowest: float | int = 0.0
) -> Float[Tensor, "n_mels F"]:
    """Row m rises from 0 at corner m to 1 at corner m + 1 and falls to 0 at corner m + 2, straight in hertz.

    The n_mels + 2 corners are equally far apart in mel, from `lowest` to half the rate; columns are the
    F = frame // 2 + 1 frequencies of a DFT, k * rate / frame. Multiplied with a power spectrum, each row is
    the sum over a band (Davis and Mermelstein 1980, figure 1).

    Raises:
        ValueError: if there is no band, or the frame is so short that a band holds no frequency.
    """
    if n_mels < 1:
        raise ValueError(f"there is at least one band, got {n_mels}")
    first, last = hertz_to_mel(torch.tensor([lowest, rate / 2], dtype=torch.float64)).tolist()
    corners = mel_to_hertz(torch.linspace(first, last, n_mels + 2, dtype=torch.float64))
    frequencies = torch.arange(frame // 2 + 1, dtype=torch.float64) * rate / frame
    left, middle, right = (c[:, None] for c in (corners[:-2], corners[1:-1], corners[2:]))
    rising, falling = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
    bank = torch.minimum(rising, falling).clamp(min=0)
    empty = (bank.sum(dim=1) == 0).nonzero().flatten().tolist()
    if empty:
        raise ValueError(
            f"frequencies are {rate / frame:.0f} Hz apart in frames of {frame}, and band {empty[0]} of "
            f"{n_mels} lies between two of them: take longer frames or fewer bands"
        )
    return bank.float()


def log_mel(
    signal: Float[Tensor, "B T"], *, rate: float | int, frame: int, hop: int, n_mels: int, floor: float = 1e-3
) -> Float[Tensor, "B n_mels N"]:
    """log(W p_n + floor): a picture with bands down and time across, W being the mel filterbank.

    p_n is the power spectrum of frame n, the square of what `spectrogram_frames` takes the logarithm of.

    Raises:
        ValueError: as `spectrogram_frames` and `mel_filterbank`.
    """
    bank = mel_filterbank(n_mels, frame, rate).to(signal)
    power = spectrogram_frames(signal, frame=frame, hop=hop, floor=0.0).exp().square()
    return (power @ bank.T + floor).log().mT


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
