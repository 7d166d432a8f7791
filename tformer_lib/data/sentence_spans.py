"""Spans of whole sentences drawn from documents: the A and the B of BERT's pre-training."""

import random
from collections.abc import Sequence
from itertools import accumulate

from tformer_lib.tokenizers import WordPieceTokenizer

FOLLOWS, DOES_NOT = 0, 1  # the labels of a pair
NEGATIVES = ("other document", "same document", "swapped")  # what B is where it does not follow
TRIES = 10_000  # before a draw gives up

Documents = Sequence[Sequence[str]]


class SentenceSpans:
    """Tokenised documents, from which spans of consecutive whole sentences are drawn.

    A *junction* is a place between two sentences of a document. A span A ends at one and a span B begins
    at one, so that, whether B follows or not, both are drawn in the same way and neither tells by itself.

    Args:
        documents: the sentences of each document.
        tokenizer: cuts them; done once, here. Sentences without tokens are left out.

    Raises:
        ValueError: if a document is one string instead of several, or there is no sentence.
    """

    def __init__(self, documents: Documents, tokenizer: WordPieceTokenizer):
        if any(isinstance(sentences, str) for sentences in documents):
            raise ValueError("a document is a list of its sentences, and one of these is a string")
        encoded = [[ids for s in sentences if (ids := tokenizer.encode(s))] for sentences in documents]
        flat = [ids for sentences in encoded for ids in sentences]
        self.ids = [i for ids in flat for i in ids]
        self.starts = [0, *accumulate(map(len, flat))]  # of each sentence among the ids, and the end
        ends = accumulate(map(len, encoded))
        bounds = [(end - len(sentences), end) for sentences, end in zip(encoded, ends, strict=True)]
        self.bounds = [bound for bound in bounds for _ in range(*bound)]  # of each sentence's document
        if not self.ids:
            raise ValueError("the documents hold no sentence")
        self.junctions = [s for s, (begin, _) in enumerate(self.bounds) if s > begin]

    def tokens(self, begin: int, end: int) -> list[int]:
        """Those of the sentences begin..end-1."""
        return self.ids[self.starts[begin] : self.starts[end]]

    def reach(self, junction: int, other: int, room: int) -> tuple[int, int]:
        """(begin of A, end of B), for A that ends at one junction and B that begins at the other.

        Each takes one sentence; then, while tokens fit, the shorter one takes a further sentence of its
        document, or the longer if the shorter has no more.
        """
        begin, end = junction - 1, other + 1
        while True:
            n_first = self.starts[junction] - self.starts[begin]
            n_second = self.starts[end] - self.starts[other]
            more_first, more_second = begin > self.bounds[junction][0], end < self.bounds[other][1]
            if n_first + n_second >= room or not (more_first or more_second):
                return begin, end
            if more_first and (n_first <= n_second or not more_second):
                begin -= 1
            else:
                end += 1

    def single(self, chance: random.Random, room: int) -> list[int]:
        """A span that begins with a random sentence and goes on to `room` tokens or its document's end."""
        sentence = chance.randrange(len(self.bounds))
        start, end = self.starts[sentence], self.starts[self.bounds[sentence][1]]
        return self.ids[start : min(end, start + room)]

    def pair(
        self, chance: random.Random, label: int, room: int, negatives: str = NEGATIVES[0]
    ) -> tuple[list[int], list[int]]:
        """The tokens of A and B; B follows A if the label is 0, else it is as `negatives` says.

        Raises:
            ValueError: if no document has two sentences, or no such B is found.
        """
        if not self.junctions:
            raise ValueError("a pair needs a document of two sentences or more, and there is none")
        junction = other = chance.choice(self.junctions)
        if label == DOES_NOT and negatives != "swapped":
            junction, other = self.apart(chance, junction, room, negatives == "same document")
        begin, end = self.reach(junction, other, room)
        first, second = self.tokens(begin, junction), self.tokens(other, end)
        return (second, first) if label == DOES_NOT and negatives == "swapped" else (first, second)

    def apart(self, chance: random.Random, junction: int, room: int, inside: bool) -> tuple[int, int]:
        """The junction, and one where a B begins that does not follow, inside its document or not.

        Inside, at least one sentence lies between B and both A and the true B. A B that begins with the
        same sentence as the true one is passed over. Where none is found soon, A moves.
        """
        for attempt in range(1, TRIES + 1):
            document = self.bounds[junction]
            true_end = self.reach(junction, junction, room)[1]
            other = (
                chance.randrange(document[0] + 1, document[1]) if inside else chance.choice(self.junctions)
            )
            begin, end = self.reach(junction, other, room)
            far = (other > true_end or end < begin) if inside else self.bounds[other] != document
            if far and self.tokens(other, other + 1) != self.tokens(junction, junction + 1):
                return junction, other
            if attempt % 100 == 0:  # a short document has no place for B
                junction = chance.choice(self.junctions)
        raise ValueError("no span was found that does not follow: there are too few documents or sentences")
