"""The tokenizer that a GGUF file brings along."""

import os

from tformer_lib.pretrained.gguf import read_gguf
from tformer_lib.pretrained.settings import Settings
from tformer_lib.tokenizers import BPETokenizer
from tformer_lib.tokenizers.pretokenise import BYTES, from_visible, visible

CUTS = {"gpt-2": "gpt2", "smollm": "gpt2, single digits"}  # by the name that the file has for it
ORDINARY, CONTROL = 1, 3  # kinds of tokens


def gguf_tokenizer(path: str | os.PathLike[str]) -> BPETokenizer:
    """The byte-pair tokenizer of a GGUF file; that its numbers are the file's has been compared.

    Raises:
        ImportError: if the package gguf is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, or its tokenizer is of another kind.
    """
    return tokenizer_of(read_gguf(path, tensors=False)[0])


def tokenizer_of(settings: Settings) -> BPETokenizer:
    """What `gguf_tokenizer` returns, from the file's settings.

    Raises:
        ValueError: as `gguf_tokenizer`.
    """
    settings.one_of("tokenizer.ggml.model", "gpt2")
    cut = CUTS[settings.one_of("tokenizer.ggml.pre", *CUTS)]
    tokens, kinds = settings.get("tokenizer.ggml.tokens", []), settings.get("tokenizer.ggml.token_type", [])
    for name, values, kind in (("tokens", tokens, str), ("token_type", kinds, int)):
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise ValueError(f"{settings.where}: tokenizer.ggml.{name} must be a list of {kind.__name__}")
    if len(tokens) != len(kinds) or not set(kinds) <= {ORDINARY, CONTROL}:
        raise ValueError(f"{settings.where}: each token must be an ordinary or a control token")
    specials = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    there = set(tokens)
    listed = settings.get("tokenizer.ggml.merges", [])
    if not isinstance(listed, list) or not all(isinstance(merge, str) for merge in listed):
        raise ValueError(f"{settings.where}: tokenizer.ggml.merges must be a list of str")
    merges = [merge.partition(" ") for merge in listed]
    try:
        tokenizer = BPETokenizer(
            [(from_visible(left), from_visible(right)) for left, _, right in merges],
            specials,
            cut=cut,
            specials_first=tokens[: len(specials)] == specials,
            left_out=bytes(byte for byte in BYTES if visible(bytes([byte])) not in there),
        )
    except ValueError as error:
        raise ValueError(f"{settings.where}: {error}") from error
    ours = {**{visible(token): i for token, i in tokenizer.vocab.items()}, **tokenizer.special_tokens}
    if ours != {token: i for i, token in enumerate(tokens)}:
        raise ValueError(
            f"{settings.where}: the tokens are not bytes, merges in their order and control tokens"
        )
    return tokenizer
