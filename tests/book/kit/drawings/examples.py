"""Every drawing once, with small numbers, for the tests that look at all of them."""

import math

from tformer_book.attention.drawings import softmax
from tformer_book.kit.drawings import (
    attention,
    bert,
    gpt,
    heads,
    image_gpt,
    inside_features,
    inside_grokking,
    inside_induction,
    layers,
    long_sequences,
    modern_decoder,
    notation,
    positions,
    scale_costs,
    scale_law,
    scale_parallel,
    scale_tuning,
    sequences,
    skip_norm,
    speedrun,
    transformer,
    translation,
    vit,
)
from tformer_lib.scale.pipeline import pipeline_order, pipeline_times

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


def shifted_guesses(**changes):
    arguments = {"tokens": "the cat", "probabilities": [0.9, 0.8, 0.5, 0.02, 0.4, 0.25]}
    return sequences.shifted_guesses(**(arguments | changes))


def merge_rows(**changes):
    merges = [("r", "a"), ("i", "n"), ("ra", "in"), ("t", "rain"), ("train", "s")]
    return sequences.merge_rows(**({"words": ["trains", "strains"], "merges": merges} | changes))


def picked_columns(**changes):
    arguments = {"E": [[1, 0, -1], [0, 2, 1]], "X": [[1, 0, 0], [0, 0, 1], [0, 1, 0]], "names": "abc"}
    return sequences.picked_columns(**(arguments | changes))


def ways_to_the_past(**changes):
    return sequences.ways_to_the_past(**({"n": 10, "distance": 8, "window": 5} | changes))


def gated_state(**changes):
    arguments = {"old": [0.9, -0.4], "gate": [1.0, 0.5], "candidate": [-0.6, 0.8]}
    return sequences.gated_state(**(arguments | changes))


def one_vector(**changes):
    return sequences.one_vector(**({"source": "abcd", "target": "dcba"} | changes))


def head_layer(**changes):
    own, first = (
        [[0.7, 0.1, 0.1], [0.2, 0.8, 0.1], [0.1, 0.1, 0.8]],
        [[1, 0.6, 0.8], [0, 0.4, 0], [0, 0, 0.2]],
    )
    return heads.layer(**({"tokens": ["the", "dog", "barks"], "weights": [own, first]} | changes))


def who_asks(**changes):
    words, others = ["the", "cat", "sat", "down"], ["die", "Katze", "saß"]
    everyone = [[True] * 4] * 4
    causal = [[key <= query for key in range(4)] for query in range(4)]
    panels = {"Self": (words, words, everyone), "Masked": (words, words, causal)}
    panels["Cross"] = others, words, everyone[:3]
    return heads.who_asks(**({"panels": panels, "chosen": 2} | changes))


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


def shuffled(**changes):
    return heads.shuffled(**({"words": ["dog", "bites", "man"], "order": [2, 1, 0]} | changes))


def block(**changes):
    return skip_norm.block(**({"words": ["the", "cat", "sat"]} | changes))


def placements(**changes):
    return skip_norm.placements(**changes)


def norm_axes(**changes):
    sentences = [["the", "cat", "sat"], ["we", "go", "home"]]
    return skip_norm.norm_axes(**({"sentences": sentences, "features": 4, "entry": (0, 1, 2)} | changes))


def normed_in_space(**changes):
    tokens = [[1, 2, 3], [2, 4, 6], [101, 102, 103], [0, 0, 3]]
    return skip_norm.normed_in_space(**({"tokens": tokens} | changes))


def becoming_one(**changes):
    apart = [[1.0, 0.5], [-0.5, 1.2], [-1.0, -0.8], [0.6, -1.0]]
    one = [[0.7, 0.2]] * 4
    rows = {"alone": [(apart, 0.98), (one, 0.002)], "with a skip": [(apart, 0.98), (apart, 0.9)]}
    return skip_norm.becoming_one(**({"rows": rows} | changes))


def tokens_both_ways(**changes):
    X = [[0.5, -1.2, 0.3, 0.9], [1.1, 0.4, -0.6, 0.2], [-0.3, 0.8, 0.7, -1.0]]
    return notation.tokens_both_ways(**({"words": ["the", "cat", "sat", "down"], "X": X} | changes))


def linear_both_ways(**changes):
    return notation.linear_both_ways(**({"D": 3, "E": 5, "N": 4, "token": 1} | changes))


def sizes(**changes):
    return notation.sizes(**({"words": ["the", "cat", "sat", "down"], "heads": 2} | changes))


def three_places(**changes):
    return positions.three_places(**({"tokens": ["dog", "bites", "man"]} | changes))


def clock_faces(**changes):
    arguments = {"places": [0, 1, 2, 3, 20], "speeds": [1.0, 0.1, 0.01, 0.001]}
    return positions.clock_faces(**(arguments | changes))


def turning_pair(**changes):
    arguments = {"query": 0.5, "key": -0.2, "speed": 0.7, "pairs": [(1, 0), (5, 4), (5, 2)]}
    return positions.turning_pair(**(arguments | changes))


def offsets_and_biases(**changes):
    rows = [
        ["0", 0.0, "b₀"],
        ["1", -0.25, "b₁"],
        ["2", -0.5, "b₂"],
        ["3", -0.75, "b₃"],
        ["500", -125.0, "b₃₁"],
    ]
    heads = ["offset\nn − s", "ALiBi\nslope 1/4", "T5\nbucket"]
    arguments = {"words": ["the", "dog", "bites", "me"], "rows": rows, "heads": heads}
    return positions.offsets_and_biases(**(arguments | changes))


def swept_angles(**changes):
    speeds = [10 ** (-i / 2) for i in range(8)]
    arguments = {"speeds": speeds, "trained": 64, "read": 256, "marked": 3}
    return positions.swept_angles(**(arguments | changes))


def what_changed(**changes):
    rows = {"1 block": [0.41, 0.52, 0.0, 0.0], "2 blocks": [0.33, 0.6, 0.12, 0.08]}
    arguments = {"words": ["the", "dog", "bit", "me"], "swapped": [1, 0, 2, 3], "change": rows}
    return positions.what_changed(**(arguments | changes))


def floors(**changes):
    return layers.layers(**({"floors": ["book", "analysis | measures | pretrained", "models"]} | changes))


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


def stream_sizes(**changes):
    starts = {
        "Xavier's rule": [1 + 0.25 * i for i in range(17)],
        "divided by √(2M)": [1 + 0.02 * i for i in range(17)],
    }
    return transformer.stream_sizes(**({"starts": starts} | changes))


def questions(**changes):
    arguments = {"words": ["true", "love", "never", "did", "run", "smooth"]}
    return gpt.questions(**(arguments | changes))


def packed_window(**changes):
    arguments = {
        "stream": ["he", "ran", "home", ".", "[end]", "she", "sat"],
        "start": 1,
        "length": 5,
        "end": "[end]",
    }
    return gpt.packed_window(**(arguments | changes))


def growing_cache(**changes):
    return gpt.growing_cache(**({"words": ["true", "love", "never", "did"], "prompt": 2} | changes))


def jumping_window(**changes):
    starts = {n: max(0, -(-(n - 8) // 4) * 4) for n in range(6, 17)}
    return gpt.jumping_window(**({"starts": starts, "context": 8} | changes))


def interleaved(**changes):
    return gpt.interleaved(**({"examples": 3} | changes))


def four_heads(**changes):
    heads = {
        "fill a hole": ([2], "on"),
        "name the intent": ([0], "turn a thing on"),
        "tag each word": ([1, 2, 3, 4], "O O O B-thing"),
        "a vector for the text": ([0, 1, 2, 3, 4, 5], "the mean"),
    }
    arguments = {"tokens": ["[CLS]", "turn", "[MASK]", "the", "lamp", "[SEP]"], "heads": heads}
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


def tags_and_pieces(**changes):
    arguments = {
        "pieces": ["ad", "##j", "##ust", "the", "liv", "##ing", "ro", "##om"],
        "first": [0, -1, -1, 1, 2, -1, 3, -1],
        "tags": ["O", "O", "B-area", "I-area"],
    }
    return bert.tags_and_pieces(**(arguments | changes))


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


def _causal(rule):
    return [[s <= n and rule(n, s) for s in range(8)] for n in range(8)]


def who_sees_whom(**changes):
    masks = {
        "full": _causal(lambda n, s: True),
        "window": _causal(lambda n, s: n - s < 3),
        "blocks": _causal(lambda n, s: n // 4 == s // 4 or s % 4 == 3),
    }
    return long_sequences.who_sees_whom(**({"masks": masks, "mixtures": 2} | changes))


def online_tiles(**changes):
    arguments = {
        "scores": [[2, 1], [3, 0]],
        "values": [[1, 2], [3, 4]],
        "states": [[2, 1.3679, 1.7358], [3, 1.5530, 3.8377]],
    }
    return long_sequences.online_tiles(**(arguments | changes))


def window_in_blocks(**changes):
    mask = [[0 <= n - s < 4 for s in range(12)] for n in range(12)]
    return long_sequences.window_in_blocks(**({"mask": mask, "block": 4} | changes))


def reach_in_layers(**changes):
    masks = {
        "a window of 4": [[0 <= n - s < 4 for s in range(16)] for n in range(16)],
        "stretches of 4": [
            [s <= n and (n // 4 == s // 4 or s % 4 == 3) for s in range(16)] for n in range(16)
        ],
    }
    return long_sequences.reach_in_layers(**({"masks": masks, "query": 14} | changes))


def chunks_and_state(**changes):
    return long_sequences.chunks_and_state(**({"chunks": 4, "tokens": 4} | changes))


def writes_in_the_plane(**changes):
    arguments = {"keys": [[1.0, 0.0], [0.6, 0.8], [1.0, 0.0]], "values": [2, 5, 7]}
    return long_sequences.writes_in_the_plane(**(arguments | changes))


def two_blocks():
    return modern_decoder.two_blocks()


def on_a_circle(**changes):
    arguments = {"queries": [[1.9, 0.5], [0.45, 0.6]], "keys": [[-1.1, 1.5], [0.25, -0.8], [0.6, 1.9]]}
    return modern_decoder.on_a_circle(**(arguments | changes))


def shared_heads(**changes):
    arguments = {"n_heads": 9, "shares": [9, 3, 1], "costs": ["69 kB a token", "23 kB", "8 kB"]}
    return modern_decoder.shared_heads(**(arguments | changes))


def latent(**changes):
    return modern_decoder.latent(**({"d_model": 128, "d_latent": 48, "n_heads": 4} | changes))


def experts(**changes):
    shares = [0.05, 0.31, 0.08, 0.04, 0.12, 0.02, 0.27, 0.11]
    return modern_decoder.experts(**({"token": "night", "shares": shares, "k": 2} | changes))


def steps_of(**changes):
    G, root = [[3, 0], [4, 5]], 5**0.5
    steps = [("G", G), ("sign(G)", [[1, 0], [1, 1]]), ("UVᵀ", [[2 / root, -1 / root], [1 / root, 2 / root]])]
    return modern_decoder.steps_of(**({"gradient": G, "steps": steps} | changes))


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


def stroke(side=8):
    """An image of a slanted stroke."""
    return [[1.0 if abs(i - j) < 2 and 0 < i < side - 1 else 0.0 for j in range(side)] for i in range(side)]


def image_to_class(**changes):
    arguments = {"image": stroke(28), "parts": 4, "sizes": (49, 48), "blocks": 3}
    arguments["probabilities"] = [0.01, 0.9, *[0.01] * 7, 0.02]
    return vit.image_to_class(**(arguments | changes))


def what_one_sees(**changes):
    return vit.what_one_sees(**({"side": 9} | changes))


def fill_in(**changes):
    hidden = [n not in (1, 6, 8, 15) for n in range(16)]
    return vit.fill_in(**({"image": stroke(28), "hidden": hidden} | changes))


def agreement(**changes):
    arguments = {"images": [stroke()] * 3, "words": ["one", "two", "six"]}
    arguments["cosines"] = [[0.9, 0.1, -0.2], [0.2, 0.8, 0.3], [0.0, -0.1, 0.95]]
    return vit.agreement(**(arguments | changes))


def fold(**changes):
    return image_gpt.fold(**({"image": stroke(14), "row": 6, "column": 5} | changes))


def off_by_one(**changes):
    return image_gpt.off_by_one(**({"tokens": list("003003100"), "width": 4} | changes))


def noise_and_back(**changes):
    arguments = {"images": [stroke(), *[[[0.5] * 8] * 8] * 4], "times": [0, 0.25, 0.5, 0.75, 1]}
    return image_gpt.noise_and_back(**(arguments | changes))


def dit_block():
    return image_gpt.dit_block()


def sound_to_columns(**changes):
    arguments = {"signal": [math.sin(n / 9) for n in range(1000)], "start": 300}
    arguments["powers"] = [1 / (1 + k) for k in range(65)]
    arguments["bands"] = [[(i + j) / 48 for j in range(32)] for i in range(16)]
    return image_gpt.sound_to_columns(**(arguments | changes))


def induction_circuit(**changes):
    arguments = {"tokens": ["the", "grey", "cat", "sat", "the", "grey"]}
    return inside_induction.induction_circuit(**(arguments | changes))


def stream_bus(**changes):
    return inside_induction.stream_bus(**({"tokens": ("grey", "cat")} | changes))


def patched_runs(**changes):
    arguments = {
        "clean": list("ABCDA"),
        "corrupted": list("CBADA"),
        "place": 1,
        "differences": (12.3, 0.4, -12.1),
    }
    return inside_induction.patched_runs(**(arguments | changes))


def patched_paths(**changes):
    arguments = {
        "outcomes": {"Q": "12.3", "K": "−12.1", "V": "12.2", "logits": "12.3"},
        "measured": "logit of B minus D",
    }
    return inside_induction.patched_paths(**(arguments | changes))


def features_in_a_plane(**changes):
    pentagon = [
        [math.cos(0.3 + 1.2566 * k) for k in range(5)],
        [math.sin(0.3 + 1.2566 * k) for k in range(5)],
    ]
    pair = [[1.0, -1.0, 0.02, 0.0, 0.0], [0.0, 0.0, 0.99, -1.01, 0.03]]
    weights = {"density 1": [[0.0, 1.0, 0, 0, 0], [0.0, 0.0, 0, 0, 1.0]], "0.2": pair, "0.02": pentagon}
    return inside_features.features_in_a_plane(**({"weights": weights} | changes))


def clock_addition(**changes):
    return inside_grokking.clock_addition(**({"p": 5, "a": 3, "b": 4, "frequencies": [1, 2]} | changes))


def where_the_bytes_are(**changes):
    names = ("parameters", "gradients", "copy", "averages", "rest")
    sizes = {"a GPT of Chapter 8": (2e6, 2e6, 0, 4e6, 2e7), "7 billion": (14e9, 14e9, 27e9, 54e9, 20e9)}
    models = {model: dict(zip(names, of, strict=True)) for model, of in sizes.items()}
    return scale_costs.where_the_bytes_are(**({"models": models, "memory": 80e9} | changes))


def cut_ways():
    return scale_parallel.cut_ways(4)


def averaged_gradients():
    return scale_parallel.data_parallel(8, "57,856 bytes")


def ring_of_three():
    return scale_parallel.ring_all_reduce([[1, 2, 3], [10, 20, 30], [100, 200, 300]])


def gathered_layer():
    return scale_parallel.sharded("13,120 bytes")


def hidden_halves():
    return scale_parallel.tensor_parallel([1, 2], [[1, 1], [3, -1]], [[2, 1], [-1, 4]], [1, 0])


def pipeline_bubbles():
    schedules = {"GPipe": "gpipe", "1F1B": "1f1b"}
    return scale_parallel.pipeline_schedules(
        {name: pipeline_times(pipeline_order(kind, 3, 4)) for name, kind in schedules.items()}
    )


def keys_that_travel():
    return scale_parallel.ring_attention(4)


def coherent_step(**changes):
    x = [0.8, -1.1, 0.3, 1.5, -0.6, -0.9]
    weights = [0.2, 0.3, -0.4, 0.1, -0.3, 0.5]
    step = [0.1, -0.1, 0.1, 0.1, -0.1, -0.1]
    return scale_tuning.coherent_step(**({"x": x, "weights": weights, "step": step} | changes))


def one_budget(**changes):
    runs = [
        ("too small", 11700, 5.35e6, 1.91),
        ("best", 41240, 1.75e6, 1.81),
        ("too large", 151584, 5.1e5, 1.89),
    ]
    return scale_law.one_budget(**({"runs": runs} | changes))


def tables_and_block(**changes):
    sizes = {"earlier": 2, "single": 80, "shared": 1601, "heads": 2, "hidden": 256}
    return speedrun.tables_and_block(**({"characters": "nigh", "following": "t"} | sizes | changes))


EXAMPLES = (
    soft_lookup,
    attention_matrices,
    negative_matrices,
    columns_and_rows,
    mask_before_softmax,
    decoder_looks_back,
    masks,
    letter_memory,
    pushed_scores,
    shifted_guesses,
    merge_rows,
    picked_columns,
    ways_to_the_past,
    gated_state,
    one_vector,
    head_layer,
    who_asks,
    head_splits,
    two_heads,
    shuffled,
    block,
    placements,
    norm_axes,
    normed_in_space,
    becoming_one,
    tokens_both_ways,
    linear_both_ways,
    sizes,
    three_places,
    clock_faces,
    turning_pair,
    offsets_and_biases,
    swept_angles,
    what_changed,
    floors,
    ids_to_targets,
    machine_masks,
    encoder_decoder,
    stream_sizes,
    questions,
    packed_window,
    growing_cache,
    jumping_window,
    interleaved,
    four_heads,
    leakage,
    three_fates,
    embedding_sum,
    pretraining,
    tags_and_pieces,
    two_stacks,
    forced_reading,
    beam_tree,
    ngram_brackets,
    who_sees_whom,
    online_tiles,
    window_in_blocks,
    reach_in_layers,
    chunks_and_state,
    writes_in_the_plane,
    one_column,
    two_blocks,
    on_a_circle,
    shared_heads,
    latent,
    experts,
    steps_of,
    cut_paths,
    one_sequence,
    image_to_class,
    what_one_sees,
    fill_in,
    agreement,
    fold,
    off_by_one,
    noise_and_back,
    dit_block,
    sound_to_columns,
    induction_circuit,
    stream_bus,
    patched_runs,
    patched_paths,
    features_in_a_plane,
    clock_addition,
    where_the_bytes_are,
    cut_ways,
    averaged_gradients,
    ring_of_three,
    gathered_layer,
    hidden_halves,
    pipeline_bubbles,
    keys_that_travel,
    coherent_step,
    one_budget,
    tables_and_block,
)
