"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.multi_head import drawings as heads


def one_average(**changes):
    return heads.one_average(
        **({"names": ["Ann", "Ben"], "pairs": [(7, 3), (3, 7), (7, 7), (3, 3)]} | changes)
    )


def head_layer(**changes):
    own, first = (
        [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]],
        [[1, 0, 0], [0.6, 0.4, 0], [0.8, 0, 0.2]],
    )
    return heads.layer(**({"tokens": ["the", "dog", "barks"], "weights": [own, first]} | changes))


def who_asks(**changes):
    words, others = ["the", "cat", "sat", "down"], ["die", "Katze", "saß"]
    everyone = [[True] * 4] * 4
    causal = [[key <= query for key in range(4)] for query in range(4)]
    panels = {"Self": (words, words, everyone), "Masked": (words, words, causal)}
    panels["Cross"] = others, words, everyone[:3]
    return heads.who_asks(**({"panels": panels, "chosen": 2} | changes))


def two_needs(**changes):
    words = ["the", "dog", "chased", "the", "cat", "because", "it", "was", "hungry"]
    return heads.two_needs(**({"words": words, "query": 6, "reads": [[1, 4], [8]]} | changes))


def head_splits(**changes):
    right = [[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]
    wrong = [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]
    return heads.splits(**({"tokens": "abc", "right": right, "wrong": wrong} | changes))


def two_heads(**changes):
    arguments = {
        "names": ["Ann", "Ben", "?"],
        "values": [28, 12, 0],
        "weights": [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]],
        "signs": [1, -1],
        "written": [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]],
    }
    return heads.two_heads(**(arguments | changes))


def one_below_another(**changes):
    asks = [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    tokens = [[7, 3, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    arguments = {"maps": asks, "tokens": tokens, "names": ["Ann", "Ben", "?"], "unit": "√2 ln 2"}
    return heads.one_below_another(**(arguments | changes))


def two_readings(**changes):
    causal = [[key <= query for key in range(4)] for query in range(4)]
    readings = {"scaled_dot_product_attention": True, "nn.MultiheadAttention": False}
    arguments = {"words": ["the", "cat", "sat", "down"], "mask": causal, "readings": readings}
    return heads.two_readings(**(arguments | changes))


def same_side(**changes):
    ways = {
        "even weights": (0, 0),
        "weights ¾ and ¼": (0.6, 0.2),
        "“+” alone": (1, 0),
        "two averages": (1, -1),
    }
    return heads.same_side(**({"ways": ways, "free": ["two averages"]} | changes))


def weights_subtracted(**changes):
    arguments = {
        "names": ["Ann", "Ben", "?"],
        "weights": [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]],
        "written": [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["+1/4", "−1/4", "0"]],
    }
    return heads.weights_subtracted(**(arguments | changes))


def shuffled(**changes):
    return heads.shuffled(**({"words": ["dog", "bites", "man"], "order": [2, 1, 0]} | changes))


EXAMPLES = (
    one_average,
    head_layer,
    who_asks,
    two_needs,
    head_splits,
    two_heads,
    one_below_another,
    two_readings,
    same_side,
    weights_subtracted,
    shuffled,
)
