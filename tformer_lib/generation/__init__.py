"""Generation: from the logits of a language model to a text that it writes, a token at a time."""

from tformer_lib.generation.decoding import generate
from tformer_lib.generation.sampling import next_token_probabilities
from tformer_lib.generation.timing import time_per_token

__all__ = ["generate", "next_token_probabilities", "time_per_token"]
