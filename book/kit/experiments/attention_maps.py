"""What the heads of three models of this book read, for the figure in which one picks a head.

The BERT of Chapter 7, the translator of Chapter 9 and the ViT of Chapter 10 are trained by their pages'
recipes. Recorded are the attention weights of every head on some held-out texts and digits, and what the
model answers when no head is silent and when each one is: `book/site/static/live/attention.js`. In the record
are the models' losses and how much the answer changes. Two minutes of one core, one seed.
"""

import json
from typing import Any

import torch
from torch import Tensor, nn

from tformer_book.bert.experiments.bert_page import Page
from tformer_book.kit.data.mnist import ImageBatches, mnist
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD, Runs
from tformer_book.translation.data.translation import translation_set
from tformer_book.translation.data.translation_set import TranslationSet
from tformer_lib import TransformerConfig, record_attention
from tformer_lib.analysis import mask_heads
from tformer_lib.core.attention import Attend, FusedAttend, MultiHeadAttention
from tformer_lib.files import replace_file
from tformer_lib.measures.masked import masked_scores
from tformer_lib.models.translator import Translator, translator_loss
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import fit, seed_everything

SCRIPT = BUILD.parent / "book" / "site" / "static" / "live" / "attention.js"
HOLES = (
    "It is one [MASK] the largest cities.",
    "He was born [MASK] 1809 and died in 1865.",
    "the free Northern states, as [MASK] as California and Oregon",
)
PHRASES = (("9:25 PM Taiwan Time", "21:25 Taipeh-Zeit"),)  # and two of the test set
DIGITS = (0, 1, 2, 3, 4)  # the first five of the test set


def shown(model: nn.Module) -> nn.Module:
    """The model with backends that show their weights."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.backend = Attend()
    return model.eval()


def examine(names: list[str], model: nn.Module, ask: Any) -> dict[str, Any]:
    """Weights of each head, (layers, heads, queries, keys), and what `ask` returns, with each head silenced.

    `ask` runs the model and returns a row of (answer, probability) pairs for each place that is asked.
    """
    with torch.no_grad(), record_attention(model) as weights:
        answers = {"": ask()}
    maps = [weights[name][0] for name in names]
    for number, name in enumerate(names):
        for head in range(model.get_submodule(name).n_heads):
            with torch.no_grad(), mask_heads(model, [(name, head)]):
                answers[f"{number}:{head}"] = ask()
    rounded = [[[[round(a, 3) for a in row] for row in head] for head in m.tolist()] for m in maps]
    return {"weights": rounded, "answers": answers}


def best(logits: Tensor, names: list[str], k: int = 3) -> list[list[Any]]:
    """The k likeliest answers and their probabilities."""
    p, which = logits.softmax(dim=-1).topk(k)
    return [[names[i], round(share, 3)] for share, i in zip(p.tolist(), which.tolist(), strict=True)]


def of_bert() -> dict[str, Any]:
    """Chapter 7's model at a hole of three texts."""
    page = Page()
    tokenizer, model = page.tokenizer, page.pretrained(0, FusedAttend)
    loss, _ = masked_scores(model, page.wikipedia_exam())
    shown(model)
    names = [f"bert.transformer.blocks.{m}.self_attention" for m in range(2)]
    items = []
    for sentence in HOLES:
        ids = tokenizer.encode(f"[CLS]{sentence}[SEP]", ["[CLS]", "[SEP]", "[MASK]"])
        hole = ids.index(tokenizer.special_tokens["[MASK]"])

        def ask(ids: list[int] = ids, hole: int = hole) -> list[list[list[Any]]]:
            return [best(model(torch.tensor([ids]))[0][0, hole], tokenizer.tokens)]

        words = [tokenizer.tokens[i] for i in ids]
        items.append({"reads": words, "asks": words, "asked": [hole], **examine(names, model, ask)})
    return {"items": items, "loss": loss}


def of_translator() -> dict[str, Any]:
    """Chapter 9's model: what its decoder reads of the source while it is told the true translation."""
    data: TranslationSet = translation_set("phrases", "de")
    seed_everything(0)
    config = TransformerConfig(d_model=96, n_heads=4, n_blocks=2, activation="relu")
    model = Translator(config, data.vocab_size, make_backend=FusedAttend)
    options = {"lr": 1e-2, "warmup": 65, "optimizer": "muon", "progress": False}
    history = fit(model, translator_loss, data.batches(650, tokens=500), steps=650, **options)
    shown(model)
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
        found = examine(names, model, ask)
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
    names = [f"transformer.blocks.{m}.self_attention" for m in range(3)]
    classes = [str(digit) for digit in range(10)]
    items = []
    for number in DIGITS:
        image = test[number : number + 1]

        def ask(image: Tensor = image) -> list[list[list[Any]]]:
            return [best(model(image)[0], classes)]

        found = examine(names, model, ask)
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
