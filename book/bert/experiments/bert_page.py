"""The recipe of Chapter 7's page, for the scripts that repeat it: its texts, its model, what it reads."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from tformer_book.bert.data.intents import Utterance, intent_names, intent_utterances, slot_tags
from tformer_book.kit.data.text import wikipedia, wikipedia_sentences
from tformer_lib.core.attention import Attend, Backend
from tformer_lib.data.labelled import LabelledBatches, encode_sentences, label_first_pieces
from tformer_lib.data.masking import PretrainingBatches, mask_tokens
from tformer_lib.measures.masked import hidden_places
from tformer_lib.models.bert import BERT, PretrainingBERT, bert_config, pretraining_loss
from tformer_lib.tokenizers import WordPieceTokenizer
from tformer_lib.training import fit, seed_everything

CONFIG = bert_config(d_model=64, n_heads=4, n_blocks=2, dropout=0.0)
ROWS = ((128, 12, 400), (64, 24, 600))  # batch, length and steps on Wikipedia
READING = 500  # steps on commands
Batch = tuple[Any, ...]


@dataclass(frozen=True)
class Encoded:
    """Commands as the page encodes them."""

    tokens: Tensor  # (S, N)
    mask: Tensor  # (S, 1, 1, N)
    first: Tensor  # (S, words): the place of each word's first piece
    intents: Tensor  # (S,)
    slots: Tensor  # (S, N): a tag at first pieces, IGNORED elsewhere


class Page:
    """The page's tokenizer, its commands, and models made as the page makes them."""

    def __init__(self) -> None:
        text = " ".join(wikipedia("train"))
        self.tokenizer = WordPieceTokenizer.train(text, 2000)
        self.vocab, self.hole = self.tokenizer.vocab_size, self.tokenizer.special_tokens["[MASK]"]
        counts = torch.bincount(torch.tensor(self.tokenizer.encode(text)), minlength=self.vocab) + 1.0
        self.unigram = (counts / counts.sum()).log()
        self.train, self.test = map(intent_utterances, ("train", "validation"))
        self.names, self.tags = intent_names(), slot_tags()

    def encoded(self, commands: list[Utterance]) -> Encoded:
        """Tokens, mask, first places, intents, tags at first pieces."""
        tokens, mask, first = encode_sentences([u.words for u in commands], self.tokenizer, length=20)
        wanted = torch.tensor([self.names.index(u.intent) for u in commands])
        slots = label_first_pieces(first, [[self.tags.index(t) for t in u.tags] for u in commands])
        return Encoded(tokens, mask, first, wanted, slots)

    def holes(self, commands: list[Utterance], steps: int, seed: int) -> Iterator[Batch]:
        """Batches for `pretraining_loss`: commands with three tokens of ten hidden."""
        read = self.encoded(commands)
        chance = torch.Generator().manual_seed(seed)
        nothing = torch.zeros(len(read.tokens), dtype=torch.long)
        for x, m, _ in LabelledBatches(read.tokens, read.mask, nothing, batch=64, steps=steps, seed=seed):
            inputs, targets = mask_tokens(x, self.tokenizer, share=0.3, generator=chance)
            yield inputs, None, m, targets, None

    def exam(self, seed: int = 1) -> list[Batch]:
        """Held-out commands, asked only where [MASK] is seen."""
        return hidden_places(self.holes(self.test, 20, seed), self.hole)

    def with_heads(self, bert: torch.nn.Module, *, next_sentence: bool = True) -> PretrainingBERT:
        """Ready for pre-training: the bias for holes starts as the unigram."""
        model = PretrainingBERT(bert, next_sentence=next_sentence)
        model.masked_language.bias.data = self.unigram.clone()
        return model

    def fresh(
        self, seed: int, *, next_sentence: bool = True, make_backend: Callable[[], Backend] = Attend
    ) -> PretrainingBERT:
        """The page's model with the first weights of a seed."""
        seed_everything(seed)
        bert = BERT(CONFIG, self.vocab, max_len=24, make_backend=make_backend)
        return self.with_heads(bert, next_sentence=next_sentence)

    def pretrained(self, seed: int, make_backend: Callable[[], Backend] = Attend) -> PretrainingBERT:
        """After 1,000 steps on Wikipedia, in rows of 12 and then of 24."""
        old = wikipedia_sentences("train")
        rows = [
            PretrainingBatches(old, self.tokenizer, batch=b, length=n, steps=steps, seed=seed, share=0.3)
            for b, n, steps in ROWS
        ]
        model = self.fresh(seed, make_backend=make_backend)
        fit(model, pretraining_loss, chain(*rows), steps=1000, lr=6e-3, warmup=60, progress=False)
        return model

    def wikipedia_exam(self) -> list[Batch]:
        """Held-out Wikipedia in rows of 24, asked only where [MASK] is seen."""
        new = wikipedia_sentences("validation")
        rows = PretrainingBatches(new, self.tokenizer, batch=64, length=24, steps=20, seed=1)
        return hidden_places(rows, self.hole)

    def read_on(self, model: PretrainingBERT, seed: int, steps: int = READING) -> PretrainingBERT:
        """A copy that has read commands with holes."""
        reader = copy.deepcopy(model)
        reader.next_sentence = None  # there are no pairs here
        batches = self.holes(self.train, steps, seed)
        fit(reader, pretraining_loss, batches, steps=steps, lr=8e-3, warmup=40, progress=False)
        return reader
