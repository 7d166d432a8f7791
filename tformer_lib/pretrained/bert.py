"""Checkpoints of BERT's family, as `transformers` saves them (Devlin et al. 2019).

What a file holds decides what becomes of it: an encoder alone, with or without its pooler, is a `BERT`;
with the head for masked tokens it is a `PretrainingBERT`. The matrices stand there as here, (out, in).
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from tformer_lib.core.attention import Backend
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config
from tformer_lib.pretrained.foreign_weights import Source, renamed
from tformer_lib.pretrained.settings import ACTIVATIONS, Settings

MASKED, NEXT = "cls.predictions.", "cls.seq_relationship."  # how the names of the heads' tensors begin
LAYER = {  # theirs and ours, within a layer
    "attention.self.query": "self_attention.W_q",
    "attention.self.key": "self_attention.W_k",
    "attention.self.value": "self_attention.W_v",
    "attention.output.dense": "self_attention.W_o",
    "intermediate.dense": "mlp.W_in",
    "output.dense": "mlp.W_out",
    "attention.output.LayerNorm": "self_attention_norm",
    "output.LayerNorm": "mlp_norm",
}
IGNORED = r"(bert\.)?embeddings\.position_ids"  # 0, 1, 2, ...


def build(
    settings: Settings, make_backend: Callable[[], Backend] | None = None, names: Iterable[str] = ()
) -> BERT | PretrainingBERT:
    """The model that the settings describe, without dropout, with the parts that the names belong to.

    A head that the settings' `architectures` name is a part too, so that a file without it is found
    wanting.

    Raises:
        ValueError: if a setting is missing, makes no sense, or asks for what `BERT` does not do.
    """
    settings.one_of("position_embedding_type", "absolute")
    settings.one_of("is_decoder", False)
    settings.one_of("add_cross_attention", False)
    activation = ACTIVATIONS[settings.one_of("hidden_act", *ACTIVATIONS)]
    names, stated = list(names), settings.get("architectures", [])
    if not isinstance(stated, list):
        raise ValueError(f"{settings.where}: architectures must be a list of names, got {stated!r}")
    follows = "BertForPreTraining" in stated or _any(names, NEXT)
    masked = "BertForPreTraining" in stated or "BertForMaskedLM" in stated or _any(names, MASKED)
    if masked:
        settings.one_of("tie_word_embeddings", True)
    config = bert_config(
        d_model=settings.whole("hidden_size"),
        n_heads=settings.whole("num_attention_heads"),
        n_blocks=settings.blocks("num_hidden_layers"),
        d_hidden=settings.whole("intermediate_size"),
        dropout=0.0,
        activation=activation,  # type: ignore[arg-type]
        norm_eps=settings.number("layer_norm_eps", 1e-12),
    )
    bert = BERT(
        config,
        settings.whole("vocab_size"),
        max_len=settings.whole("max_position_embeddings"),
        segments=settings.whole("type_vocab_size", 2),
        pooler=follows or _any(names, f"{prefix(names)}pooler."),
        make_backend=make_backend,
    )
    return PretrainingBERT(bert, next_sentence=follows) if masked else bert


def _any(names: Iterable[str], start: str) -> bool:
    return any(name.startswith(start) for name in names)


def prefix(names: Iterable[str]) -> str:
    """What the encoder's names begin with: "bert." where it was saved with a head."""
    return "bert." if _any(names, "bert.") else ""


def copies(model: BERT | PretrainingBERT, names: Iterable[str]) -> dict[str, str]:
    """What a file may hold twice: the head's matrix, which is the embedding, and its bias."""
    if isinstance(model, BERT):
        return {}
    return {
        f"{MASKED}decoder.weight": f"{prefix(names)}embeddings.word_embeddings.weight",
        f"{MASKED}decoder.bias": f"{MASKED}bias",
    }


def sources(model: BERT | PretrainingBERT, names: Iterable[str]) -> list[Source]:
    """What the file must hold for this model.

    The norms' parameters are called weight and bias, and gamma and beta in the earliest files.
    """
    names = list(names)
    theirs, inside = prefix(names), "" if isinstance(model, BERT) else "bert."
    bert = model if isinstance(model, BERT) else model.bert
    layers = {
        f"{theirs}embeddings.word_embeddings": f"{inside}embed",
        f"{theirs}embeddings.position_embeddings": f"{inside}positions",
        f"{theirs}embeddings.token_type_embeddings": f"{inside}segments",
        f"{theirs}embeddings.LayerNorm": f"{inside}embed_norm",
    }
    for i in range(bert.config.n_blocks):
        layer, block = f"{theirs}encoder.layer.{i}", f"{inside}transformer.blocks.{i}"
        layers |= {f"{layer}.{name}": f"{block}.{target}" for name, target in LAYER.items()}
    if bert.pooler is not None:
        layers[f"{theirs}pooler.dense"] = f"{inside}pooler"
    heads: list[Source] = []
    if isinstance(model, PretrainingBERT):
        layers[f"{MASKED}transform.dense"] = "masked_language.W"
        layers[f"{MASKED}transform.LayerNorm"] = "masked_language.norm"
        heads = [Source(f"{MASKED}bias", (bert.embed.num_embeddings,), ("masked_language.bias",))]
        if model.next_sentence is not None:
            layers[NEXT.rstrip(".")] = "next_sentence.W"
    found = renamed(model, layers) + heads
    if any(name.endswith("LayerNorm.gamma") for name in names):
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new, was in old.items():
            found = [replace(source, name=source.name.replace(new, was)) for source in found]
    return found
