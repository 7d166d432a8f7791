"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.long_sequences import drawings as long_sequences


def _causal(rule):
    return [[s <= n and rule(n, s) for s in range(8)] for n in range(8)]


def who_sees_whom(**changes):
    masks = {
        "full": _causal(lambda n, s: True),
        "window": _causal(lambda n, s: n - s < 3),
        "blocks": _causal(lambda n, s: n // 4 == s // 4 or s % 4 == 3),
    }
    return long_sequences.who_sees_whom(**({"masks": masks} | changes))


def online_tiles(**changes):
    arguments = {
        "scores": [[2, 1], [3, 0]],
        "values": [[1, 2], [3, 4]],
        "states": [[2, 1.3679, 1.7358], [3, 1.5530, 3.8377]],
    }
    return long_sequences.online_tiles(**(arguments | changes))


def window_in_blocks(**changes):
    mask = [[0 <= n - s < 4 for s in range(12)] for n in range(12)]
    return long_sequences.window_in_blocks(**({"mask": mask, "block": 4} | changes))


def reach_in_layers(**changes):
    masks = {
        "a window of 4": [[0 <= n - s < 4 for s in range(16)] for n in range(16)],
        "stretches of 4": [
            [s <= n and (n // 4 == s // 4 or s % 4 == 3) for s in range(16)] for n in range(16)
        ],
    }
    return long_sequences.reach_in_layers(**({"masks": masks, "query": 14} | changes))


def chunks_and_state(**changes):
    return long_sequences.chunks_and_state(**({"chunks": 4, "tokens": 4} | changes))


def writes_in_the_plane(**changes):
    arguments = {"keys": [[1.0, 0.0], [0.6, 0.8], [1.0, 0.0]], "values": [2, 5, 7]}
    return long_sequences.writes_in_the_plane(**(arguments | changes))


def state_or_triangle(**changes):
    arguments = {"queries": [1, 1, 2], "keys": [1, 2, 1], "values": [4, 1, 3], "gates": [1, 0.5, 0.5]}
    return long_sequences.state_or_triangle(**(arguments | changes))


EXAMPLES = (
    who_sees_whom,
    online_tiles,
    window_in_blocks,
    reach_in_layers,
    chunks_and_state,
    writes_in_the_plane,
    state_or_triangle,
)
