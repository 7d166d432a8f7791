"""eSpeak NG, a small formant synthesiser, through its C interface: words in, samples out, nothing online."""

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RATE = 22_050  # samples a second
SYNCHRONOUS, DO_NOT_EXIT = 2, 1 << 15  # audio comes back by a callback; a failure returns instead of exiting
SPEED, PITCH = 1, 3  # the numbers of two parameters
UTF8 = 1
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@dataclass(frozen=True)
class SpokenWord:
    """A word, and how to say it."""

    text: str
    voice: str  # an accent, a plus sign, and a speaker: "en-gb-scotland+f2"
    speed: int  # words a minute
    pitch: int  # 0 to 100, 50 being the speaker's own


def synthesise(utterances: Iterable[SpokenWord], seed: int = 0) -> Iterator[np.ndarray]:
    """The samples of each utterance, at `RATE`, as floats from -1 to 1.

    The synthesiser's noise is drawn from `seed`, but part of its state outlives an utterance: on one machine
    the same list gives the same samples in a new process, and only nearly the same ones if it is synthesised
    again. There is one synthesiser in a process: exhaust one of these iterators before you begin another.

    Raises:
        ImportError: if the package espeakng-loader, which holds the synthesiser, is not installed.
        OSError: if its library cannot be loaded, does not find its data, or does not say an utterance.
        ValueError: if there is no such accent, or no such speaker.
    """
    import espeakng_loader  # type: ignore[import-untyped]

    library = ctypes.CDLL(str(espeakng_loader.get_library_path()))
    pieces: list[np.ndarray] = []

    @CALLBACK
    def collect(samples: "ctypes._Pointer[ctypes.c_short]", count: int, _events: int | None) -> int:
        if count > 0:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    folder = Path(espeakng_loader.get_data_path()).resolve()  # without links: long paths are cut off
    if not (folder / "phontab").exists():
        raise OSError(f"eSpeak NG does not find its data in {folder}")
    rate = library.espeak_Initialize(SYNCHRONOUS, 0, str(folder).encode(), DO_NOT_EXIT)
    if rate != RATE:
        raise OSError(f"eSpeak NG does not start: it answers {rate} where {RATE} was expected")
    try:
        if not hasattr(library, "espeak_ng_SetRandSeed"):
            raise OSError("this eSpeak NG is too old: it has no espeak_ng_SetRandSeed")
        library.espeak_ng_SetRandSeed(ctypes.c_long(seed))
        library.espeak_SetSynthCallback(collect)
        for each in utterances:
            _, _, speaker = each.voice.partition("+")  # eSpeak leaves out a speaker that it does not know
            unknown = speaker and not (folder / "voices" / "!v" / speaker).is_file()
            if unknown or library.espeak_SetVoiceByName(each.voice.encode()):
                raise ValueError(f"eSpeak NG has no voice {each.voice!r}")
            text = each.text.encode() + b"\0"
            failed = (
                library.espeak_SetParameter(SPEED, each.speed, 0)
                or library.espeak_SetParameter(PITCH, each.pitch, 0)
                or library.espeak_Synth(text, ctypes.c_size_t(len(text)), 0, 1, 0, UTF8, None, None)
            )
            if failed or not pieces:
                raise OSError(f"eSpeak NG could not say {each.text!r}")
            yield np.concatenate(pieces).astype(np.float32) / 32768
            pieces.clear()
    finally:
        library.espeak_Terminate()
