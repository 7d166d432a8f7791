"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.speedrun import drawings as speedrun


def tables_and_block(**changes):
    sizes = {"earlier": 2, "single": 80, "shared": 1601, "heads": 2, "hidden": 256}
    return speedrun.tables_and_block(**({"characters": "nigh", "following": "t"} | sizes | changes))


EXAMPLES = (tables_and_block,)
