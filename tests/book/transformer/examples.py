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
        ("attention", ["1", "−1", "0"], [9, 0, -9]),
        ("MLP", [1.327, -0.241, -1.086], [1.327, 0, 0]),
    ]
    arguments = {
        "rungs": rungs,
        "stream": [[2, -2, 0], [11, -2, -9], [12.327, -2, -9]],
        "reads": [("1", "1/2"), ("2", "1/4"), ("3", "1/4"), ("4", None)],
        "factor": "times √(3/2)",
    }
    return transformer.ladder(**(arguments | changes))


def first_steps(**changes):
    arguments = {
        "gradients": {"a": 1e-4, "b": 1e4},
        "moved": {"SGD": [1e-7, 10.0], "Adam": [9.999e-4, 1e-3]},
    }
    return transformer.first_steps(**(arguments | changes))


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
    first_steps,
    stream_sizes,
)
