"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.translation import drawings as translation


def two_stacks(**changes):
    arguments = {
        "source": ["March", "␣14"],
        "read": ["begin", "14", ".", "␣März"],
        "asked": ["14", ".", "␣März", "end"],
    }
    return translation.two_stacks(**(arguments | changes))


def forced_reading(**changes):
    arguments = {
        "source": ["March", "␣14", "end", "pad"],
        "real": [True, True, True, False],
        "read": ["begin", "14", ".", "März"],
        "asked": ["14", ".", "März", "end"],
    }
    return translation.forced_reading(**(arguments | changes))


def beam_tree(**changes):
    P = [[0.5, 0.3, 0.05], [0.4, 0.3, 0.05], [0.1, 0.4, 0.9]]
    return translation.beam_tree(**({"P": P, "names": ["a", "b", "."], "k": 2} | changes))


def beam_steps(**changes):
    arguments = {
        "steps": [
            [(0, "17", 0.9), (0, "Dez", 0.05)],
            [(0, ".–", 0.5), (0, ".", 0.38)],
            [(0, "13", 0.49), (1, "␣Dez", 0.37)],
            [(0, "end", 0.2), (1, "end", 0.36)],
        ],
        "greedy": [0, 0, 0, 0],
        "found": (3, 1),
    }
    return translation.beam_steps(**(arguments | changes))


def ngram_brackets(**changes):
    arguments = {
        "written": ["the", "dog", "bit", "a", "man", "yesterday"],
        "reference": ["the", "dog", "bit", "the", "man", "yesterday"],
    }
    return translation.ngram_brackets(**(arguments | changes))


def one_column(**changes):
    arguments = {
        "source": ["March", "␣14", ",", "1", ":", "30", "␣PM"],
        "weights": [0.02, 0.03, 0.05, 0.7, 0.05, 0.05, 0.1],
        "written": ["14", ".", "␣März", "13", ":", "30"],
        "step": 3,
    }
    return translation.one_column(**(arguments | changes))


def cut_paths(**changes):
    cuts = {
        "nothing hidden": (False, False, False),
        "decoder may not read PM": (True, False, False),
        "hour may not read PM": (False, True, False),
        "nobody may": (True, True, True),
    }
    return translation.cut_paths(**({"hour": "9", "half": "␣PM", "written": "21", "cuts": cuts} | changes))


def one_sequence(**changes):
    arguments = {
        "source": ["March", "␣14", "end"],
        "read": ["begin", "14", ".", "␣März"],
        "asked": ["14", ".", "␣März", "end"],
    }
    return translation.one_sequence(**(arguments | changes))


EXAMPLES = (
    two_stacks,
    forced_reading,
    beam_tree,
    beam_steps,
    ngram_brackets,
    one_column,
    cut_paths,
    one_sequence,
)
