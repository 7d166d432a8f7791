"""Models of BERT that we trained ourselves, on disk as `transformers` saves them, with their tokenizer."""

import json
import os
from pathlib import Path

from safetensors.torch import save

from tformer_lib.files import replace_file
from tformer_lib.models.bert import PretrainingBERT
from tformer_lib.pretrained.bert import sources
from tformer_lib.pretrained.folder import load
from tformer_lib.pretrained.foreign_weights import SINGLE
from tformer_lib.pretrained.settings import ACTIVATIONS
from tformer_lib.tokenizers import WordPieceTokenizer

TOKENIZER = "tokenizer.json"
NEXT_TOO, MASKED_ONLY = "BertForPreTraining", "BertForMaskedLM"  # what transformers calls the two models


def save_bert(folder: str | os.PathLike[str], model: PretrainingBERT, tokenizer: WordPieceTokenizer) -> Path:
    """Write config.json, model.safetensors and tokenizer.json: each whole, one after the other.

    The tensors have the names under which `load` looks for them, those of `transformers`, which can read
    the folder too. That the model had dropout is in the settings; `load` makes models without.

    Returns:
        The folder.

    Raises:
        ValueError: if the tokenizer has not as many tokens as the model, or the model has an activation
            that such a checkpoint cannot name.
    """
    bert, config = model.bert, model.bert.config
    vocab = bert.embed.num_embeddings
    if tokenizer.vocab_size != vocab:
        raise ValueError(f"the model has {vocab} tokens, and the tokenizer {tokenizer.vocab_size}")
    activations = [name for name, ours in ACTIVATIONS.items() if ours == config.activation]
    if not activations:
        raise ValueError(f"a checkpoint of BERT has no name for the activation {config.activation!r}")
    settings = {
        "architectures": [NEXT_TOO if model.next_sentence is not None else MASKED_ONLY],
        "model_type": "bert",
        "vocab_size": vocab,
        "hidden_size": config.d_model,
        "num_attention_heads": config.n_heads,
        "num_hidden_layers": config.n_blocks,
        "intermediate_size": config.d_hidden or 4 * config.d_model,
        "max_position_embeddings": bert.max_len,
        "type_vocab_size": bert.segments.num_embeddings,
        "hidden_act": activations[0],
        "layer_norm_eps": config.norm_eps,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "tie_word_embeddings": True,
    }
    ours = model.state_dict()
    names = {source.name: source.targets[0] for source in sources(model, ["bert."])}
    tensors = {theirs: ours[name].detach().cpu().contiguous() for theirs, name in names.items()}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / SINGLE, save(tensors, {"format": "pt"}))
    replace_file(folder / "config.json", (json.dumps(settings, indent=1) + "\n").encode())
    tokenizer.save(folder / TOKENIZER)
    return folder


def load_bert(folder: str | os.PathLike[str]) -> tuple[PretrainingBERT, WordPieceTokenizer]:
    """The model and the tokenizer that `save_bert` wrote; the model without dropout, in evaluation mode.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: as `load`; or if the file has no head for masked tokens, or the tokenizer does not fit.
    """
    model = load(folder)
    if not isinstance(model, PretrainingBERT):
        raise ValueError(f"{folder} holds a {type(model).__name__}, and no head for masked tokens")
    tokenizer = WordPieceTokenizer.load(Path(folder) / TOKENIZER)
    if tokenizer.vocab_size != model.bert.embed.num_embeddings:
        there = model.bert.embed.num_embeddings
        raise ValueError(f"{folder}: the model has {there} tokens, and the tokenizer {tokenizer.vocab_size}")
    return model, tokenizer
