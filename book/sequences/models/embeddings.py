"""Embeddings of words: skip-gram with negative sampling, and the matrix it factorises."""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tformer_lib.core.tokens import TokenEmbedding
from tformer_lib.numbers import whole


class SkipGram(nn.Module):
    """score(w, c) = embed(w) . embed_out(c), high for words that stand near each other.

    Two vectors a word: one as the centre of a window, which is its embedding, and one as a neighbour
    (Mikolov et al. 2013b). Trained with `skip_gram_loss`.

    Args:
        vocab_size: the number of words.
        d_embed: the width of an embedding.
    """

    def __init__(self, vocab_size: int, d_embed: int):
        super().__init__()
        self.embed = TokenEmbedding(vocab_size, d_embed, name="words", axes="B")
        self.embed_out = TokenEmbedding(vocab_size, d_embed, name="words", axes="B K")
        nn.init.uniform_(self.embed.weight, -0.5 / d_embed, 0.5 / d_embed)
        nn.init.zeros_(self.embed_out.weight)

    def forward(self, centre: Int[Tensor, " B"], others: Int[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """The score of each centre with each of its K words."""
        return torch.einsum("bd,bkd->bk", self.embed(centre), self.embed_out(others))

    def neighbours(self, word_id: int, k: int = 5) -> tuple[list[int], list[float]]:
        """As the function `neighbours`, among the centres' embeddings."""
        return neighbours(self.embed.weight.detach(), word_id, k)


def skip_gram_loss(model: SkipGram, batch: tuple[Tensor, Tensor, Tensor]) -> Float[Tensor, ""]:
    """Mean of -log sigma(score(w, c)) - sum_k log sigma(-score(w, z_k)): true neighbours against noise.

    A batch is (centres (B,), neighbours (B,), noise (B, K)); a noise word is drawn without regard to the
    centre.
    """
    centre, context, noise = batch
    scores = model(centre, torch.cat((context[:, None], noise), dim=1))
    return -(F.logsigmoid(scores[:, 0]) + F.logsigmoid(-scores[:, 1:]).sum(dim=1)).mean()


def ppmi_embeddings(
    centres: Int[Tensor, " P"],
    contexts: Int[Tensor, " P"],
    vocab_size: int,
    d_embed: int,
    smoothing: float = 0.75,
    seed: int = 0,
) -> Float[Tensor, "vocab D"]:
    """U sqrt(S) of the largest singular values of M_wc = max(0, log p(w, c) / (p(w) p(c)^smoothing)).

    M, the positive pointwise mutual information, is what skip-gram factorises, up to a constant (Levy and
    Goldberg 2014); on a text of less than a million words the singular values find it in a second. p(c)
    is taken to the power `smoothing` and normalised again, as skip-gram draws its noise.

    Args:
        centres: a word of each pair of words that stand near each other.
        contexts: the other word of each pair.
        vocab_size: the number of words.
        d_embed: the width of an embedding, less than `vocab_size`.
        smoothing: the power; 1 for the mutual information itself.
        seed: of the vector with which the search for singular values begins.

    Raises:
        ValueError: if there are no pairs, or not 0 < d_embed < vocab_size.
    """
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
    from scipy.sparse.linalg import svds  # type: ignore[import-untyped]

    if len(centres) == 0 or not 0 < d_embed < vocab_size:
        raise ValueError(f"got {len(centres)} pairs and width {d_embed} for {vocab_size} words")
    codes, counts = np.unique((centres * vocab_size + contexts).numpy(), return_counts=True)
    row, column = codes // vocab_size, codes % vocab_size
    p_row = np.bincount(row, weights=counts, minlength=vocab_size) / counts.sum()
    p_column = np.bincount(column, weights=counts, minlength=vocab_size) ** smoothing
    p_column /= p_column.sum()
    pmi = np.log(counts / counts.sum() / (p_row[row] * p_column[column]))
    matrix = coo_array((pmi.clip(min=0), (row, column)), shape=(vocab_size, vocab_size)).tocsr()
    start = np.random.default_rng(seed).standard_normal(vocab_size)
    left, values, _ = svds(matrix, k=d_embed, v0=start)
    return torch.from_numpy((left * np.sqrt(values))[:, ::-1].copy()).float()


def neighbours(vectors: Float[Tensor, "vocab D"], word_id: int, k: int = 5) -> tuple[list[int], list[float]]:
    """The k words whose vectors have the largest cosine with this word's, and the cosines, falling.

    Raises:
        ValueError: if there is no such word, or k is not in 1..vocab_size - 1.
    """
    word_id, k = whole("word_id", word_id), whole("k", k)
    if not 0 <= word_id < len(vectors) or not 0 < k < len(vectors):
        raise ValueError(f"got word {word_id} and k = {k} for {len(vectors)} words")
    cosines = F.cosine_similarity(vectors, vectors[word_id : word_id + 1])
    cosines[word_id] = -torch.inf
    best = cosines.topk(k)
    return best.indices.tolist(), best.values.tolist()
