"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.transformer import drawings as transformer


def ids_to_targets(**changes):
    arguments = {
        "tokens": ["the", "cat", "sat", "on", "the", "mat"],
        "ids": [4, 17, 9, 6, 4, 23],
        "sizes": {"D": 64, "M": 3, "vocab": 80},
    }
    return transformer.ids_to_targets(**(arguments | changes))


def machine_masks(**changes):
    words, causal = ["the", "cat", "sat", "down"], [[key <= query for key in range(4)] for query in range(4)]
    joined = [[key < 2 or 2 <= key <= query for key in range(4)] for query in range(4)]
    panels = {
        "Encoder": (words, [[True] * 4] * 4, 0, "a vector for each token"),
        "Decoder": (words, causal, 0, "the next token, everywhere"),
        "Encoder-decoder": (["he", "ran", "er", "lief"], joined, 2, "the target's next token"),
    }
    return transformer.machine_masks(**({"panels": panels} | changes))


def encoder_decoder(**changes):
    arguments = {"source": ["he", "ran", "home"], "target": ["[begin]", "er", "lief"]}
    return transformer.encoder_decoder(**(arguments | changes))


def ladder(**changes):
    rungs = [
        ("attention", [1.2247, -1.2247, 0], [9, 0, -9]),
        ("MLP", [1.327, -0.241, -1.086], [1.327, 0, 0]),
    ]
    arguments = {
        "rungs": rungs,
        "stream": [[2, -2, 0], [11, -2, -9], [12.327, -2, -9]],
        "reads": [("1", "1/2"), ("2", "1/4"), ("3", "1/4"), ("4", None)],
        "factor": "= √1.5 · (1, −1, 0)",
    }
    return transformer.ladder(**(arguments | changes))


def block_squares(**changes):
    arguments = {
        "attention": dict.fromkeys(("W_q", "W_k", "W_v", "W_o"), (1, 1)),
        "mlp": {"W_in": (4, 1), "W_out": (1, 4)},
    }
    return transformer.block_squares(**(arguments | changes))


def stream_sizes(**changes):
    starts = {
        "Xavier's rule": [1 + 0.25 * i for i in range(17)],
        "divided by √(2M)": [1 + 0.02 * i for i in range(17)],
    }
    return transformer.stream_sizes(**({"starts": starts} | changes))


EXAMPLES = (
    ids_to_targets,
    machine_masks,
    encoder_decoder,
    ladder,
    block_squares,
    stream_sizes,
)
