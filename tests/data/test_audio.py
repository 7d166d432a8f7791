"""Spectrogram frames against torch.stft and a sum over samples; tones where they should be."""

import math

import pytest
import torch

from tformer_lib.data.audio import (
    hertz_to_mel,
    log_mel,
    mel_filterbank,
    mel_to_hertz,
    spectrogram_frames,
    tone,
    tones,
)

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


def test_mel_is_its_formula_and_back():
    frequencies = torch.tensor([0.0, 700.0, 1000.0, 6300.0])
    expected = [0.0, 2595 * math.log10(2), 1000.0, 2595.0]  # 1,000 Hz are 1,000 mel, nearly
    assert hertz_to_mel(frequencies).tolist() == pytest.approx(expected, rel=2e-5)
    torch.testing.assert_close(mel_to_hertz(hertz_to_mel(frequencies)), frequencies)


def test_filterbank_by_hand():
    # corners at 0, 1/2 and 1 of the 2,146 mel below 4,000 Hz: 0, 1,113.6 and 4,000 Hz
    (row,) = mel_filterbank(1, 8, 8000)
    middle = 700 * (math.sqrt(1 + 4000 / 700) - 1)
    expected = [0, 1000 / middle, *((4000 - f) / (4000 - middle) for f in (2000, 3000)), 0]
    assert row.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("n_mels", "frame", "rate"), [(40, 256, 11025), (20, 256, 8000), (80, 1024, 16000)])
def test_neighbouring_bands_share_each_frequency(n_mels, frame, rate):
    bank = mel_filterbank(n_mels, frame, rate)
    assert bank.shape == (n_mels, frame // 2 + 1)
    assert bank.min() >= 0
    assert bank.max() <= 1
    peaks = bank.argmax(dim=1)
    assert (peaks.diff() >= 0).all()
    between = bank[:, peaks[0] : peaks[-1] + 1].sum(dim=0)  # one falls as the next rises
    torch.testing.assert_close(between[1:-1], torch.ones_like(between[1:-1]))


def test_log_mel_is_bands_of_the_power_spectrum():
    signal = tones([500, 1000, 3000], 0.1)[None]
    picture = log_mel(signal, rate=8000, frame=160, hop=800, n_mels=20, floor=1e-3)
    power = spectrogram_frames(signal, frame=160, hop=800, floor=0.0).exp().square()
    by_hand = torch.einsum("mf,bnf->bmn", mel_filterbank(20, 160, 8000), power)
    torch.testing.assert_close(picture, (by_hand + 1e-3).log())
    assert picture.shape == (1, 20, 3)
    corners = mel_to_hertz(torch.linspace(0, hertz_to_mel(torch.tensor(4000.0)).item(), 22))
    for n, f in enumerate((500, 1000, 3000)):
        band = picture[0, :, n].argmax()
        assert corners[band] < f < corners[band + 2]
    silence = log_mel(torch.zeros(1, 32), rate=8000, frame=16, hop=8, n_mels=2, floor=1e-4)
    torch.testing.assert_close(silence, torch.full((1, 2, 3), math.log(1e-4)))


def test_filterbank_errors():
    with pytest.raises(ValueError, match="at least one band, got 0"):
        mel_filterbank(0, 256, 8000)
    with pytest.raises(ValueError, match="31 Hz apart in frames of 256, and band 0 of 100"):
        mel_filterbank(100, 256, 8000)
