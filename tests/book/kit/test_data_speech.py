"""Spoken digits: no speaker in both parts, the same in every process, melodies where there is no voice."""

import ctypes
import re
import subprocess
import sys
from collections import Counter

import pytest
import torch

from tformer_book.kit.data import espeak, speech
from tformer_book.kit.data.speech import LENGTH, SPEAKERS, TAKES, TEST_SPEAKERS, spoken_digits


def test_each_part_has_every_word_as_often_from_every_speaker_and_shares_none():
    train, test = spoken_digits("train"), spoken_digits("test")
    for part, speakers in ((train, len(SPEAKERS) - TEST_SPEAKERS), (test, TEST_SPEAKERS)):
        assert part.signals.shape == (speakers * 10 * TAKES, LENGTH)
        assert set(Counter(zip(part.voices, part.labels.tolist(), strict=True)).values()) == {TAKES}
        assert part.signals.isfinite().all()
        assert (part.signals.abs().amax(dim=1) - 1).abs().max() < 0.06  # noise is added
    assert {*train.voices, *test.voices} == set(SPEAKERS)
    assert not {*train.voices} & {*test.voices}
    with pytest.raises(ValueError, match="'train' and 'test', got 'validation'"):
        spoken_digits("validation")


def test_no_clip_is_silent_and_words_begin_at_all_moments():
    signals = spoken_digits("test").signals
    loud = (signals.abs() > 0.1).float()
    first, last = loud.argmax(dim=1), LENGTH - loud.flip(1).argmax(dim=1)
    assert (last - first).min() > 0.08 * speech.RATE
    assert first.min() < 200
    assert first.max() > 2_000


def test_another_process_makes_the_same_clips():
    pytest.importorskip("espeakng_loader")
    code = (
        "from tformer_book.kit.data.speech import spoken_digits as s;"
        "print([round(s(p).signals.double().abs().sum().item(), 3) for p in ('train', 'test')])"
    )
    environment = {"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    mine = [round(spoken_digits(p).signals.double().abs().sum().item(), 3) for p in ("train", "test")]
    assert found.stdout.strip() == str(mine)


def test_the_synthesiser_says_each_word_at_its_speed_and_has_no_strange_voices():
    pytest.importorskip("espeakng_loader")
    slow, fast = espeak.synthesise(espeak.SpokenWord("seven", "en+f2", speed, 50) for speed in (120, 240))
    assert len(slow) > 1.3 * len(fast)
    assert 0.1 < abs(slow).max() <= 1
    for voice in ("xx-nobody", "en+nobody"):
        with pytest.raises(ValueError, match=f"no voice '{re.escape(voice)}'"):
            list(espeak.synthesise([espeak.SpokenWord("one", voice, 175, 50)]))


def test_what_cannot_be_said_is_an_error(monkeypatch):
    pytest.importorskip("espeakng_loader")

    class Mute(ctypes.CDLL):
        espeak_Synth = staticmethod(lambda *_: 1)  # noqa: N815

    monkeypatch.setattr(espeak.ctypes, "CDLL", Mute)
    with pytest.raises(OSError, match="could not say 'one'"):
        list(espeak.synthesise([espeak.SpokenWord("one", "en+f2", 175, 50)]))


@pytest.fixture
def anew():
    speech._all_clips.cache_clear()
    yield
    speech._all_clips.cache_clear()


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("error", [ImportError("no module"), OSError("no library")])
def test_without_a_synthesiser_there_are_melodies_and_a_warning(monkeypatch, error):
    def broken(*_):
        raise error

    monkeypatch.setattr(espeak, "synthesise", broken)
    with pytest.warns(UserWarning, match=f"melodies in its place: {error}"):
        test = spoken_digits("test")
    assert test.signals.shape == (TEST_SPEAKERS * 10 * TAKES, LENGTH)
    assert len(set(test.voices)) == TEST_SPEAKERS
    words = {tuple(w.round(3)) for w in speech.tone_words([("f1", digit, 175) for digit in range(10)])}
    assert len(words) == 10


@pytest.mark.usefixtures("anew")
def test_a_synthesiser_that_does_not_find_its_data_is_none(monkeypatch):
    loader = pytest.importorskip("espeakng_loader")
    monkeypatch.setattr(loader, "get_data_path", lambda: "/nowhere")
    with pytest.raises(OSError, match="does not find its data in"):
        list(espeak.synthesise([]))


def test_halving_the_rate_keeps_a_low_tone_and_drops_a_high_one():
    times = torch.arange(2205) / espeak.RATE
    low, high = (torch.sin(2 * torch.pi * f * times).numpy() for f in (1000, 8000))
    torch.testing.assert_close(
        torch.from_numpy(speech._halve_rate(low + high)[10:-10]),
        torch.from_numpy(low[:-1:2][10:-10]),
        atol=2e-2,
        rtol=0,
    )
