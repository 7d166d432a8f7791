"""Mixture of experts: many MLPs of which each token uses a few (Shazeer et al. 2017)."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.precision import precise
from tformer_lib.core.transformer import MLP, Activation
from tformer_lib.inputs import check_real
from tformer_lib.numbers import flag, whole


class Router(nn.Module):
    """p(x) = softmax(W x) over the experts; a token goes to the k of them with the largest p.

    The gates are those k probabilities, divided by their sum if k > 1 (Shazeer et al. 2017, without the
    noise). With k = 1 that would make every gate 1, and nothing would train W: a single gate stays the
    probability itself (Fedus et al. 2022).

    Args:
        d_model: the width D.
        n_experts: the number of experts.
        k: how many of them each token uses.

    Attributes:
        W: the linear map to the experts' scores, without a bias.

    Raises:
        ValueError: if k is not between 1 and the number of experts.
        TypeError: if a size is no whole number.
    """

    def __init__(self, d_model: int, n_experts: int, k: int):
        super().__init__()
        n_experts = whole("n_experts", n_experts, 1)
        self.k = whole("k", k, 1)
        if self.k > n_experts:
            raise ValueError(f"a token cannot use k={self.k} of {n_experts} experts")
        self.W = nn.Linear(whole("d_model", d_model, 1), n_experts, bias=False)
        nn.init.xavier_uniform_(self.W.weight)

    def forward(
        self, x: Float[Tensor, "T D"]
    ) -> tuple[Float[Tensor, "T k"], Int[Tensor, "T k"], Float[Tensor, "T E"]]:
        """The gates and the numbers of each token's experts, best first, and the probabilities of all."""
        p = precise(self.W(x)).softmax(dim=-1)
        gates, chosen = p.topk(self.k, dim=-1)
        if self.k > 1:
            gates = gates / gates.sum(dim=-1, keepdim=True)
        return gates, chosen, p


def balance_loss(p: Float[Tensor, "T E"], chosen: Int[Tensor, "T k"]) -> Float[Tensor, ""]:
    """E sum_i f_i P_i: 1 if the experts share the tokens equally, E / k if one is first for all and sure.

    f_i is the share of the T k assignments that goes to expert i, P_i the mean probability that it is given.
    The f are counts and pass no gradient; descent lowers the P of the experts that are used most. For
    k = 1 it is the auxiliary loss of Fedus et al. (2022), without its factor. In float32 at least.

    Args:
        p: the probabilities of the experts, a row for each of T tokens.
        chosen: the experts that each token uses.

    Raises:
        ValueError: if there is no token, or not one row of each for every token.
    """
    if not len(p) or len(p) != len(chosen):
        raise ValueError(
            f"balance needs tokens, a row of both for each, got {tuple(p.shape)} and {tuple(chosen.shape)}"
        )
    p, f = precise(p), torch.bincount(chosen.flatten(), minlength=p.shape[-1]) / chosen.numel()
    return p.shape[-1] * (f * p.mean(dim=0)).sum()


class MixtureOfExperts(nn.Module):
    """y = sum over the k chosen experts i of g_i(x) MLP_i(x), for each token on its own.

    It takes the place of a block's MLP. No token is dropped: an expert works for as many as chose it.
    Padding is routed like any token. Where there is no token there is no imbalance: both attributes are 0.

    Args:
        d_model: the width D.
        d_hidden: the hidden width F of one expert; 4 D if None.
        n_experts: the number of experts.
        k: how many of them each token uses.
        n_shared: how many further experts every token uses, with gate 1 (shared experts, Dai et al. 2024).
        activation: that of the experts; see `tformer_lib.core.transformer.MLP`.
        bias: whether their linears add biases.

    Attributes:
        router: the `Router`.
        experts: the routed MLPs.
        shared: those that every token uses.
        balance: `balance_loss` of the last call, with its gradient; None before the first.
        load: the share of the last call's assignments that each expert got, (E,); None before the first.

    Raises:
        ValueError: if k is not between 1 and the number of experts; in forward, if tokens are not D wide.
        TypeError: if a size is no whole number.
    """

    def __init__(
        self,
        d_model: int,
        d_hidden: int | None = None,
        *,
        n_experts: int,
        k: int,
        n_shared: int = 0,
        activation: Activation = "gelu",
        bias: bool = True,
    ):
        super().__init__()
        bias, n_shared = flag("bias", bias), whole("n_shared", n_shared, 0)

        def mlps(n: int) -> nn.ModuleList:
            return nn.ModuleList(MLP(d_model, d_hidden, activation=activation, bias=bias) for _ in range(n))

        self.router = Router(d_model, n_experts, k)
        self.experts, self.shared = mlps(n_experts), mlps(n_shared)
        self.balance: Tensor | None = None
        self.load: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a file takes what was learned, not what the last call left: that hangs on its graph."""
        return self.__dict__ | {"balance": None, "load": None}

    def forward(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        check_real("x", x, self.router.W.weight)
        if x.ndim < 1 or x.shape[-1] != self.router.W.in_features:
            raise ValueError(
                f"x must hold tokens of width {self.router.W.in_features}, got shape {tuple(x.shape)}"
            )
        tokens = x.flatten(0, -2) if x.ndim > 1 else x[None]  # (T, D): each goes its own way
        gates, chosen, p = self.router(tokens)
        self.balance = balance_loss(p, chosen) if len(p) else p.sum()
        self.load = torch.bincount(chosen.flatten(), minlength=len(self.experts)) / max(1, chosen.numel())
        y = torch.zeros_like(tokens)
        for mlp in self.shared:
            y = y + mlp(tokens)
        for i, mlp in enumerate(self.experts):
            who, place = (chosen == i).nonzero(as_tuple=True)  # its tokens, and which of their gates is its
            if len(who):
                y = y.index_add(0, who, (gates[who, place, None] * mlp(tokens[who])).to(y.dtype))
        return y.view_as(x)


def mixtures(model: nn.Module) -> list[MixtureOfExperts]:
    """The mixtures in a model, in order."""
    return [module for module in model.modules() if isinstance(module, MixtureOfExperts)]


def total_balance(model: nn.Module) -> Float[Tensor, ""]:
    """The mean `balance` of a model's mixtures in its last call: a part of the loss, times about 0.01.

    Raises:
        ValueError: if the model has no mixture.
        RuntimeError: if it has not been called.
    """
    found = mixtures(model)
    if not found:
        raise ValueError(f"{type(model).__name__} has no mixture of experts to balance")
    losses = [mixture.balance for mixture in found]
    if any(loss is None for loss in losses):
        raise RuntimeError("the balance is known after a call of the model, and there was none")
    return torch.stack([loss for loss in losses if loss is not None]).mean()


def active_parameters(model: nn.Module) -> int:
    """How many parameters take part in one token's output: all but those of experts that it does not use."""
    total = sum(p.numel() for p in model.parameters())
    for mixture in mixtures(model):
        one = sum(p.numel() for p in mixture.experts[0].parameters())
        total -= (len(mixture.experts) - mixture.router.k) * one
    return total
