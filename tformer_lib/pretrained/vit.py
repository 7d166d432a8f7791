"""Checkpoints of the vision transformer, as `transformers` saves them (Dosovitskiy et al. 2021).

A file with a classifier becomes a `ViT` with a head, one without becomes a `ViT` without. The matrices stand
there as here, (out, in); only the patches' embedding is saved as the convolution that it also is.
"""

from collections.abc import Callable, Iterable

from torch import Tensor

from tformer_lib.core.attention import Backend
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.vit import ViT
from tformer_lib.pretrained.foreign_weights import Source, renamed
from tformer_lib.pretrained.settings import ACTIVATIONS, Settings

IGNORED = r"(vit\.)?pooler\.dense\.(weight|bias)"  # a layer behind the class token that the paper has not
LAYER = {  # theirs and ours, within a layer
    "attention.attention.query": "self_attention.W_q",
    "attention.attention.key": "self_attention.W_k",
    "attention.attention.value": "self_attention.W_v",
    "attention.output.dense": "self_attention.W_o",
    "intermediate.dense": "mlp.W_in",
    "output.dense": "mlp.W_out",
    "layernorm_before": "self_attention_norm",
    "layernorm_after": "mlp_norm",
}


def build(
    settings: Settings, make_backend: Callable[[], Backend] | None = None, names: Iterable[str] = ()
) -> ViT:
    """The model that the settings describe, without dropout; with a head if there is a classifier.

    Raises:
        ValueError: if a setting is missing, makes no sense, or asks for what `ViT` does not do.
    """
    settings.one_of("qkv_bias", True)
    activation = ACTIVATIONS[settings.one_of("hidden_act", *ACTIVATIONS)]
    config = TransformerConfig(
        d_model=settings.whole("hidden_size"),
        n_heads=settings.whole("num_attention_heads"),
        n_blocks=settings.blocks("num_hidden_layers"),
        d_hidden=settings.whole("intermediate_size"),
        norm_eps=settings.number("layer_norm_eps", 1e-12),
        activation=activation,  # type: ignore[arg-type]
    )
    return ViT(
        config,
        image_size=settings.whole("image_size"),
        patch_size=settings.whole("patch_size"),
        channels=settings.whole("num_channels", 3),
        classes=_classes(settings, list(names)),
        make_backend=make_backend,
    )


def _classes(settings: Settings, names: list[str]) -> int | None:
    """How many classes the head tells apart; None where the file has no head and should have none."""
    architectures = settings.get("architectures", [])
    if not isinstance(architectures, list):
        raise ValueError(f"{settings.where}: architectures must be a list of names, got {architectures!r}")
    if "classifier.weight" not in names and "ViTForImageClassification" not in architectures:
        return None
    labels = settings.get("id2label")
    if labels is None:
        return settings.whole("num_labels", 2)
    if not isinstance(labels, dict) or not labels:
        raise ValueError(f"{settings.where}: id2label must name the classes, got {labels!r}")
    return len(labels)


def copies(model: ViT, names: Iterable[str]) -> dict[str, str]:
    """What a file may hold twice: nothing."""
    return {}


def sources(model: ViT, names: Iterable[str]) -> list[Source]:
    """What the file must hold for this model."""
    theirs = "vit." if any(name.startswith("vit.") for name in names) else ""
    d, p, places = model.config.d_model, model.patch_size, 1 + model.grid[0] * model.grid[1]
    projection = f"{theirs}embeddings.patch_embeddings.projection"
    found = [
        Source(f"{theirs}embeddings.cls_token", (1, 1, d), ("class_token",), lambda t: (t[0, 0],)),
        Source(f"{theirs}embeddings.position_embeddings", (1, places, d), ("positions.table",), _first),
        Source(
            f"{projection}.weight",
            (d, model.channels, p, p),
            ("patch_embed.weight",),
            lambda kernel: (kernel.flatten(1),),
        ),
        Source(f"{projection}.bias", (d,), ("patch_embed.bias",)),
    ]
    layers: dict[str, str] = {}
    for i in range(model.config.n_blocks):
        layer, block = f"{theirs}encoder.layer.{i}", f"transformer.blocks.{i}"
        layers |= {f"{layer}.{name}": f"{block}.{target}" for name, target in LAYER.items()}
    layers[f"{theirs}layernorm"] = "transformer.final_norm"
    if model.head is not None:
        layers["classifier"] = "head"
    return found + renamed(model, layers)


def _first(tensor: Tensor) -> tuple[Tensor]:
    return (tensor[0],)
