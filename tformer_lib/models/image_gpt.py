"""ImageGPT is `GPT` on pixels (Chen et al. 2020): what is measured of it."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from tformer_lib.models.gpt import GPT
from tformer_lib.models.language import language_loss
from tformer_lib.models.modes import evaluation
from tformer_lib.numbers import whole


@torch.no_grad()
def bits_per_pixel(model: GPT, rows: Int[Tensor, "B M"], batch: int = 100) -> float:
    """Mean of -log2 p(x_n | x_0..x_{n-1}) over all pixels; a row is the start token x_0 and an image."""
    if not len(rows):
        raise ValueError("there is no image whose pixels could be predicted")
    with evaluation(model):
        nats = sum(
            language_loss(model, part).item() * len(part) for part in rows.split(whole("batch", batch, 1))
        )
    return nats / len(rows) / math.log(2)


@torch.no_grad()
def layer_means(model: GPT, rows: Int[Tensor, "B M"], batch: int = 200) -> list[Float[Tensor, "B D"]]:
    """The mean over all places of what enters the first block, then of what leaves each block.

    M + 1 tensors for M blocks: an image's vector at each depth of the residual stream, before any final norm
    (Chen et al. 2020, section 2.4, average what follows the layer's norm). The last pixel is not read, as in
    training.
    """
    states: list[list[Tensor]] = [[] for _ in range(len(model.transformer.blocks) + 1)]
    hooks: list[RemovableHandle] = [
        model.transformer.blocks[0].register_forward_pre_hook(
            lambda _block, inputs: states[0].append(inputs[0].mean(dim=1))
        )
    ]
    for depth, block in enumerate(model.transformer.blocks, start=1):
        hooks.append(
            block.register_forward_hook(
                lambda _block, _inputs, output, depth=depth: states[depth].append(output.mean(dim=1))
            )
        )
    try:
        with evaluation(model):
            for part in rows.split(whole("batch", batch, 1)):
                model(part[:, :-1])
    finally:
        for hook in hooks:
            hook.remove()
    return [torch.cat(parts) for parts in states]


PENALTIES = (0.01, 0.1, 1.0, 10.0)  # scikit-learn's C: the larger, the weaker the penalty


def choose_penalty(features: Float[Tensor, "B F"], labels: Int[Tensor, " B"]) -> float:
    """The C of `PENALTIES` whose logistic regression is right most often on every fifth row, held back.

    It is fitted to the other four fifths; of equals the smallest C, which is the strongest penalty, wins.
    """
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    held = torch.arange(len(features)) % 5 == 0
    x, y = features[~held].numpy(), labels[~held].numpy()
    asked, answers = features[held].numpy(), labels[held].numpy()
    model = LogisticRegression(max_iter=1000, warm_start=True)
    scores = [model.set_params(C=c).fit(x, y).score(asked, answers) for c in PENALTIES]
    return PENALTIES[scores.index(max(scores))]


def linear_probe(
    features: Float[Tensor, "B F"],
    labels: Int[Tensor, " B"],
    new: Float[Tensor, "K F"],
    new_labels: Int[Tensor, " K"],
) -> float:
    """The accuracy on new vectors of a logistic regression that was fitted to these.

    Features are brought to mean 0 and variance 1 first. The penalty is the best of four on a fifth of the
    known, held back (`choose_penalty`); then all of the known are fitted with it.
    """
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    mean, spread = features.mean(dim=0), features.std(dim=0).clamp(min=1e-6)
    known, asked = ((x - mean) / spread for x in (features, new))
    with threadpool_limits(1):  # matrices this small: threads would only wait for each other
        model = LogisticRegression(C=choose_penalty(known, labels), max_iter=1000)
        model.fit(known.numpy(), labels.numpy())
    return float(model.score(asked.numpy(), new_labels.numpy()))
