"""Sounds that a page can play: WAV files of 16 bits within the page itself, so that nothing is fetched."""

import base64
import io
import wave
from collections.abc import Mapping
from html import escape

import numpy as np
from jaxtyping import Float
from torch import Tensor


def player(sounds: Mapping[str, Float[Tensor, " T"]], rate: int) -> "Player":
    """A row with a name and a play button for each sound.

    Args:
        sounds: samples from -1 to 1, by name; the name is also what a screen reader says.
        rate: samples a second.

    Raises:
        ValueError: if there is no sound, one is empty, or a sample lies outside [-1, 1].
    """
    if not sounds:
        raise ValueError("a player needs a sound")
    for name, samples in sounds.items():
        if not len(samples) or not bool((samples.abs() <= 1).all()):
            raise ValueError(f"samples lie in [-1, 1] and there are some, which is not so for {name!r}")
    return Player({name: wav(samples, rate) for name, samples in sounds.items()})


class Player:
    """What `player` returns; shows itself as HTML, and as names where there is none."""

    def __init__(self, files: Mapping[str, bytes]):
        self.files = dict(files)

    def __repr__(self) -> str:
        return "sounds: " + ", ".join(self.files)

    def _repr_html_(self) -> str:
        rows = [
            '<div style="display: flex; flex-wrap: wrap; gap: .5em 1em; align-items: center; margin: 1ex 0">'
            f'<span style="min-width: 9em">{escape(name)}</span>'
            f'<audio controls preload="metadata" aria-label="{escape(name)}" style="max-width: 100%" '
            f'src="data:audio/wav;base64,{base64.b64encode(file).decode()}"></audio></div>'
            for name, file in self.files.items()
        ]
        return "".join(rows)


def wav(samples: Float[Tensor, " T"], rate: int) -> bytes:
    """A WAV file: one channel, 16 bits a sample, little end first."""
    whole = np.round(samples.detach().cpu().numpy() * 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(whole.tobytes())
    return buffer.getvalue()
