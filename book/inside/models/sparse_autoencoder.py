"""A sparse autoencoder whose code keeps the k largest features (Gao et al. 2024), and how it is trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class TopKAutoencoder(nn.Module):
    """z = TopK(ReLU(W_e (x - c) / s + b)), x' = c + s W_d z: each x as a sum of at most k of F directions.

    Args:
        d: the width of x.
        features: the number F of directions, each of length one.
        k: how many of them an x may use.
        centre: c, the mean of the activations that it will see; 0 if None.
        scale: s, their root mean square about c.

    Raises:
        ValueError: if k is not between 1 and F.
    """

    centre: Tensor

    def __init__(self, d: int, features: int, k: int, centre: Tensor | None = None, scale: float = 1.0):
        super().__init__()
        if not 1 <= k <= features:
            raise ValueError(f"a code of {features} features keeps 1 to {features} of them, got k = {k}")
        self.k, self.scale = k, scale
        self.register_buffer("centre", torch.zeros(d) if centre is None else centre)
        directions = nn.functional.normalize(torch.randn(features, d), dim=-1)
        self.encoder = nn.Linear(d, features)
        self.encoder.weight.data, self.encoder.bias.data = directions.clone(), torch.zeros(features)
        self.directions = nn.Parameter(directions)  # (F, d): the columns of W_d

    def encode(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch F"]:
        """z, whose entries are not negative, and at most k of which are not 0."""
        z = self.encoder((x - self.centre) / self.scale).relu()
        largest = z.topk(self.k, dim=-1)
        return torch.zeros_like(z).scatter(-1, largest.indices, largest.values)

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """x', the reconstruction."""
        return self.centre + self.scale * (self.encode(x) @ self.directions)


def fit_autoencoder(
    x: Float[Tensor, "T d"],
    features: int,
    k: int,
    *,
    steps: int,
    seed: int,
    batch: int = 512,
    lr: float = 2e-3,
) -> TopKAutoencoder:
    """An autoencoder trained by Adam on the squared error; the directions keep the length one.

    Args:
        x: activations, a token a row.
        features: F.
        k: how many an x may use.
        steps: batches.
        seed: of the first directions and of the order.
        batch: activations in a batch, drawn with replacement.
        lr: the rate, which falls to zero along a line.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        centre = x.mean(dim=0)
        scale = (x - centre).square().mean().sqrt().item()
        model = TopKAutoencoder(x.shape[1], features, k, centre, scale)
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
        for _ in range(steps):
            rows = x[torch.randint(len(x), (batch,))]
            loss = ((model(rows) - rows) / scale).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            with torch.no_grad():
                model.directions.copy_(nn.functional.normalize(model.directions, dim=-1))
    return model.eval()


def matched_cosines(first: Float[Tensor, "F d"], second: Float[Tensor, "G d"]) -> Float[Tensor, " K"]:
    """The cosines of the pairs that match two sets of directions one to one, their sum as large as possible.

    Returns:
        K = min(F, G) of them.
    """
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]

    unit = nn.functional.normalize
    cosines = unit(first, dim=-1) @ unit(second, dim=-1).T
    rows, columns = linear_sum_assignment(-cosines.numpy())
    return cosines[rows, columns]
