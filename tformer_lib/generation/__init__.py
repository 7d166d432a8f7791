"""Generation: from the logits of a language model to a text that it writes, a token at a time."""

from tformer_lib.generation.beam import beam_search
from tformer_lib.generation.decoding import generate
from tformer_lib.generation.greedy import greedy_search
from tformer_lib.generation.sampling import next_token_probabilities
from tformer_lib.generation.timing import time_per_token
from tformer_lib.generation.translating import translate, translation_scores

__all__ = [
    "beam_search",
    "generate",
    "greedy_search",
    "next_token_probabilities",
    "time_per_token",
    "translate",
    "translation_scores",
]
