"""Ten words, *zero* to *nine*, said by many voices: synthesised on the spot, speakers held out."""

import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tformer_book.kit.data import espeak

RATE = 11_025  # samples a second
LENGTH = 8_320  # samples: 64 frames of 256, one every 128; three quarters of a second
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ACCENTS = ("en", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-gb-x-rp", "en-us", "en-us-nyc")
SPEAKERS = (
    *("Alex", "Alicia", "Andrea", "Andy", "Annie", "Denis", "Diogo", "Gene", "Henrique", "Hugo"),
    *("Jacky", "Lee", "Marco", "Mario", "Michael", "Mike", "Nguyen", "Gene2", "Storm", "iven2"),
    *("anika", "antonio", "aunty", "belinda", "iven3", "boris", "steph2", "steph3", "ed"),
    *("AnxiousAndy", "f1", "f2", "f3", "f4", "f5", "grandma", "grandpa", "gustave", "ian", "iven"),
    *("john", "kaukovalta", "RicishayMax", "RicishayMax3", "iven4", "linda", "m1", "m2", "m3", "m4"),
    *("m5", "m6", "m7", "m8", "marcelo", "max", "michel", "miguel", "norbert", "pablo", "paul"),
    *("pedro", "quincy", "rob", "robert", "sandro", "shelby", "steph", "travis", "victor", "zac"),
)
LATEST = 2_500  # the sample before which a word begins
NOISE = 0.01  # standard deviation of what is heard behind the words, whose loudest sample is 1
TAKES = 3  # of each word by each speaker
TEST_SPEAKERS = 18
SEED = 0


@dataclass(frozen=True)
class Clips:
    """Clips of one length and one rate, what is said in each, and who says it."""

    signals: Float[Tensor, "clips T"]  # at RATE; a word's loudest sample is 1
    labels: Int[Tensor, " clips"]  # the digit
    voices: tuple[str, ...]  # the speaker


def spoken_digits(split: str = "train") -> Clips:
    """The clips of one part, "train" or "test", which have no speaker in common.

    A speaker is one of eSpeak NG's variants of the human voice (its formants, its pitch, its breath), and
    says each word `TAKES` times, each time with another of the `ACCENTS`, at another speed and pitch, and
    beginning at another moment of the clip; behind it is a little noise. Accents and words are the same in
    both parts; speakers are not.

    Where the package espeakng-loader is missing or does not work, the words are melodies instead
    (`tone_words`), and a warning says so. All clips are made at the first call and kept.

    Raises:
        ValueError: if there is no such part.
    """
    if split not in ("train", "test"):
        raise ValueError(f"the parts are 'train' and 'test', got {split!r}")
    return _all_clips()[split]


@cache
def _all_clips() -> dict[str, Clips]:
    draw = random.Random(SEED)
    held_out = set(draw.sample(SPEAKERS, TEST_SPEAKERS))
    plan = [
        (speaker, digit, accent, draw.randint(140, 240), draw.randint(25, 75), draw.randrange(LATEST))
        for speaker in SPEAKERS
        for digit in range(10)
        for accent in draw.sample(ACCENTS, TAKES)
    ]
    try:
        words = [espeak.SpokenWord(WORDS[d], f"{accent}+{who}", v, p) for who, d, accent, v, p, _ in plan]
        spoken = [_halve_rate(samples) for samples in espeak.synthesise(words, SEED)]
    except (ImportError, OSError) as error:
        warnings.warn(f"no speech here, but melodies in its place: {error}", stacklevel=3)
        spoken = list(tone_words([(who, d, speed) for who, d, _, speed, _, _ in plan]))
    noise = NOISE * torch.randn(len(plan), LENGTH, generator=torch.Generator().manual_seed(SEED))
    placed = [_placed(word, start) for word, (*_, start) in zip(spoken, plan, strict=True)]
    signals = torch.stack(placed) + noise
    parts = {}
    for split in ("train", "test"):
        rows = [i for i, (who, *_) in enumerate(plan) if (who in held_out) == (split == "test")]
        labels = torch.tensor([plan[i][1] for i in rows])
        parts[split] = Clips(signals[rows], labels, tuple(plan[i][0] for i in rows))
    return parts


def _halve_rate(samples: np.ndarray) -> np.ndarray:
    """Half as many samples a second: the upper half of the spectrum is dropped, the lower one kept."""
    half = len(samples) // 2
    return np.fft.irfft(np.fft.rfft(samples[: 2 * half])[: half // 2 + 1], half).astype(np.float32) / 2


def _placed(samples: np.ndarray, start: int) -> Tensor:
    """The word without the silence around it, its loudest sample 1 or -1; it begins at `start`, or at the
    last moment that leaves room for all of it."""
    (loud,) = np.nonzero(np.abs(samples) > 0.01 * np.abs(samples).max())
    word = torch.from_numpy(samples[loud[0] : loud[-1] + 1])[:LENGTH]
    start = min(start, LENGTH - len(word))
    return torch.nn.functional.pad(word / word.abs().max(), (start, LENGTH - start - len(word)))


def tone_words(plan: list[tuple[str, int, int]]) -> Iterator[np.ndarray]:
    """Ten words of another language: three vowels each, a vowel being two tones where a voice has formants.

    Args:
        plan: speaker, digit and speed of each word. A speaker's formants are all higher or lower by a factor
            of its own, up to 15 per cent, as those of longer and shorter throats are.
    """
    vowels = ((300, 2300), (700, 1200), (350, 800), (550, 1800))  # as in ee, ah, oo, eh
    for speaker, digit, speed in plan:
        shape = random.Random(speaker).uniform(0.87, 1.15)
        length = round(0.12 * RATE * 175 / speed)
        times = np.arange(length) / RATE
        three = [(digit + 1) // 4**place % 4 for place in range(3)]
        sounds = [sum(np.sin(2 * np.pi * shape * f * times) for f in vowels[v]) for v in three]
        yield (np.concatenate(sounds) * np.hanning(3 * length)).astype(np.float32)
