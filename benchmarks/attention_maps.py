"""What the heads of three models of this book read, for the figure in which one picks a head.

The BERT of Chapter 7, the translator of Chapter 9 and the ViT of Chapter 10 are trained by their pages'
recipes. Recorded are the attention weights of every head on some held-out texts and digits, and what the
model answers when no head is silent and when each one is: `book/_static/live/attention.js`. In the record
are the models' losses and how much the answer changes. Two minutes of one core, one seed.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from runs import BUILD, Runs
from torch import Tensor, nn

from tformer_lib import TransformerConfig, record_attention
from tformer_lib.book.datasets.mnist import ImageBatches, mnist
from tformer_lib.book.datasets.text import wikipedia, wikipedia_sentences
from tformer_lib.book.datasets.translation import translation_set
from tformer_lib.book.recorded import record
from tformer_lib.core.attention import Attend, FusedAttend, MultiHeadAttention
from tformer_lib.data.masking import PretrainingBatches
from tformer_lib.data.translation_set import TranslationSet
from tformer_lib.files import replace_file
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config, pretraining_loss
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import fit, seed_everything

SCRIPT = BUILD.parent / "book" / "_static" / "live" / "attention.js"
HOLES = (
    "It is one [MASK] the largest cities.",
    "He was born [MASK] 1809 and died in 1865.",
    "the free Northern states, as [MASK] as California and Oregon",
)
PHRASES = (("9:25 PM Taiwan Time", "21:25 Taipeh-Zeit"),)  # and two of the test set
DIGITS = (0, 1, 2, 3, 4)  # the first five of the test set


@contextmanager
def silent(layer: MultiHeadAttention, head: int) -> Iterator[None]:
    """Within the `with`, W_o reads zeros in the place of this head."""

    def hook(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        heads = layer.split_heads(inputs[0]).clone()
        heads[:, head] = 0
        return (layer.merge_heads(heads),)

    handle = layer.W_o.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def shown(model: nn.Module) -> nn.Module:
    """The model with backends that show their weights."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.backend = Attend()
    return model.eval()


def examine(layers: list[MultiHeadAttention], names: list[str], model: nn.Module, ask: Any) -> dict[str, Any]:
    """Weights of each head, (blocks, heads, queries, keys), and what `ask` returns, with each head silenced.

    `ask` runs the model and returns a row of (answer, probability) pairs for each place that is asked.
    """
    with torch.no_grad(), record_attention(model) as weights:
        answers = {"": ask()}
    maps = [weights[name][0] for name in names]
    for block, layer in enumerate(layers):
        for head in range(layer.n_heads):
            with torch.no_grad(), silent(layer, head):
                answers[f"{block}:{head}"] = ask()
    rounded = [[[[round(a, 3) for a in row] for row in head] for head in m.tolist()] for m in maps]
    return {"weights": rounded, "answers": answers}


def best(logits: Tensor, names: list[str], k: int = 3) -> list[list[Any]]:
    """The k likeliest answers and their probabilities."""
    p, which = logits.softmax(dim=-1).topk(k)
    return [[names[i], round(share, 3)] for share, i in zip(p.tolist(), which.tolist(), strict=True)]


def of_bert() -> dict[str, Any]:
    """Chapter 7's model at a hole of three texts."""
    text = " ".join(wikipedia("train"))
    tokenizer = WordPieceTokenizer.train(text, 2000)
    counts = torch.bincount(torch.tensor(tokenizer.encode(text)), minlength=tokenizer.vocab_size) + 1.0
    sentences = wikipedia_sentences("train")
    rows = [
        PretrainingBatches(sentences, tokenizer, batch=b, length=n, steps=steps, seed=0, share=0.3)
        for b, n, steps in ((128, 12, 400), (64, 24, 600))
    ]
    seed_everything(0)
    config = bert_config(d_model=64, n_heads=4, n_blocks=2, dropout=0.0)
    bert = BERT(config, tokenizer.vocab_size, max_len=24, make_backend=FusedAttend)
    model = PretrainingBERT(bert)
    model.masked_language.bias.data = (counts / counts.sum()).log()
    history = fit(model, pretraining_loss, chain(*rows), steps=1000, lr=6e-3, warmup=60, progress=False)
    shown(model)
    layers = [block.self_attention for block in bert.transformer.blocks]
    names = [f"bert.transformer.blocks.{m}.self_attention" for m in range(2)]
    items = []
    for sentence in HOLES:
        ids = tokenizer.encode(f"[CLS]{sentence}[SEP]", ["[CLS]", "[SEP]", "[MASK]"])
        hole = ids.index(tokenizer.special_tokens["[MASK]"])

        def ask(ids: list[int] = ids, hole: int = hole) -> list[list[list[Any]]]:
            return [best(model(torch.tensor([ids]))[0][0, hole], tokenizer.tokens)]

        words = [tokenizer.tokens[i] for i in ids]
        items.append({"reads": words, "asks": words, "asked": [hole], **examine(layers, names, model, ask)})
    return {"items": items, "loss": sum(history.loss[-50:]) / 50}


def of_translator() -> dict[str, Any]:
    """Chapter 9's model: what its decoder reads of the source while it is told the true translation."""
    data: TranslationSet = translation_set("phrases", "de")
    seed_everything(0)
    config = TransformerConfig(d_model=96, n_heads=4, n_blocks=2, activation="relu")
    model = Translator(config, data.vocab_size, make_backend=FusedAttend)
    options = {"lr": 1e-2, "warmup": 65, "optimizer": "muon", "progress": False}
    history = fit(model, translator_loss, data.batches(650, tokens=500), steps=650, **options)
    shown(model)
    layers = [block.cross_attention for block in model.decoder.blocks]
    names = [f"decoder.blocks.{m}.cross_attention" for m in range(2)]
    long = [pair for pair in data.test if len(data.tokenizer.encode(pair[1])) in (6, 7)]
    tokens = [data.tokenizer.decode([i]).replace(" ", "␣") for i in range(data.tokenizer.vocab_size)]
    answers = tokens + ["end"] * (data.vocab_size - len(tokens))
    items = []
    for pair in (*PHRASES, *long[:2]):
        source, target = data.encode([pair])

        def ask(source: Tensor = source, target: Tensor = target) -> list[list[list[Any]]]:
            return [best(row, answers) for row in model(source, target[:, :-1])[0]]

        reads, writes = ([*(tokens[i] for i in data.tokenizer.encode(text)), "end"] for text in pair)
        found = examine(layers, names, model, ask)
        items.append({"reads": reads, "asks": writes, "asked": list(range(len(writes))), **found})
    return {"items": items, "loss": sum(history.loss[-50:]) / 50}


def of_vit() -> dict[str, Any]:
    """Chapter 10's model: what its class token reads of five held-out digits, four by four patches each."""
    images, labels = mnist("train")
    test, truth = mnist("test")
    seed_everything(0)
    config = TransformerConfig(d_model=48, n_heads=6, n_blocks=3)
    model = ViT(config, image_size=28, patch_size=7, classes=10, make_backend=FusedAttend)
    batches = ImageBatches(images, labels, batch=64, steps=800, most=2)
    options = {"lr": 8e-3, "optimizer": "muon", "momentum": 0.9, "betas": (0.9, 0.95), "progress": False}
    history = fit(model, image_loss, batches, **options)
    shown(model)
    layers = [block.self_attention for block in model.transformer.blocks]
    names = [f"transformer.blocks.{m}.self_attention" for m in range(3)]
    classes = [str(digit) for digit in range(10)]
    items = []
    for number in DIGITS:
        image = test[number : number + 1]

        def ask(image: Tensor = image) -> list[list[list[Any]]]:
            return [best(model(image)[0], classes)]

        found = examine(layers, names, model, ask)
        found["weights"] = [[[head[0]] for head in block] for block in found["weights"]]  # of the class token
        pixels = (image[0] / image.max() * 9).round().int().flatten().tolist()
        items.append({"true": int(truth[number]), "pixels": "".join(map(str, pixels)), "asked": [0], **found})
    return {"items": items, "loss": sum(history.loss[-50:]) / 50}


def changed(items: list[dict[str, Any]]) -> int:
    """How many of the answers' first places change with at least one of the heads silenced."""
    return sum(
        any(rows[n][0][0] != item["answers"][""][n][0][0] for rows in item["answers"].values())
        for item in items
        for n in range(len(item["answers"][""]))
    )


def main() -> None:
    """Train, look, and write both files."""
    torch.set_num_threads(1)
    runs = Runs("attention_maps")
    makers = {"BERT": of_bert, "translator": of_translator, "ViT": of_vit}
    found = {name: runs.keep(name, make=make) for name, make in makers.items()}
    maps = json.dumps({name: model["items"] for name, model in found.items()}, ensure_ascii=True)
    replace_file(SCRIPT, f"window.TformerMaps = {maps};\n".encode())
    results = {
        name: {
            "loss": model["loss"],
            "asked": sum(len(item["asked"]) for item in model["items"]),
            "changed": changed(model["items"]),
        }
        for name, model in found.items()
    }
    print(record("attention_maps", results, seeds=[0], cpu_seconds=sum(runs.seconds.values())))


if __name__ == "__main__":
    main()
