"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tests.book.kit.drawings.strokes import stroke
from tformer_book.vit import drawings as vit


def image_to_class(**changes):
    arguments = {"image": stroke(28), "parts": 4, "sizes": (49, 48), "blocks": 3}
    arguments["probabilities"] = [0.01, 0.9, *[0.01] * 7, 0.02]
    return vit.image_to_class(**(arguments | changes))


def moved_digit(**changes):
    return vit.moved_digit(**({"image": stroke(28), "row": 12} | changes))


def moved_patch(**changes):
    return vit.moved_patch(**({"image": stroke(28), "parts": 4, "which": 6} | changes))


def what_one_sees(**changes):
    return vit.what_one_sees(**({"side": 9} | changes))


def fill_in(**changes):
    hidden = [n not in (1, 6, 8, 15) for n in range(16)]
    return vit.fill_in(**({"image": stroke(28), "hidden": hidden} | changes))


def filled(**changes):
    arguments = {"images": [stroke(28)] * 3, "inks": [stroke(28)] * 3}
    arguments["hidden"] = [[n % 4 != 1 for n in range(49)]] * 3
    return vit.filled(**(arguments | changes))


def agreement(**changes):
    arguments = {"images": [stroke()] * 3, "words": ["one", "two", "six"]}
    arguments["cosines"] = [[0.9, 0.1, -0.2], [0.2, 0.8, 0.3], [0.0, -0.1, 0.95]]
    return vit.agreement(**(arguments | changes))


EXAMPLES = (
    image_to_class,
    moved_digit,
    moved_patch,
    what_one_sees,
    fill_in,
    filled,
    agreement,
)
