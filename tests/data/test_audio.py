"""Spectrogram frames against torch.stft and a sum over samples; tones where they should be."""

import math

import pytest
import torch

from tformer_lib.data.audio import spectrogram_frames, tone, tones

SIGNAL = torch.randn(2, 50, generator=torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize(("frame", "hop"), [(8, 4), (8, 8), (9, 2), (16, 5), (50, 1)])
def test_frames_are_the_short_time_fourier_transform(frame, hop):
    window = torch.hann_window(frame, dtype=torch.float64)
    stft = torch.stft(SIGNAL, frame, hop, window=window, center=False, return_complex=True)
    frames = spectrogram_frames(SIGNAL, frame=frame, hop=hop, floor=1e-3)
    assert frames.shape == (2, 1 + (50 - frame) // hop, frame // 2 + 1)
    torch.testing.assert_close(frames, (stft.abs() + 1e-3).log().transpose(1, 2), rtol=0, atol=1e-10)


def test_frames_are_the_sum_over_samples():
    frames = spectrogram_frames(SIGNAL, frame=6, hop=3)
    for n in range(15):
        for k in range(4):
            terms = [
                (1 - math.cos(2 * math.pi * t / 6))
                / 2
                * SIGNAL[0, 3 * n + t]
                * torch.exp(torch.tensor(-2j * math.pi * k * t / 6))
                for t in range(6)
            ]
            assert frames[0, n, k].item() == pytest.approx(math.log(abs(sum(terms)) + 1e-6), abs=1e-6)


def test_each_tone_stands_at_its_frequency():
    signal = tones([500, 1000, 3000], 0.1)
    assert signal.shape == (2400,)
    assert torch.equal(signal[800:1600], tone(1000, 0.1))
    frames = spectrogram_frames(signal[None], frame=160, hop=800)[0]
    assert (frames.argmax(dim=1) * 8000 / 160).tolist() == [500, 1000, 3000]


def test_silence_is_the_floor():
    frames = spectrogram_frames(torch.zeros(1, 32), frame=16, hop=8, floor=1e-4)
    torch.testing.assert_close(frames, torch.full((1, 3, 9), math.log(1e-4)))


def test_errors():
    with pytest.raises(ValueError, match="takes 51 samples, and the signal has 50"):
        spectrogram_frames(SIGNAL, frame=51, hop=1)
    with pytest.raises(ValueError, match="at least 1, got 8 and 0"):
        spectrogram_frames(SIGNAL, frame=8, hop=0)
    with pytest.raises(ValueError, match="frequencies below 4000, got 4000"):
        tone(4000, 0.1)
    with pytest.raises(ValueError, match="no tones"):
        tones([], 0.1)
