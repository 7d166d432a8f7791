"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.attention import drawings as attention
from tformer_book.attention.drawings import softmax

SCORES = [-3.56, -0.22, -0.89, -5.56, -14.22]
WEIGHTS = softmax(SCORES)
K = [[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]]
V = [[3.0, 0, 0, 3], [0, 6, 0, 3], [0, 0, 6, 0]]
Q = [[1.2, 0, 0, 1.2], [0, 2.4, 0, 1.2], [0, 0, 3.6, 0]]
Z = [[1.2, 0, 0, 1.2], [0, 2.4, 0, 1.2], [0, 0, 3.6, 0], [1.2, 2.4, 0, 2.4]]
A = [
    ["1/3", "1/10", "1/11", "2/9"],
    ["1/6", "2/5", "1/11", "2/9"],
    ["1/6", "1/10", "8/11", "1/9"],
    ["1/3", "2/5", "1/11", "4/9"],
]
Y = [[2.0, 1.5, 0.55, 2], [2, 3.6, 0.82, 2.67], [1, 0.6, 4.36, 0.67]]
ROWS = [[0.7, 0.1, 0.05], [0.2, 0.8, 0.15], [0.1, 0.1, 0.8]]


def soft_lookup(**changes):
    arguments = {
        "query": "10 h",
        "keys": ["6 h", "9 h", "12 h", "15 h", "18 h"],
        "scores": SCORES,
        "weights": WEIGHTS,
        "values": ["8°", "12°", "17°", "19°", "15°"],
        "answer": "13.6°",
    }
    return attention.soft_lookup(**(arguments | changes))


def attention_matrices(**changes):
    return attention.attention_matrices(**({"Q": Q, "K": K, "V": V, "Z": Z, "A": A, "Y": Y} | changes))


def negative_matrices():
    Q_, Z_, Y_ = ([[-x for x in row] for row in X] for X in (Q, Z, Y))
    return attention_matrices(Q=Q_, Z=Z_, Y=Y_)


def columns_and_rows(**changes):
    arguments = {"A": ROWS, "queries": ["der", "Hund", "bellt"], "keys": ["the", "dog", "barks"]}
    return attention.columns_and_rows(**(arguments | changes))


def tempered(**changes):
    arguments = {
        "keys": ["6 h", "9 h", "12 h", "15 h", "18 h"],
        "scores": SCORES,
        "temperatures": [0.2, 1, 10, float("inf")],
    }
    return attention.tempered(**(arguments | changes))


def mask_before_softmax(**changes):
    arguments = {
        "scores": [0.7, -0.2, 1.1, 1.4, 0.3],
        "allowed": [True, True, True, False, False],
        "words": ["the", "cat", "sat", "[pad]", "[pad]"],
    }
    return attention.mask_before_softmax(**(arguments | changes))


def decoder_looks_back(**changes):
    arguments = {
        "source": ["the", "black", "cat", "sat"],
        "target": ["die", "schwarze", "Katze", "saß"],
        "step": 2,
        "weights": [0.05, 0.12, 0.78, 0.05],
    }
    return attention.decoder_looks_back(**(arguments | changes))


def context_swap(**changes):
    arguments = {"first": ["f", "b", "k", "a", "m"], "second": ["t", "g", "d", "c", "z"], "step": 2}
    return attention.context_swap(**(arguments | changes))


def masks(**changes):
    words, filled = ["the", "cat", "sat", "down"], ["sit", "down", "[pad]", "[pad]"]
    causal = [[key <= query for key in range(4)] for query in range(4)]
    padding = [[word != "[pad]" for word in filled]] * 4
    arguments = {
        "panels": {"Causal mask": (words, causal), "Padding mask": (filled, padding)},
        "chosen": ("Causal mask", 2),
    }
    return attention.masks(**(arguments | changes))


def letter_memory(**changes):
    arguments = {
        "letters": ["c", "k", "a", "m", "t", "z"],
        "digits": [7, 2, 9, 1, 4, 0],
        "asked": "k",
        "weights": [0.01, 0.95, 0.02, 0.0, 0.01, 0.01],
        "answer": 2,
    }
    return attention.letter_memory(**(arguments | changes))


def pushed_scores(**changes):
    arguments = {
        "values": [[0.0, 2.6], [3.0, 2.4], [4.4, 0.4], [2.2, -0.4], [-0.6, 0.3]],
        "weights": [0.3, 0.25, 0.05, 0.25, 0.15],
        "gradient": [-1.0, -0.2],
    }
    return attention.pushed_scores(**(arguments | changes))


EXAMPLES = (
    soft_lookup,
    attention_matrices,
    negative_matrices,
    columns_and_rows,
    tempered,
    mask_before_softmax,
    decoder_looks_back,
    context_swap,
    masks,
    letter_memory,
    pushed_scores,
)
