"""What the BERT of Chapter 7's page puts in the place of each word of some sentences, from one side and both.

The model is trained by the page's recipe. Of sentences of ours, made of words that it has often read, each
word is hidden in turn, and the model is asked twice: with the whole sentence, and with what stands before the
hole alone, the rest cut off. The likeliest tokens with their probabilities, and the probability of the true
one, are in `book/site/static/live/fillings.js`, for the figure that hides a word; in the record is how often
the true one comes first. A minute of one core, one seed.
"""

import json
from typing import Any

import torch
from torch import Tensor

from tformer_book.bert.experiments.bert_page import Page
from tformer_book.kit.records import record
from tformer_book.kit.runs import BUILD
from tformer_lib.core.attention import FusedAttend
from tformer_lib.files import replace_file

SCRIPT = BUILD.parent / "book" / "site" / "static" / "live" / "fillings.js"
SHOWN = 4  # of the likeliest tokens
SENTENCES = (
    "It was the first in the United States.",
    "It is one of the largest in the world.",
    "He was the son of the king of the city.",
    "Most of them are in the south of the country.",
)


def asked(page: Page, p: Tensor, true: int) -> dict[str, Any]:
    """The likeliest tokens with their probabilities, and the probability of the true one."""
    share, which = p.topk(SHOWN)
    names = [page.tokenizer.tokens[i] for i in which.tolist()]
    best = [[name, round(x, 3)] for name, x in zip(names, share.tolist(), strict=True)]
    return {"best": best, "true": round(p[true].item(), 3)}


@torch.no_grad()
def hidden(page: Page, model: torch.nn.Module, sentence: str) -> dict[str, Any]:
    """For each word of a sentence: what the model says with both sides of it, and with its left alone."""
    names = page.tokenizer.special_tokens
    ids = [names["[CLS]"], *page.tokenizer.encode(sentence), names["[SEP]"]]
    found: dict[str, Any] = {"words": [page.tokenizer.tokens[i] for i in ids[1:-1]], "both": [], "left": []}
    for place in range(1, len(ids) - 1):
        holed = [page.hole if n == place else token for n, token in enumerate(ids)]
        for side, read in (("both", holed), ("left", holed[: place + 1])):
            p = model(torch.tensor([read]))[0][0, place].softmax(dim=-1)
            found[side].append(asked(page, p, ids[place]))
    return found


def main() -> None:
    """Train, ask, and write both files."""
    torch.set_num_threads(1)
    page = Page()
    model = page.pretrained(0, FusedAttend).eval()
    found = [hidden(page, model, sentence) for sentence in SENTENCES]
    replace_file(SCRIPT, f"window.TformerFillings = {json.dumps(found)};\n".encode())
    words = [(one, n, word) for one in found for n, word in enumerate(one["words"])]
    results = {
        "words": len(words),
        "likelier with both": sum(one["both"][n]["true"] > one["left"][n]["true"] for one, n, _ in words),
        "first with both": sum(one["both"][n]["best"][0][0] == word for one, n, word in words),
        "first with the left": sum(one["left"][n]["best"][0][0] == word for one, n, word in words),
    }
    print(record("hidden_words", results, seeds=[0]))


if __name__ == "__main__":
    main()
