"""Checkpoints of GPT-2's family, as `transformers` saves them (Radford et al. 2019).

The file's linear layers are (in, out) where ours are (out, in), so that every matrix is transposed; queries,
keys and values stand in one matrix, and are cut apart.
"""

from collections.abc import Callable, Iterable

from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.pretrained.foreign_weights import Source
from tformer_lib.pretrained.settings import ACTIVATIONS, Settings

IGNORED = (
    r"(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)"  # the causal mask and the number that it fills in
)


def build(
    settings: Settings, make_backend: Callable[[], Backend] | None = None, names: Iterable[str] = ()
) -> GPT:
    """The model that the settings describe, without dropout; the names of the tensors change nothing.

    Raises:
        ValueError: if a setting is missing, makes no sense, or asks for what `GPT` does not do.
    """
    settings.one_of("scale_attn_weights", True)
    settings.one_of("scale_attn_by_inverse_layer_idx", False)
    settings.one_of("add_cross_attention", False)
    activation = ACTIVATIONS[settings.one_of("activation_function", *ACTIVATIONS)]
    width = settings.whole("n_embd")
    config = TransformerConfig(
        d_model=width,
        n_heads=settings.whole("n_head"),
        n_blocks=settings.blocks("n_layer"),
        d_hidden=settings.whole("n_inner", 4 * width),
        norm_eps=settings.number("layer_norm_epsilon", 1e-5),
        activation=activation,  # type: ignore[arg-type]
    )
    return GPT(
        config,
        settings.whole("vocab_size"),
        positions=LearnedPositions(settings.whole("n_positions"), width),
        make_backend=make_backend,
        tied=settings.flag("tie_word_embeddings", True),
    )


def copies(model: GPT, names: Iterable[str]) -> dict[str, str]:
    """What a file may hold twice: a tied head."""
    return {"lm_head.weight": f"{prefix(names)}wte.weight"} if model.head is None else {}


def prefix(names: Iterable[str]) -> str:
    """What the names begin with: files with a head say "transformer.", files without one may not."""
    return "transformer." if any(name.startswith("transformer.") for name in names) else ""


def transposed(tensor: Tensor) -> tuple[Tensor]:
    """A weight (in, out) -> (out, in); a bias stays."""
    return (tensor.mT if tensor.ndim == 2 else tensor,)


def three(tensor: Tensor) -> tuple[Tensor, ...]:
    """The parts for queries, keys and values: (D, 3D) -> three times (D, D), or a bias (3D,) -> (D,)."""
    return transposed(tensor)[0].chunk(3)


def sources(model: GPT, names: Iterable[str]) -> list[Source]:
    """What the file must hold for this model."""
    start = prefix(names)
    d, f = model.config.d_model, model.config.d_hidden or 4 * model.config.d_model
    vocab, length = model.embed.num_embeddings, model.max_len or 0
    found = [
        Source(f"{start}wte.weight", (vocab, d), ("embed.weight",)),
        Source(f"{start}wpe.weight", (length, d), ("positions.table",)),
        Source(f"{start}ln_f.weight", (d,), ("transformer.final_norm.weight",)),
        Source(f"{start}ln_f.bias", (d,), ("transformer.final_norm.bias",)),
    ]
    if model.head is not None:
        found.append(Source("lm_head.weight", (vocab, d), ("head.weight",)))
    for i in range(model.config.n_blocks):
        theirs, ours = f"{start}h.{i}", f"transformer.blocks.{i}"
        for norm, name in (("ln_1", "self_attention_norm"), ("ln_2", "mlp_norm")):
            for kind in ("weight", "bias"):
                found.append(Source(f"{theirs}.{norm}.{kind}", (d,), (f"{ours}.{name}.{kind}",)))
        qkv = [f"{ours}.self_attention.{name}" for name in ("W_q", "W_k", "W_v")]
        for name, targets, rows, columns, cut in (
            ("attn.c_attn", qkv, d, 3 * d, three),
            ("attn.c_proj", [f"{ours}.self_attention.W_o"], d, d, transposed),
            ("mlp.c_fc", [f"{ours}.mlp.W_in"], d, f, transposed),
            ("mlp.c_proj", [f"{ours}.mlp.W_out"], f, d, transposed),
        ):
            weights, biases = (tuple(f"{t}.{kind}" for t in targets) for kind in ("weight", "bias"))
            found.append(Source(f"{theirs}.{name}.weight", (rows, columns), weights, cut))
            found.append(Source(f"{theirs}.{name}.bias", (columns,), biases, cut))
    return found
