"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.speedrun import drawings as speedrun


def tables_and_block(**changes):
    sizes = {"earlier": 2, "single": 80, "shared": 1601, "heads": 2, "hidden": 256}
    return speedrun.tables_and_block(**({"characters": "nigh", "following": "t"} | sizes | changes))


def what_each_bought(**changes):
    shares = {"nanoGPT": 1, "plain": 0.095, "fast": 0.028, "counts": 0.014}
    lost = {"tables of 2, 3, 4 characters": 0.074, "Muon": 0.022, "rotary positions": 0.019, "QK-norm": 0.006}
    arguments = {"shares": shares, "lost": lost, "lead": 0.034, "own": "fast"}
    return speedrun.what_each_bought(**(arguments | changes))


EXAMPLES = (tables_and_block, what_each_bought)
