"""The mutants that compute what the reference computes on every input, each with the reason why."""

ONE_AXIS = "there is one axis, so that it is the first and the last"
OF_LENGTH_ONE = "the axis is of length one, so that its first entry is its last"
TWO_AXES = "with two axes the last is the second"
SQUARE = "the matrix is square"
SYMMETRIC = "the two may be exchanged: the result is symmetric in them"
DEFAULT = "it is what the function does unless told otherwise"
MEETS = "on the border both rules say the same"

EQUIVALENT: dict[str, dict[str, str]] = {
    "sequences.interpolated_bigram": {"1 -> 2": "counts that are twice as large give the same shares"},
    "positions.bucket": {
        "distance < exact -> distance <= exact": MEETS,
        "n_buckets - exact -> exact": "half of the buckets are exact, so that the other half are as many",
    },
    "transformer.clip": {"norm > limit -> norm >= limit": MEETS},
    "bert.mask_tokens": {"v < 0.8 -> v <= 0.8": "at 0.8 the line below puts a word there anyway"},
    "bert.entity_f1": {
        "2 -> 1 #2": "the type is compared with its hyphen on both sides",
        "(entities(true), entities(predicted)) -> (entities(predicted), entities(true))": SYMMETRIC,
    },
    "bert.mean_pooling": {
        "(H * real[:, :, None]).sum(dim=1) -> (H * real[:, :, None]).mean(dim=1)": (
            "a sum and a mean have the same direction"
        ),
    },
    "gpt.top_p": {"float(p[token]) -> p[token]": "a tensor without axes counts as its number"},
    "gpt.temperature_of_entropy": {
        "1 -> 0": ONE_AXIS,
        "entropy < nats -> entropy <= nats": "where they are equal, the temperature is found",
    },
    "gpt.cached_step": {"0 -> -1": ONE_AXIS},
    "modern_decoder.latent_step": {"0 -> -1": OF_LENGTH_ONE, "0 -> -1 #2": OF_LENGTH_ONE},
    "modern_decoder.gates": {"z.softmax(dim=1).topk(k, dim=1) -> z.softmax(dim=1).topk(k)": DEFAULT},
    "modern_decoder.balance": {"p.topk(k, dim=1) -> p.topk(k)": DEFAULT},
    "modern_decoder.orthogonalise": {
        "1e-07 -> 2e-07": "it only keeps zero from being divided by zero",
        "1e-07 -> 5e-08": "it only keeps zero from being divided by zero",
        "2.0315 * gram @ gram -> gram @ (2.0315 * gram)": SYMMETRIC,
    },
    "translation.smoothed_loss": {"0 -> -1": OF_LENGTH_ONE},
    "vit.patch_embedding": {"0 -> -1": OF_LENGTH_ONE},
    "vit.class_attention": {
        "(W_q @ c, W_k @ tokens, W_v @ tokens) -> (W_k @ tokens, W_q @ c, W_v @ tokens)": SYMMETRIC,
        "0 -> -1": ONE_AXIS,
    },
    "vit.resize_positions": {
        "F.interpolate(grid, size=new, mode='bicubic', align_corners=False) -> "
        "F.interpolate(grid, size=new, mode='bicubic')": DEFAULT,
        "0 -> -1": OF_LENGTH_ONE,
    },
    "vit.rollout": {"1 -> 2": SQUARE},
    "image_gpt.exact_velocity": {"0 -> -1 #2": ONE_AXIS},
    "image_gpt.mel_filterbank": {
        "((f - left) / (middle - left), (right - f) / (right - middle)) -> "
        "((right - f) / (right - middle), (f - left) / (middle - left))": SYMMETRIC,
    },
    "long_sequences.linear_step": {"u @ reads -> reads @ u": SYMMETRIC},
    "long_sequences.gated_chunk": {
        "0 -> -1": ONE_AXIS,
        "(beta * D * (K.T @ K)).triu(1) -> beta * D * (K.T @ K)": "the solver reads above the diagonal alone",
        "1 -> 0": "the solver takes the diagonal to be one, whatever stands there",
    },
    "long_sequences.crossing": {"d_model is not looked at": "the width cancels"},
    "inside.prefix_score": {"0 -> -1": "all heads have as many queries", "-1 -> 1": TWO_AXES},
    "inside.copying_score": {
        "(eigenvalues.real.sum() / eigenvalues.abs().sum()).float() -> "
        "eigenvalues.real.sum() / eigenvalues.abs().sum()": "the precision of an answer is free",
    },
    "inside.settled_after": {"-1 -> 1 #3": TWO_AXES},
    "scale.bytes_per_gpu": {
        "(stage >= 3, stage >= 2, stage >= 1) -> (stage >= 2, stage >= 3, stage >= 1)": (
            "parameters and gradients are equally large"
        ),
        "float(sum((count * s / (gpus if d else 1) for s, d in zip((2, 2, 12), divided, strict=True)))) -> "
        "sum((count * s / (gpus if d else 1) for s, d in zip((2, 2, 12), divided, strict=True)))": (
            "a whole number may stand for a real one"
        ),
    },
    "scale.ring_states": {
        "(i - 1 - t) % n -> i - 1 - t": "an index below zero counts from the end",
        "(i - t) % n -> i - t": "an index below zero counts from the end",
    },
    "scale.best_size": {
        "x.mean() -> x.sum()": "where the parabola's origin lies does not matter",
        "0 -> -1 #2": OF_LENGTH_ONE,
    },
    "scale.averaged_gradient": {"(0, 1) -> (1, 0)": SYMMETRIC},
}
