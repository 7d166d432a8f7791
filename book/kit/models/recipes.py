"""Recipes for a small language model: nanoGPT's published one, a modern one, and the ladder between them.

A recipe is a model, its first weights, and the arguments of `tformer_lib.training.fit`. All are about
0.8 million parameters large: 4 blocks, 4 heads, width 128, no biases, no dropout, trained on windows of 64
tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tformer_lib.core.attention import FusedAttend
from tformer_lib.core.positions import LearnedPositions, Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.models.initialisation import gpt2_initialisation, quiet_initialisation

CONTEXT, BATCH = 64, 12


@dataclass(frozen=True)
class Recipe:
    """A model, its first weights, and how it is trained."""

    name: str
    config: TransformerConfig
    rotary_base: float | None = None  # of the rotary positions; learned positions if None
    initialise: Callable[[GPT], None] | None = None  # the model's own first weights if None
    fit: Mapping[str, Any] = field(default_factory=dict)  # arguments of `training.fit`

    def build(self, vocab_size: int, context: int = CONTEXT) -> GPT:
        """The model with its first weights, drawn from the global generator.

        `context` is the longest it reads, with learned positions; rotary ones set no limit.
        """
        config = self.config
        positions, rotary = None, None
        if self.rotary_base is None:
            positions = LearnedPositions(context, config.d_model)
        else:
            rotary = Rotary(config.d_model // config.n_heads, self.rotary_base)
        model = GPT(config, vocab_size, positions=positions, rotary=rotary, make_backend=FusedAttend)
        if self.initialise is not None:
            self.initialise(model)
        return model

    def options(self, steps: int) -> dict[str, Any]:
        """Arguments of `training.fit` for a run of `steps`, of which the warm-up is a tenth at most."""
        return {**self.fit, "steps": steps, "warmup": min(self.fit["warmup"], steps // 10)}


NANOGPT: dict[str, Any] = {
    "steps": 2000,
    "lr": 1e-3,
    "min_lr_ratio": 0.1,
    "warmup": 100,
    "betas": (0.9, 0.99),
    "weight_decay": 0.1,
}
MUON = {"optimizer": "muon", "lr": 1.5e-2}
SHORT = {"steps": 250, "warmup": 20, "momentum": 0.8}


def _ladder() -> tuple[Recipe, ...]:
    """nanoGPT's recipe, and one change after another; each rung keeps the changes below it."""
    rung = Recipe(
        "baseline",
        TransformerConfig(d_model=128, n_heads=4, n_blocks=4, bias=False),
        initialise=gpt2_initialisation,
        fit=NANOGPT,
    )
    rungs = [rung]

    def then(name: str, config: dict[str, Any] | None = None, **changes: Any) -> None:
        last = rungs[-1]
        rungs.append(replace(last, name=name, config=replace(last.config, **(config or {})), **changes))

    then("rotary", rotary_base=10000.0)
    then("RMSNorm", {"norm": "rms"})
    then("QK-norm", {"qk_norm": True})
    then("SwiGLU", {"activation": "swiglu", "d_hidden": 341})  # three matrices, together as large as two
    then("quiet", initialise=quiet_initialisation)
    then("Muon", fit={**NANOGPT, **MUON})
    then("rotary base 100", rotary_base=100.0)
    then("modern", fit={**NANOGPT, **MUON, **SHORT})
    return tuple(rungs)


LADDER = _ladder()
BASELINE, MODERN = LADDER[0], LADDER[-1]


def _side() -> tuple[Recipe, ...]:
    """What the ladder leaves out: another choice at one rung, all else as on that rung."""
    at = {recipe.name: recipe for recipe in LADDER}
    squared = replace(at["QK-norm"].config, activation="squared_relu")
    return (
        replace(at["SwiGLU"], name="squared ReLU", config=squared),
        replace(at["quiet"], name="AdamW, lr 0.004", fit={**NANOGPT, "lr": 4e-3}),
        *(
            replace(MODERN, name=f"modern, n_kv_heads={n}", config=replace(MODERN.config, n_kv_heads=n))
            for n in (2, 1)
        ),
    )


SIDE = _side()
