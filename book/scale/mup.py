"""The maximal update parametrisation: initial weights and learning rates that depend on the width.

A step of Adam moves every entry of a matrix by about the learning rate, whatever the matrix's size. Against
an input of D entries these moves have one sign pattern, so that they add up: the output moves by about D
times the learning rate, while its initial size does not depend on D. The rules below take this D away.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn

from tformer_lib.core.attention import Attend
from tformer_lib.core.modes import as_written, plain
from tformer_lib.core.precision import precise
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.numbers import check_fields, real, whole
from tformer_lib.training.optimizers import warmup_cosine

Parametrisation = Literal["standard", "mup"]


class WidthAttend(Attend):
    """softmax(q k^T sqrt(Dh_base) / Dh) v: scores divided by Dh, and equal to `Attend`'s at the base width.

    During training queries and keys become aligned, and q k^T then grows like Dh and not like its root
    (Yang et al. 2022).

    Args:
        base_head: Dh_base, the width of a head in the model that the rates were chosen on.
        dropout: on the weights.
    """

    def __init__(self, base_head: int, dropout: float = 0.0):
        super().__init__(dropout)
        self.base_head = whole("base_head", base_head, 1)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """As `Attend`, with queries that are sqrt(Dh_base / Dh) times as long."""
        return super().attend(q * math.sqrt(self.base_head / q.shape[-1]), k, v, mask)


@dataclass(frozen=True)
class WidthRules:
    """What depends on the width, with m = D / D_base; at m = 1 both parametrisations are the same.

    | | standard | mup |
    |---|---|---|
    | hidden matrices: initial standard deviation | gain / sqrt(fan_in) | gain / sqrt(fan_in) |
    | hidden matrices: Adam's learning rate | lr | lr / m |
    | readout: initial standard deviation | gain / sqrt(D) | gain / sqrt(D) / sqrt(m) |
    | readout: Adam's learning rate | lr | lr / m |
    | embeddings, positions, biases, norms | the same at every width | the same at every width |
    | scores | q k^T / sqrt(Dh) | q k^T sqrt(Dh_base) / Dh |

    The rules are those of Yang et al. (2022) for Adam. The readout stands here without a multiplier: under
    Adam, a multiplier 1/m and a readout that begins m times as large and has m times the rate give the same
    function at every step.

    Args:
        base_width: D_base, the width of the model on which a learning rate is chosen.
        parametrisation: "mup" or "standard".

    Raises:
        ValueError: if the width is below 1, or the parametrisation is unknown.
    """

    base_width: int
    parametrisation: Parametrisation = "mup"

    def __post_init__(self) -> None:
        check_fields(self)

    def gpt(
        self,
        config: TransformerConfig,
        vocab_size: int,
        *,
        positions: nn.Module | None = None,
        rotary: nn.Module | None = None,
        embedding_std: float = 1.0,
        gain: float = 1.0,
    ) -> GPT:
        """A GPT with a readout of its own, initialised by these rules.

        The readout is not tied to the embedding: one matrix cannot have two learning rates.

        Args:
            config: of any width; the number of heads stays that of the base model, so that heads widen.
            vocab_size: the number of tokens.
            positions: added to the embeddings, initialised as they come.
            rotary: turns queries and keys.
            embedding_std: the standard deviation of the embeddings.
            gain: of hidden matrices and readout, times 1 / sqrt(fan_in).

        Raises:
            ValueError: if the heads do not divide the base width, or a number is not positive.
        """
        if self.base_width % config.n_heads:
            raise ValueError(
                f"n_heads={config.n_heads} must divide the base width too, got base_width={self.base_width}"
            )
        embedding_std, gain = real("embedding_std", embedding_std, "(0, inf)"), real("gain", gain, "(0, inf)")
        base_head = self.base_width // config.n_heads

        def backend() -> Attend:
            if self.parametrisation == "mup":
                return WidthAttend(base_head, config.dropout)
            return Attend(config.dropout)

        model = GPT(config, vocab_size, positions=positions, rotary=rotary, make_backend=backend, tied=False)
        nn.init.normal_(model.embed.weight, std=embedding_std)
        for linear in hidden_matrices(model):
            nn.init.normal_(linear, std=gain / math.sqrt(linear.shape[1]))
        assert model.head is not None
        shrink = math.sqrt(self.multiple(config.d_model)) if self.parametrisation == "mup" else 1.0
        nn.init.normal_(model.head.weight, std=gain / math.sqrt(config.d_model) / shrink)
        return model

    def multiple(self, width: int) -> float:
        """m = D / D_base."""
        return width / self.base_width

    def groups(self, model: GPT, lr: float) -> list[dict[str, Any]]:
        """Adam's parameter groups: matrices with `lr / m` (standard: `lr`), and the rest with `lr`.

        For `torch.optim.Adam(rules.groups(model, lr))`. A scheduler such as
        `torch.optim.lr_scheduler.LambdaLR` multiplies each group's own rate.

        Raises:
            ValueError: if the rate is not positive, or the head is tied.
        """
        lr = real("lr", lr, "(0, inf)")
        if model.head is None:
            raise ValueError("the head is tied to the embedding, and one matrix cannot have two rates")
        matrices = [*hidden_matrices(model), model.head.weight]
        taken = {id(p) for p in matrices}
        rest = [p for p in model.parameters() if id(p) not in taken]
        divisor = self.multiple(model.config.d_model) if self.parametrisation == "mup" else 1.0
        return [{"params": matrices, "lr": lr / divisor}, {"params": rest, "lr": lr}]


def hidden_matrices(model: GPT) -> list[Tensor]:
    """The matrices both of whose sides grow with the width: W_q, W_k, W_v, W_o, W_in, W_gate, W_out."""
    return [layer.weight for layer in model.transformer.modules() if isinstance(layer, nn.Linear)]


def train_by_rules(
    model: GPT,
    loss_fn: Callable[[Any, Any], Tensor],
    batches: Iterable[Int[Tensor, "B M"]],
    *,
    rules: WidthRules,
    lr: float,
    steps: int,
    warmup: int = 10,
    betas: tuple[float, float] = (0.9, 0.98),
) -> list[float]:
    """The losses of `steps` steps of Adam with the rules' learning rates, warm-up and a cosine.

    Neither weight decay nor clipping: both would change with the width in a way of their own. A run whose
    loss is no longer finite stops there.
    """
    optimizer = torch.optim.Adam(rules.groups(model, lr), betas=betas)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, steps, warmup))
    losses: list[float] = []
    for batch, _ in zip(batches, range(steps), strict=False):
        loss = loss_fn(model, batch)
        losses.append(loss.item())
        if not loss.isfinite():
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return losses


def coordinate_check(
    model: GPT,
    loss_fn: Callable[[Any, Any], Tensor],
    batches: Iterable[Int[Tensor, "B M"]],
    probe: Int[Tensor, "B N"],
    *,
    rules: WidthRules,
    lr: float,
) -> dict[str, list[float]]:
    """By activation, after each step of Adam: root mean square of its change since the start, on `probe`.

    If the rules are right, no change depends on the width (Yang et al. 2022). Looked at are
    what the blocks' attention and MLP add to the stream ("block 0 attention", "block 0 mlp", ...), the
    stream at the end ("stream") and the "logits".

    Args:
        model: built by `rules.gpt`; trained in place, with a constant rate.
        loss_fn: called as `loss_fn(model, batch)`.
        batches: one for each step.
        probe: the tokens on which the activations are looked at.
        rules: that give the learning rates.
        lr: of the base model.
    """
    optimizer = torch.optim.Adam(rules.groups(model, lr))
    before = activations(model, probe)
    changes: dict[str, list[float]] = {}
    for batch in batches:
        loss = loss_fn(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, now in activations(model, probe).items():
            change = (precise(now) - precise(before[name])).square().mean().sqrt().item()
            changes.setdefault(name, []).append(change)
    return changes


def activations(model: GPT, tokens: Int[Tensor, "B N"]) -> dict[str, Tensor]:
    """What `coordinate_check` looks at, by name."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
            found[name] = output.detach()

        return hook

    blocks = [plain(block) for block in plain(model).transformer.blocks]
    hooks = [blocks[-1].register_forward_hook(keep("stream"))]
    for i, block in enumerate(blocks):
        hooks.append(block.self_attention.register_forward_hook(keep(f"block {i} attention")))
        hooks.append(block.mlp.register_forward_hook(keep(f"block {i} mlp")))
    try:
        with torch.no_grad(), as_written():
            found["logits"] = model(tokens)
    finally:
        for each in hooks:
            each.remove()
    return found
