"""Generation: from the logits of a language model to a text that it writes, a token at a time."""

from tformer_lib.generation.beam import beam_search
from tformer_lib.generation.decoding import generate
from tformer_lib.generation.filling import fill_in
from tformer_lib.generation.greedy import greedy_search
from tformer_lib.generation.sampling import next_token_probabilities
from tformer_lib.generation.translating import translate

__all__ = ["beam_search", "fill_in", "generate", "greedy_search", "next_token_probabilities", "translate"]
