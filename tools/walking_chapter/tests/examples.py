"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.walking.drawings import row_of_tokens


def row_of_walking_tokens(**changes):
    return row_of_tokens(**({"tokens": ["the", "cat"]} | changes))


EXAMPLES = (row_of_walking_tokens,)
