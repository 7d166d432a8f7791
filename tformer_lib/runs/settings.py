"""What `python -m tformer_lib.train` can be told: a dataclass a part, a line of help a field."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_type_hints

TRIFLES = {  # another value in the middle of a run changes nothing but the rounding
    "model": (),
    "train": (
        "accumulate",
        "strategy",
        "recompute",
        "compiled",
        "checkpoint_every",
        "log_every",
        "tensorboard",
    ),
}


def setting(default: Any, text: str) -> Any:
    """A field with a default and a line of help."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which texts, and what is held out."""

    folder: str | None = setting(None, "the folder of texts; not needed once they are in shards")
    pattern: str = setting("*.txt", "what the names of the files look like")
    encoding: str = setting("utf-8", "how the files are written")
    separator: str | None = setting(
        None, "what stands between documents in a file, in any of its files; a file each if null"
    )
    held_out: float = setting(
        0.1, "the share of the text that is held out, in whole documents, at least one; with 0 no score"
    )
    seed: int = setting(0, "of the draw of these documents")
    shard_tokens: int = setting(50_000_000, "how many tokens a file of shards holds")
    shards: str | None = setting(None, "the folder of shards, to share it between runs; OUT/shards if null")


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings:
    """How the texts are cut."""

    kind: Literal["bpe", "char"] = setting("bpe", "byte pairs, learnt from the training texts, or characters")
    vocab_size: int = setting(1024, "how many tokens byte pairs have, 257 at least")
    most: int = setting(10_000_000, "of how many characters byte pairs are learnt at most")


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """A GPT in its modern form: rotary positions, RMSNorm, normalised queries and keys, SwiGLU, no biases."""

    context: int = setting(128, "N, the tokens that it reads")
    d_model: int = setting(128, "D, the width of a token")
    n_heads: int = setting(4, "H, the heads, each D / H wide")
    n_kv_heads: int | None = setting(None, "the heads of keys and values; H if null")
    n_blocks: int = setting(4, "M, the depth")
    d_hidden: int | None = setting(None, "F, the width of the MLP; 8/3 D, rounded up to eights, if null")
    rotary_base: float = setting(10_000.0, "of the rotary positions")
    dropout: float = setting(0.0, "on what a sublayer adds, and in the MLP")
    tied: bool = setting(True, "whether the head is the embedding")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How it is trained: the arguments of `tformer_lib.scale.distributed_fit.fit_distributed`."""

    steps: int = setting(1000, "the number of global batches; a run in OUT can be lengthened")
    batch: int = setting(16, "B, the windows in a global batch, over all processes")
    lr: float = setting(1e-2, "the peak learning rate")
    warmup: int = setting(50, "the steps over which it climbs")
    min_lr_ratio: float = setting(0.05, "the share of it at which the cosine ends")
    optimizer: Literal["muon", "adamw"] = setting(
        "muon", "for the matrices of the blocks; AdamW for the rest"
    )
    weight_decay: float = setting(0.1, "on parameters of two or more dimensions")
    beta1: float = setting(0.9, "AdamW's")
    beta2: float = setting(0.99, "AdamW's")
    momentum: float = setting(0.95, "Muon's")
    clip: float | None = setting(1.0, "the norm to which a longer gradient is shortened; never if null")
    seed: int = setting(0, "of the first weights and of the order of the windows")
    precision: Literal["float32", "bfloat16"] = setting("float32", "of the products")
    strategy: Literal["ddp", "fsdp"] = setting("ddp", "a whole model in each process, or a share of it")
    accumulate: int = setting(1, "into how many parts a process cuts its rows")
    recompute: bool = setting(False, "whether activations are computed again in the backward pass")
    compiled: bool = setting(False, "whether blocks are compiled; on a CPU it takes a C++ compiler")
    checkpoint_every: int = setting(100, "the steps between checkpoints")
    log_every: int = setting(10, "the steps between lines of the log")
    tensorboard: bool = setting(True, "whether to write OUT/tensorboard too")


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings:
    """How the held-out text is read."""

    tokens: int | None = setting(None, "how many of its tokens, from the beginning; all if null")
    every: int | None = setting(None, "the steps between readings during the training; at its end if null")
    every_tokens: int = setting(20_000, "how many tokens such a reading predicts at most")
    batch: int = setting(64, "the windows at a time")


@dataclass(frozen=True, kw_only=True)
class SampleSettings:
    """What the model writes at the end."""

    prompts: list[str] | str = field(
        default_factory=lambda: [""],
        metadata={
            "help": "what it goes on from, one text or a list; an empty one is the beginning of a document"
        },
    )
    tokens: int = setting(200, "how many it writes, unless the document ends before")
    temperature: float = setting(0.8, "below 1 sharpens")
    top_p: float | None = setting(0.95, "the share of probability that stays")
    seed: int = setting(0, "of the draws")

    def __post_init__(self) -> None:
        if isinstance(self.prompts, str):  # one alone
            object.__setattr__(self, "prompts", [self.prompts])


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of them. What a run writes lies in the folder `out`."""

    data: DataSettings = field(default_factory=DataSettings)
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    evaluate: EvaluateSettings = field(default_factory=EvaluateSettings)
    sample: SampleSettings = field(default_factory=SampleSettings)
    out: str = setting("run", "the folder of the run: everything it writes")
    device: str | None = setting(None, "where to compute, such as cpu or cuda; the best there is if null")

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Settings":
        """Settings from nested dictionaries, as `asdict` gives them.

        Raises:
            TypeError: if there is no such setting.
        """
        groups = {name: type_ for name, type_ in get_type_hints(cls).items() if name in GROUPS}
        return cls(**{k: groups[k](**v) if k in groups else v for k, v in content.items()})

    def identity(self) -> dict[str, Any]:
        """What a run cannot change once it has begun: "model.d_model" and so on."""
        return {
            f"{group}.{name}": value
            for group, trifles in TRIFLES.items()
            for name, value in asdict(getattr(self, group)).items()
            if name not in trifles
        }


GROUPS = ("data", "tokenizer", "model", "train", "evaluate", "sample")


def helps() -> dict[str, str]:
    """The line of help of each setting, such as {"train.lr": "the peak learning rate", ...}."""
    found = {each.name: each.metadata["help"] for each in fields(Settings) if each.metadata}
    for name in GROUPS:
        of = fields(get_type_hints(Settings)[name])
        found |= {f"{name}.{each.name}": each.metadata["help"] for each in of}
    return found
