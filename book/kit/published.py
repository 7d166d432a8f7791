"""Published architectures, built from the core on the meta device and counted.

A tensor on the meta device has a shape and no memory, so that GPT-3's 175 billion parameters can be
instantiated and counted anywhere in under a second.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import torch
from torch import nn

from tformer_lib.core.positions import LearnedPositions
from tformer_lib.core.transformer import Transformer, TransformerConfig
from tformer_lib.models.bert import BERT, bert_config

Family = Literal["seq2seq", "bert", "gpt", "vit", "igpt", "llama"]
COMPONENTS = ("embeddings", "positions", "attention", "MLP", "norms", "head")


@dataclass(frozen=True)
class Published:
    """One published architecture: its sizes, where they stand, and how large it is said to be."""

    name: str
    family: Family
    config: TransformerConfig  # of the stack; of both stacks for "seq2seq"
    vocab_size: int  # tokens, a start token's included; for "vit" the numbers in a patch
    length: int  # positions, the class token's included
    published: float  # the parameters that the source states
    rounding: float  # half a unit of the last digit stated
    source: str
    note: str  # why our count is not the published one, or what the count includes
    classes: int = 0  # of a head of its own; a tied head has no parameters

    def build(self) -> nn.Module:
        """The model on the meta device: no memory, no initial values."""
        with torch.device("meta"):
            if self.family == "bert":
                return BERT(self.config, self.vocab_size, max_len=self.length)
            return PublishedModel(self)

    def parameters(self) -> int:
        """Our exact count; a shared parameter counts once."""
        return sum(self.by_component().values())

    def by_component(self) -> dict[str, int]:
        """Our exact count by component: embeddings, positions, attention, MLP, norms, head."""
        return dict(_count(self))

    @property
    def difference(self) -> float:
        """Our count minus the published one."""
        return self.parameters() - self.published

    @property
    def agrees(self) -> bool:
        """Whether the difference is no more than the rounding of the published figure."""
        return abs(self.difference) <= self.rounding


class PublishedModel(nn.Module):
    """The parameters of one published architecture other than BERT: embeddings, stacks and head.

    It is made to be counted; the models that run are in `tformer_lib.models`.
    """

    def __init__(self, spec: Published):
        super().__init__()
        d = spec.config.d_model
        if spec.family == "vit":
            self.embed: nn.Module = nn.Linear(spec.vocab_size, d)
            self.class_token = nn.Parameter(torch.empty(d))
        else:
            self.embed = nn.Embedding(spec.vocab_size, d)
        if spec.family not in ("seq2seq", "llama"):  # whose sinusoids and rotations are no parameters
            self.positions = LearnedPositions(spec.length, d)
        self.transformer = Transformer(spec.config)
        if spec.family == "seq2seq":
            self.decoder = Transformer(replace(spec.config, cross_attention=True))
        if spec.classes:
            self.head = nn.Linear(d, spec.classes, bias=spec.family == "vit")


def count_by_component(model: nn.Module) -> dict[str, int]:
    """The parameters of embeddings, positions, attention, MLP, norms and head; a shared one counts once.

    Raises:
        ValueError: if a parameter's name tells none of these.
    """
    counts, seen = dict.fromkeys(COMPONENTS, 0), set()
    for name, parameter in model.named_parameters():
        if id(parameter) in seen:
            continue
        seen.add(id(parameter))
        for component, words in WORDS.items():
            if any(word in name for word in words):
                counts[component] += parameter.numel()
                break
        else:
            raise ValueError(f"{name} belongs to none of the components {COMPONENTS}")
    return counts


@cache
def _count(spec: Published) -> dict[str, int]:
    return count_by_component(spec.build())


WORDS = {  # the first component one of whose words stands in a parameter's name
    "norms": ("norm",),
    "attention": ("attention.",),
    "MLP": ("mlp.",),
    "positions": ("positions.",),
    "head": ("head.", "pooler."),
    "embeddings": ("embed.", "segments.", "class_token"),
}


def forward_flops_per_token(config: TransformerConfig, length: int, *, vocab_size: int = 0) -> int:
    """M (2 P + 4 N D) + 2 D vocab: multiplications and additions for one token of a sequence of N.

    P is the number of a block's matrix entries: 2 D^2 + 2 D^2 G / H in attention with G heads of keys and
    values, and 2 D F in the MLP (3 D F with SwiGLU). Each entry multiplies once and adds once. A query
    meets N keys and N values: 2 N D for the scores of all heads and 2 N D for the weighted sum, masked
    or not. The last term is the head. Biases, norms, softmax and the activation are left out, as usual.

    Raises:
        ValueError: if the stack cross-attends, which takes the length of a second sequence.
    """
    if config.cross_attention:
        raise ValueError("a stack that cross-attends has two lengths; this formula has one")
    d, hidden = config.d_model, config.d_hidden or 4 * config.d_model
    shared = (config.n_kv_heads or config.n_heads) / config.n_heads
    attention = 2 * d * d + 2 * int(d * d * shared)
    mlp = (3 if config.activation == "swiglu" else 2) * d * hidden
    return config.n_blocks * (2 * (attention + mlp) + 4 * length * d) + 2 * d * vocab_size


def training_flops_per_token(config: TransformerConfig, length: int, *, vocab_size: int = 0) -> int:
    """Three times the forward pass: backward, each product asks for two gradients of the same cost."""
    return 3 * forward_flops_per_token(config, length, vocab_size=vocab_size)


def training_flops(parameters: int | float, tokens: int | float) -> int | float:
    """6 N D, with N parameters and D tokens: the estimate that leaves attention's products out.

    Kaplan et al. (2020), section 2.1; Brown et al. (2020), appendix D.
    """
    return 6 * parameters * tokens


def _gpt(
    name: str, blocks: int, width: int, heads: int, length: int, published: float, **facts: Any
) -> Published:
    config = TransformerConfig(d_model=width, n_heads=heads, n_blocks=blocks)
    return Published(name, "gpt", config, vocab_size=50257, length=length, published=published, **facts)


def _gpt2(name: str, blocks: int, width: int, millions: int, corrected: str) -> Published:
    return _gpt(
        name,
        blocks,
        width,
        width // 64,
        1024,
        millions * 1e6,
        rounding=5e5,
        source="Radford et al. 2019, table 2",
        note=f"the authors' repository corrects the paper's figure to {corrected}, which ours is",
    )


def _bert(name: str, blocks: int, width: int, heads: int, millions: int) -> Published:
    return Published(
        name,
        "bert",
        bert_config(d_model=width, n_heads=heads, n_blocks=blocks),
        vocab_size=30522,
        length=512,
        published=millions * 1e6,
        rounding=5e6,
        source="Devlin et al. 2019, section 3",
        note="stated to the nearest ten million; with segments and pooler, without the pretraining heads",
    )


def llama_config(blocks: int, width: int, heads: int, kv_heads: int, hidden: int) -> TransformerConfig:
    """The block of the Llama family: RMSNorm, SwiGLU, shared keys, no biases."""
    return TransformerConfig(
        d_model=width,
        n_heads=heads,
        n_blocks=blocks,
        d_hidden=hidden,
        n_kv_heads=kv_heads,
        norm="rms",
        activation="swiglu",
        bias=False,
    )


def _llama(
    name: str,
    blocks: int,
    width: int,
    heads: int,
    kv_heads: int,
    hidden: int,
    vocab: int,
    published: float,
    **facts: Any,
) -> Published:
    config = llama_config(blocks, width, heads, kv_heads, hidden)
    return Published(
        name, "llama", config, vocab_size=vocab, length=0, classes=vocab, published=published, **facts
    )


def _vaswani(name: str, width: int, heads: int, millions: int, note: str) -> Published:
    config = TransformerConfig(
        d_model=width, n_heads=heads, n_blocks=6, norm_placement="post", activation="relu"
    )
    return Published(
        name,
        "seq2seq",
        config,
        vocab_size=37000,
        length=0,
        published=millions * 1e6,
        rounding=5e5,
        source="Vaswani et al. 2017, table 3",
        note=note,
    )


def _vit(name: str, blocks: int, width: int, heads: int, patch: int, millions: int, note: str) -> Published:
    config = TransformerConfig(d_model=width, n_heads=heads, n_blocks=blocks, norm_eps=1e-6)
    return Published(
        name,
        "vit",
        config,
        vocab_size=3 * patch * patch,
        length=(224 // patch) ** 2 + 1,
        classes=1000,
        published=millions * 1e6,
        rounding=5e5,
        source="Dosovitskiy et al. 2021, table 1",
        note=note,
    )


def _igpt(
    name: str, blocks: int, width: int, heads: int, published: float, rounding: float, note: str
) -> Published:
    return Published(
        name,
        "igpt",
        TransformerConfig(d_model=width, n_heads=heads, n_blocks=blocks),
        vocab_size=513,
        length=1024,
        classes=512,
        published=published,
        rounding=rounding,
        source="Chen et al. 2020, section 3.3",
        note=note,
    )


PUBLISHED: dict[str, Published] = {
    spec.name: spec
    for spec in (
        _vaswani("Transformer base", 512, 8, 65, "the vocabulary is 'about 37000'; 65M would take 40,700"),
        _vaswani("Transformer big", 1024, 16, 213, "the vocabulary is 'about 37000'; 213M would take 35,800"),
        _bert("BERT base", 12, 768, 12, 110),
        _bert("BERT large", 24, 1024, 16, 340),
        _gpt2("GPT-2 small", 12, 768, 117, "124M"),
        _gpt2("GPT-2 medium", 24, 1024, 345, "355M"),
        _gpt2("GPT-2 large", 36, 1280, 762, "774M"),
        _gpt2("GPT-2 XL", 48, 1600, 1542, "1558M"),
        _gpt(
            "GPT-3 175B",
            96,
            12288,
            96,
            2048,
            175.0e9,
            rounding=0.05e9,
            source="Brown et al. 2020, table 2.1",
            note="table D.1 of the same paper says 174,600M, which ours is",
        ),
        _llama(
            "Llama 3 8B",
            32,
            4096,
            32,
            8,
            14336,
            128_256,
            8.0e9,
            rounding=0.5e9,
            source="Grattafiori et al. 2024, table 3",
            note="a head of its own; 128,000 tokens and 256 that the authors reserve",
        ),
        _vit(
            "ViT-B/16",
            12,
            768,
            12,
            16,
            86,
            "ours has a head of 1,000 classes (0.8M); without it, 85.8M, as stated",
        ),
        _vit(
            "ViT-L/16",
            24,
            1024,
            16,
            16,
            307,
            "307M is ViT-L with patches of 32 and such a head of 1,000 classes: 306.5M",
        ),
        _vit("ViT-H/14", 32, 1280, 16, 14, 632, "with a head of 1,000 classes"),
        _igpt(
            "iGPT-S",
            24,
            512,
            8,
            76e6,
            5e5,
            "ours has the released model's own head of 512 colours; without it, 76.4M",
        ),
        _igpt(
            "iGPT-M",
            36,
            1024,
            8,
            455e6,
            5e5,
            "ours has the released model's own head of 512 colours; without it, 455.0M",
        ),
        _igpt(
            "iGPT-L",
            48,
            1536,
            16,
            1.4e9,
            0.05e9,
            "ours has the released model's own head of 512 colours; without it, 1,362M",
        ),
    )
}
