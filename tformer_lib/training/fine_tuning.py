"""Fine-tuning: a new head on a copy of an encoder, all of it trained on few labels; and the scores."""

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from tformer_lib.core.modes import evaluation
from tformer_lib.models.bert import BERT
from tformer_lib.models.classifiers import classifier_loss
from tformer_lib.numbers import real, whole
from tformer_lib.training.loop import fit
from tformer_lib.training.plan import passed

Model = TypeVar("Model", bound=nn.Module)


def fine_tune(
    bert: BERT,
    head: Callable[[BERT], Model],
    batches: Iterable[Any],
    *,
    lr: float = 1e-3,
    steps: int | None = None,
    weight_decay: float = 0.01,
    warmup: float = 0.1,
    dropout: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Model:
    """A copy of the encoder with a new head on it, all of it trained; the encoder given stays as it was.

    AdamW, the learning rate climbing over the first tenth of the steps and falling to 0: Devlin et al. 2019,
    section A.3, with a cosine for their straight line.

    Args:
        bert: the pre-trained encoder; `first_weights(bert)` in its place trains from scratch.
        head: puts a head on an encoder: `lambda bert: SequenceClassifier(bert, classes=10)`.
        batches: of (tokens, mask, labels), such as `LabelledBatches`.
        lr: the peak learning rate.
        steps: how many batches; one pass over them if None.
        weight_decay: of AdamW.
        warmup: the share of the steps over which the learning rate climbs.
        dropout: of the copy and its head, wherever BERT has it; if None, what the encoder had before. Short
            pre-training does better without, and fine-tuning on few labels with.
        seed: of the head's first weights and of dropout. The state of PyTorch's own generator is put back.
        progress: as for `fit`.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: as `fit`; or if `warmup` is no share of the steps, or `dropout` no probability.
        TypeError: as `fit`.
    """
    steps, seed = whole("steps", passed(batches) if steps is None else steps), whole("seed", seed, 0)
    warmup = real("warmup is a share of the steps: it", warmup, "[0, 1]")
    with _seeded(bert, seed):
        model = head(copy.deepcopy(bert) if dropout is None else with_dropout(bert, dropout))
        model.to(bert.embed.weight.device)
        fit(
            model,
            classifier_loss,
            batches,
            steps=steps,
            lr=lr,
            weight_decay=weight_decay,
            warmup=round(warmup * steps),
            progress=progress,
        )
    return model


def with_dropout(bert: BERT, share: float) -> BERT:
    """A copy that drops `share` on the embeddings, on attention weights and on what a sublayer adds."""
    share = real("dropout", share, "[0, 1)")
    bert = copy.deepcopy(bert)
    bert.config = dataclasses.replace(bert.config, dropout=share, mlp_dropout=0.0)
    for name, module in bert.named_modules():
        if isinstance(module, nn.Dropout) and not name.endswith("mlp.dropout"):
            module.p = share
    return bert


def first_weights(bert: BERT, *, seed: int = 0) -> BERT:
    """A BERT of the same sizes before any training: what "from scratch" starts from."""
    with _seeded(bert, seed):
        fresh = BERT(
            bert.config,
            bert.embed.num_embeddings,
            max_len=bert.max_len,
            segments=bert.segments.num_embeddings,
            pooler=bert.pooler is not None,
        )
    return fresh.to(bert.embed.weight.device)


@contextmanager
def _seeded(bert: BERT, seed: int) -> Iterator[None]:
    """Within it PyTorch's generators start from `seed`; afterwards they are as before."""
    device = bert.embed.weight.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def predict(
    model: nn.Module, tokens: Int[Tensor, "B N"], mask: Bool[Tensor, "B 1 1 N"], *, batch: int = 250
) -> Int[Tensor, "..."]:
    """arg max of the model's logits, (B,) for a sequence classifier and (B, N) for a token classifier.

    The model is in evaluation mode meanwhile.

    Raises:
        ValueError: if there is not one mask for each row of tokens, or `batch` is below 1.
    """
    if len(tokens) != len(mask):
        raise ValueError(f"each row needs a mask, got {len(tokens)} rows and {len(mask)} masks")
    batch = whole("batch", batch, 1)
    parts = zip(tokens.split(batch), mask.split(batch), strict=True)
    with evaluation(model):
        return torch.cat([model(some, None, its).argmax(-1) for some, its in parts])
