"""The sounds in a page are WAV files that can be read back, and are named for those who do not see them."""

import base64
import io
import math
import re
import wave
from html.parser import HTMLParser

import pytest
import torch

from tformer_book.image_gpt.player import player

TONE = torch.sin(2 * math.pi * 440 * torch.arange(2000) / 8000)


class Elements(HTMLParser):
    """The audio elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "audio":
            self.found.append(dict(attrs))


def test_the_samples_come_back():
    (element,) = Elements(player({"a tone": TONE}, 8000)._repr_html_()).found
    kind, data = element["src"].split(",")
    assert kind == "data:audio/wav;base64"
    with wave.open(io.BytesIO(base64.b64decode(data))) as file:
        assert file.getparams()[:4] == (1, 2, 8000, 2000)
        frames = torch.frombuffer(bytearray(file.readframes(2000)), dtype=torch.int16)
    torch.testing.assert_close(frames / 32767, TONE, atol=1 / 32767, rtol=0)


def test_each_sound_has_a_name_and_a_control():
    page = player({"seven, a voice": TONE, 'the "other" <one>': TONE / 2}, 8000)
    elements = Elements(page._repr_html_()).found
    assert [element["aria-label"] for element in elements] == ["seven, a voice", 'the "other" <one>']
    assert all("controls" in element for element in elements)
    assert repr(page) == 'sounds: seven, a voice, the "other" <one>'
    assert not re.search(r"https?:", page._repr_html_())  # nothing is fetched


@pytest.mark.parametrize(
    ("sounds", "message"),
    [
        ({}, "needs a sound"),
        ({"loud": torch.tensor([0.5, 1.5])}, "loud"),
        ({"none": torch.zeros(0)}, "none"),
        ({"broken": torch.tensor([math.nan])}, "broken"),
    ],
)
def test_what_cannot_be_played_is_refused(sounds, message):
    with pytest.raises(ValueError, match=message):
        player(sounds, 8000)
