"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.bert import drawings as bert


def four_heads(**changes):
    heads = {
        "fill a hole": ([2], "on"),
        "name the intent": ([0], "turn a thing on"),
        "tag each word": ([1, 2, 3, 4], "O O O B-thing"),
        "a vector for the text": ([0, 1, 2, 3, 4, 5], "the mean"),
    }
    arguments = {"tokens": ["[CLS]", "turn", "on", "the", "lamp", "[SEP]"], "heads": heads, "hole": 2}
    return bert.four_heads(**(arguments | changes))


def leakage(**changes):
    return bert.leakage(**({"words": ["we", "see", "it", "so"], "own": [0, "1/3"]} | changes))


def three_fates(**changes):
    arguments = {"words": ["so", "we", "see", "it"], "place": 2, "other": "nine", "shares": [0.8, 0.1, 0.1]}
    return bert.three_fates(**(arguments | changes))


def embedding_sum(**changes):
    tokens = ["[CLS]", "we", "met", "[SEP]", "he", "left", "[SEP]"]
    return bert.embedding_sum(**({"tokens": tokens, "segments": [0, 0, 0, 0, 1, 1, 1]} | changes))


def pretraining(**changes):
    arguments = {
        "tokens": ["[CLS]", "we", "[MASK]", "it", "[SEP]", "it", "[MASK]", "late", "[SEP]"],
        "segments": [0, 0, 0, 0, 0, 1, 1, 1, 1],
        "asked": {2: "saw", 6: "was"},
    }
    return bert.pretraining(**(arguments | changes))


def both_sides(**changes):
    guesses = {"after 'as'": ([2], "a", "486 of 3,433"), "both": ([2, 4], "well", "136 of 203")}
    arguments = {"tokens": ["states", ",", "as", "well", "as", "Texas"], "place": 3, "guesses": guesses}
    return bert.both_sides(**(arguments | changes))


def trainings(**changes):
    stages = [("nothing", "random weights"), ("Wikipedia", "one hour"), ("commands", "no labels")]
    return bert.trainings(**({"stages": stages, "last": "five labelled sentences a class"} | changes))


def tags_and_pieces(**changes):
    arguments = {
        "pieces": ["ad", "##j", "##ust", "the", "liv", "##ing", "ro", "##om"],
        "first": [0, -1, -1, 1, 2, -1, 3, -1],
        "tags": ["O", "O", "B-area", "I-area"],
        "words": ["adjust", "the", "living", "room"],
    }
    return bert.tags_and_pieces(**(arguments | changes))


def pencil(**changes):
    arguments = {
        "read": ["we", "[MASK]", "it", "[PAD]"],
        "odds": [2, 1, 4, 0],
        "mean": "ln 2 (1, 2, 1)",
        "guesses": {"we": ("2", False), "see": ("8", True), "so": ("1/2", True), "[PAD]": ("1", False)},
        "total": "11.5",
    }
    return bert.pencil(**(arguments | changes))


def filled(**changes):
    sentences = {"It is one [MASK] many.": {"of": 0.97, "in": 0.01}, "[MASK] came late.": {"he": 0.5}}
    return bert.filled(**({"sentences": sentences} | changes))


def found_by_meaning(**changes):
    passages = [("Rain is likely.", 0.6, []), ("Will is a boy.", -0.05, ["will"])]
    return bert.found_by_meaning(**({"query": "Will it be wet?", "passages": passages} | changes))


EXAMPLES = (
    both_sides,
    four_heads,
    leakage,
    three_fates,
    embedding_sum,
    pretraining,
    trainings,
    tags_and_pieces,
    pencil,
    filled,
    found_by_meaning,
)
