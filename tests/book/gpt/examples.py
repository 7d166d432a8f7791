"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.gpt import drawings as gpt


def questions(**changes):
    arguments = {"words": ["true", "love", "never", "did", "run", "smooth"]}
    return gpt.questions(**(arguments | changes))


def packed_window(**changes):
    arguments = {
        "stream": ["he", "ran", "home", ".", "[end]", "she", "sat"],
        "start": 1,
        "length": 5,
        "end": "[end]",
    }
    return gpt.packed_window(**(arguments | changes))


def growing_cache(**changes):
    return gpt.growing_cache(**({"words": ["true", "love", "never", "did"], "prompt": 2} | changes))


def climbing_token(**changes):
    return gpt.climbing_token(**({"words": ["true", "love", "never", "did"], "blocks": 3} | changes))


def jumping_window(**changes):
    starts = {n: max(0, -(-(n - 8) // 4) * 4) for n in range(6, 17)}
    return gpt.jumping_window(**({"starts": starts, "context": 8} | changes))


def interleaved(**changes):
    return gpt.interleaved(**({"examples": 3} | changes))


def surprise(**changes):
    bits = {"after 8 characters": [2.3, 0.6, 1.5, 0.6, 5.0, 4.2], "after 127": [2.5, 0.5, 1.4, 0.4, 6.5, 4.0]}
    return gpt.surprise(**({"lines": ["To ", "be,"], "bits": bits} | changes))


EXAMPLES = (
    questions,
    packed_window,
    growing_cache,
    climbing_token,
    jumping_window,
    interleaved,
    surprise,
)
