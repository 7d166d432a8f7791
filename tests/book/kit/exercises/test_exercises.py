"""The book's solutions pass their checks, and each known mistake is told apart from all others."""

import ast
import json
import math
import random

import pytest
import torch
from chapters import notebooks

from tformer_book.kit.exercises import check, exercises

EXERCISES = exercises()
REQUIRED = {  # the slips that readers of such books make most, each where it belongs
    "sequences.most_frequent_pair": ["word counts ignored", "pairs across words"],
    "sequences.merge_pair": ["second half kept", "only the first place"],
    "sequences.patch_columns": ["a single reshape", "patches in rows"],
    "sequences.bits_per_character": ["nats for bits", "bits per token"],
    "sequences.interpolated_bigram": ["rows instead of columns", "a column of nothing"],
    "sequences.gru_step": ["update gate the wrong way", "reset gate forgotten"],
    "attention.softmax_columns": ["softmax over rows"],
    "attention.attention_columns": [
        "missing scale",
        "scale by Dh instead of its root",
        "softmax over queries",
    ],
    "attention.masked_weights": ["mask applied after softmax", "mask inverted", "NaN where"],
    "attention.causal_columns": ["causal mask off by one", "the code's causal mask"],
    "multi_head.split_heads": ["view without transpose"],
    "multi_head.merge_heads": ["without transposing back", "wrong order"],
    "multi_head.causal_self_attention": [
        "missing scale",
        "scale by the root of D instead of Dh",
        "softmax over the wrong axis",
        "causal mask off by one",
        "mask inverted",
        "mask applied after softmax",
        "view without transpose",
        "output projection forgotten",
    ],
    "multi_head.cross_attention": ["context used for queries"],
    "multi_head.evaluate": ["dropout on at evaluation", "left in evaluation mode"],
    "multi_head.count_parameters": ["biases forgotten"],
    "skip_norm.gelu": ["erf without the root", "tanh approximation"],
    "skip_norm.layer_norm": ["across the tokens", "unbiased variance", "epsilon outside the root"],
    "skip_norm.layer_norm_backward": ["mean treated as a constant", "variance treated as a constant"],
    "skip_norm.rms_norm": ["mean subtracted", "norm instead of root mean square"],
    "skip_norm.placements": ["normalised input added back", "post-norm without its skip"],
    "positions.sinusoidal_columns": ["a position a row", "sines first", "fall half as fast"],
    "positions.shift_matrix": ["in the wrong direction", "one angle for all pairs"],
    "positions.bucket": ["left open", "keys that stand later"],
    "positions.rotary": ["turned the other way", "pairs made of halves", "one rate for all pairs"],
    "positions.alibi_columns": ["sign missing", "queries down", "one slope for all heads"],
    "transformer.block": ["normalised input added back", "second skip from the block's input", "exchanged"],
    "transformer.warmup_cosine": ["cosine begun at step 0", "first step wasted"],
    "transformer.clip": ["each tensor by its own norm", "entries clamped", "lengthened"],
    "transformer.adamw_step": ["decay added to the gradient", "bias correction missing", "root forgotten"],
    "transformer.count_block": ["biases forgotten", "norms forgotten"],
    "bert.pack_pair": ["first [SEP] in the second segment", "last [SEP] missing", "cut at its end"],
    "bert.input_embedding": ["norm before the sum", "segments forgotten", "across the tokens"],
    "bert.mask_tokens": ["special tokens hidden", "kept tokens not asked", "targets everywhere"],
    "bert.masked_loss": ["divided by all places", "rows' means", "softmax over the places"],
    "bert.pooler": ["mean over the tokens", "last token", "tanh missing"],
    "bert.align_labels": ["label on all pieces", "shifted by [CLS]", "padding labelled O"],
    "bert.entity_f1": ["share of right words", "overlap", "type ignored", "I without B"],
    "bert.mean_pooling": ["padding averaged in", "not normalised"],
    "bert.count_parameters": ["segments forgotten", "pooler forgotten", "embeddings' norm", "head counted"],
    "gpt.inputs_and_targets": ["targets not moved", "moved the wrong way", "rolled around"],
    "gpt.perplexity": ["two to the nats", "mean of the perplexities"],
    "gpt.top_p": ["border dropped", "not rescaled", "sorted order"],
    "gpt.temperature_of_entropy": ["logits multiplied", "bits for nats"],
    "gpt.cached_step": ["does not see itself", "cache not extended"],
    "modern_decoder.qk_norm": ["over all heads together", "length one"],
    "modern_decoder.swiglu": ["sigmoid for SiLU", "SiLU on the other map"],
    "modern_decoder.share_heads": ["repeat instead of repeat_interleave"],
    "modern_decoder.latent_step": [
        "root of Dh",
        "root of the latent's width",
        "rotary part left out",
        "keys made",
        "values made",
    ],
    "modern_decoder.gates": ["not rescaled", "one expert's gate is one", "zero for minus infinity"],
    "modern_decoder.balance": ["factor E forgotten", "divided by the tokens"],
    "modern_decoder.steepest": ["divided by the largest singular value", "V for its transpose"],
    "modern_decoder.orthogonalise": ["powers of entries", "not normalised", "zero divided by zero"],
    "modern_decoder.to_halves": ["the way back", "the whole width at once"],
    "translation.shift": ["not shifted", "the wrong way", "end token not asked", "padding counted"],
    "translation.masks": ["target's padding", "cross-attention causal", "inverted", "transposed"],
    "translation.smoothed_loss": [
        "wrong tokens only",
        "padding counted",
        "sentences' means",
        "bits for nats",
    ],
    "translation.beam_step": ["best token of each", "beginning forgotten", "probabilities added", "across"],
    "translation.length_score": ["multiplied", "alpha on log p", "without the end token"],
    "translation.bleu": ["not clipped", "sentences' scores", "no brevity penalty", "exchanged", "arithmetic"],
    "translation.cross_attention_columns": ["over queries", "missing scale", "keys from", "after softmax"],
    "vit.patch_embedding": ["single reshape", "stride one", "channels last", "turned around"],
    "vit.class_attention": ["does not read itself", "every token asks", "missing scale"],
    "vit.resize_positions": ["class token dropped", "along the sequence", "tokens were rows", "corners"],
    "vit.shift": ["wrapped around", "other direction", "one shift for the whole batch"],
    "vit.rollout": ["last block first", "skip forgotten", "each head by itself", "transposed"],
    "vit.count_parameters": ["class token", "final norm", "one channel", "head's bias"],
    "image_gpt.grey_tokens": ["one level too high", "column by column", "lower end"],
    "image_gpt.visible": ["the pixel itself", "above and to the left only", "column by column"],
    "image_gpt.bits_per_pixel": ["nats for bits", "per image", "logarithm of the mean", "over the pixels"],
    "image_gpt.completion_loss": ["reads itself", "start token 0", "too late", "all pixels counted"],
    "image_gpt.previous_pixel": ["exchanged", "add-one forgotten", "across images", "first pixels"],
    "image_gpt.exact_velocity": ["not shrunk", "t for t squared", "nearest image", "noise for the velocity"],
    "image_gpt.heun_images": ["Euler's steps", "like the others", "not halved", "old time"],
    "image_gpt.linear_probe": ["no bias", "transposed", "labels as numbers", "times the number"],
    "image_gpt.axes": ["too few", "frame's beginning", "samples for seconds", "up to the rate"],
    "image_gpt.mel_filterbank": ["apart in hertz", "different bases", "in columns", "too few"],
    "long_sequences.window_mask": ["one token too many", "looking ahead"],
    "long_sequences.online_step": ["not rescaled", "wrong way", "maximum of the tile alone"],
    "long_sequences.merge": ["plain average", "overflow"],
    "long_sequences.tile_backward": ["softmax of the tile", "mean forgotten"],
    "long_sequences.linear_step": ["read before written", "not divided"],
    "long_sequences.delta_writes": ["before the chunk alone", "rate forgotten", "own key"],
    "long_sequences.gated_chunk": ["do not fade inside", "fades after writing", "system without gates"],
    "long_sequences.low_rank_columns": ["E for the values too", "softmax over queries"],
    "long_sequences.crossing": ["scores alone", "projections counted"],
    "inside.prefix_score": ["the token itself", "keys and queries exchanged"],
    "inside.copying_score": ["singular values", "absolute value of the real part"],
    "inside.settled_after": ["the first time", "one too late"],
    "inside.patching_effect": ["ratio of means", "not measured from the base"],
    "inside.topk_columns": ["chosen over tokens", "no ReLU", "centre not taken away"],
    "inside.wave_logits": ["c added", "sine", "mean"],
    "scale.bytes_per_gpu": ["no float32 copy", "parameters first", "everything divided"],
    "scale.ring_states": ["never added", "an unfinished sum passed on", "added again"],
    "scale.best_size": ["parabola in P", "the best run", "left in the logarithm"],
    "scale.averaged_gradient": [
        "mean of means",
        "with NaN",
        "counted within a process only",
        "zero times NaN",
    ],
    "scale.window_numbers": ["the whole batch", "one order for all epochs", "the rest of an epoch dropped"],
    "scale.signal_and_noise": [
        "mean over entries",
        "not divided",
        "without the batch sizes",
        "signal with its noise",
        "sizes exchanged",
    ],
}


def printed_solutions(chapter):
    """From an exercise's name to the function that the chapter hands to `check`, built from its cells."""
    book = json.loads(chapter.read_text(encoding="utf-8"))  # nbformat would check each of its outputs, too
    cells = ["".join(c["source"]) for c in book["cells"] if "solution" in c["metadata"].get("tags", [])]
    functions, found = {"math": math, "torch": torch}, {}
    for tree in map(ast.parse, cells):
        definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        exec(compile(ast.Module(definitions, []), str(chapter), "exec"), functions)
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "check":
                name, candidate = call.args
                if isinstance(candidate, ast.Name) and candidate.id in functions:
                    found[name.value] = functions[candidate.id]
    return found


SOLUTIONS = {name: f for chapter in notebooks() for name, f in printed_solutions(chapter).items()}


def test_every_exercise_is_solved_in_the_book():
    assert set(SOLUTIONS) == set(EXERCISES)


@pytest.mark.parametrize("name", EXERCISES)
def test_reference_and_printed_solution_pass(name):
    for solution in (EXERCISES[name].reference, SOLUTIONS[name]):
        verdict = check(name, solution)
        assert verdict.passed, verdict.message


@pytest.mark.parametrize("name", EXERCISES)
def test_each_mistake_is_told_apart_from_all_others(name):
    for mistake in EXERCISES[name].mistakes:
        verdict = check(name, mistake.variant)
        assert (verdict.passed, verdict.mistake) == (False, mistake.name), verdict.message
        assert mistake.hint in verdict.message
        assert "NameError" not in repr(verdict.answer)  # a slip in how the mistake is written down
        others = [m.hint for m in EXERCISES[name].mistakes if m is not mistake]
        assert not any(hint in verdict.message for hint in others if hint not in mistake.hint)


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_are_distinct_sentences(name):
    hints = [m.hint for m in EXERCISES[name].mistakes]
    assert len(hints) == len(set(hints)) >= 2
    assert all(len(hint) > 40 and hint.endswith((".", "?")) for hint in hints)


@pytest.mark.parametrize(("name", "slips"), REQUIRED.items())
def test_typical_slips_are_known(name, slips):
    known = [m.name for m in EXERCISES[name].mistakes]
    for slip in slips:
        assert any(slip in mistake for mistake in known), slip


def test_slips_are_known_by_what_they_compute_not_by_how_they_are_written():
    def by_einsum(x, w_q, w_k, w_v, w_o, n_heads):
        b, n, d = x.shape
        q, k, v = (torch.einsum("bnd,ed->bne", x, w).reshape(b, n, n_heads, -1) for w in (w_q, w_k, w_v))
        scores = torch.einsum("bnhe,bshe->bhns", q, k) / d**0.5  # the root of D, not of Dh
        scores = scores + torch.full((n, n), -math.inf).triu(1)
        y = torch.einsum("bhns,bshe->bnhe", scores.softmax(-1), v)
        return y.reshape(b, n, d) @ w_o.T

    verdict = check("multi_head.causal_self_attention", by_einsum)
    assert verdict.mistake == "scale by the root of D instead of Dh"


def test_an_unknown_mistake_is_described():
    verdict = check("multi_head.merge_heads", lambda x: x.transpose(1, 2).flatten(2) + 1)
    assert not verdict.passed
    assert verdict.mistake is None
    assert "was expected" in verdict.message


def test_bleu_is_that_of_sacrebleu():
    metric = pytest.importorskip("sacrebleu.metrics").BLEU
    theirs = metric(tokenize="none", smooth_method="none", force=True)
    rng = random.Random(0)
    scores = []
    for _ in range(100):
        references = [rng.choices("abcde", k=rng.randint(1, 12)) for _ in range(rng.randint(1, 6))]
        translations = [[w for w in words if rng.random() < 0.9] or ["a"] for words in references]
        translations[0] += rng.choices("abcde", k=rng.randint(0, 4))
        scores.append(EXERCISES["translation.bleu"].reference(translations, references))
        texts = [[" ".join(words) for words in side] for side in (translations, references)]
        assert scores[-1] == pytest.approx(theirs.corpus_score(texts[0], [texts[1]]).score, abs=1e-9)
    assert 0 < sum(score > 0 for score in scores) < len(scores)


@pytest.mark.parametrize("training", [True, False])
def test_evaluate_is_held_to_the_mode_it_found(training):
    def always(model, x):
        model.eval()
        y = model(x)
        model.train(training)
        return y, model.training

    verdict = check("multi_head.evaluate", always)
    assert verdict.mistake == f"left in {'training' if training else 'evaluation'} mode"
