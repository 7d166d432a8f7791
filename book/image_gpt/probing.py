"""What a linear classifier can read from a model's features."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tformer_lib.core.precision import precise

PENALTIES = (0.01, 0.1, 1.0, 10.0)  # scikit-learn's C: the larger, the weaker the penalty


def choose_penalty(features: Float[Tensor, "B F"], labels: Int[Tensor, " B"]) -> float:
    """The C of `PENALTIES` whose logistic regression is right most often on every fifth row, held back.

    It is fitted to the other four fifths; of equals the smallest C, which is the strongest penalty, wins.
    """
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    features = precise(features)
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
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    features, new = precise(features), precise(new)
    mean, spread = features.mean(dim=0), features.std(dim=0).clamp(min=1e-6)
    known, asked = ((x - mean) / spread for x in (features, new))
    with threadpool_limits(1):  # matrices this small: threads would only wait for each other
        model = LogisticRegression(C=choose_penalty(known, labels), max_iter=1000)
        model.fit(known.numpy(), labels.numpy())
    return float(model.score(asked.numpy(), new_labels.numpy()))
