"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.modern_decoder import drawings as modern_decoder


def two_blocks():
    return modern_decoder.two_blocks()


def on_a_circle(**changes):
    arguments = {"queries": [[3, 4]], "keys": [[5, 12]]}
    return modern_decoder.on_a_circle(**(arguments | changes))


def shared_heads(**changes):
    arguments = {"n_heads": 9, "shares": [9, 3, 1], "costs": ["69 kB a token", "23 kB", "8 kB"]}
    return modern_decoder.shared_heads(**(arguments | changes))


def latent(**changes):
    return modern_decoder.latent(**({"d_model": 128, "d_latent": 48, "d_rotary": 16, "n_heads": 4} | changes))


def caches(**changes):
    kept = [("128 heads", 32_768), ("8 shared heads", 2_048), ("latents", 576)]
    return modern_decoder.caches(**({"kept": kept} | changes))


def experts(**changes):
    shares = [0.05, 0.31, 0.08, 0.04, 0.12, 0.02, 0.27, 0.11]
    return modern_decoder.experts(**({"token": "night", "shares": shares, "k": 2} | changes))


def steps_of(**changes):
    G, root = [[3, 0], [4, 5]], 5**0.5
    steps = [("G", G), ("sign(G)", [[1, 0], [1, 1]]), ("UVᵀ", [[2 / root, -1 / root], [1 / root, 2 / root]])]
    return modern_decoder.steps_of(**({"gradient": G, "steps": steps, "token": [1, -1]} | changes))


def what_came_since():
    return modern_decoder.what_came_since()


EXAMPLES = (
    two_blocks,
    on_a_circle,
    shared_heads,
    latent,
    caches,
    experts,
    steps_of,
    what_came_since,
)
