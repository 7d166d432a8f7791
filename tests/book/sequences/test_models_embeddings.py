"""Skip-gram against a loop, mutual information against its definition, and both on a text with topics."""

import math

import pytest
import torch

from tformer_book.sequences.models.embeddings import SkipGram, neighbours, ppmi_embeddings, skip_gram_loss
from tformer_book.sequences.skip_grams import skip_gram_pairs
from tformer_lib.training import fit

TIGHT = {"rtol": 0, "atol": 1e-10}


def topics():
    """A text of 300 stretches of 20 words, each of one topic: words 0-9, 10-19 or 20-29."""
    generator = torch.Generator().manual_seed(0)
    topic = torch.randint(3, (300, 1), generator=generator)
    return (10 * topic + torch.randint(10, (300, 20), generator=generator)).flatten()


def same_topic(vectors):
    """Of the nine nearest of each word, the share that is of its topic."""
    return sum(n // 10 == word // 10 for word in range(30) for n in neighbours(vectors, word, 9)[0]) / 270


def test_the_loss_is_the_loop_over_pairs():
    torch.manual_seed(0)
    model = SkipGram(6, 3).double().requires_grad_(False)
    torch.nn.init.normal_(model.embed_out.weight)
    centre, context, noise = torch.tensor([0, 4]), torch.tensor([2, 2]), torch.tensor([[1, 1, 5], [0, 3, 4]])
    total = 0.0
    for i in range(2):
        w = model.embed.weight[centre[i]]
        total += math.log(torch.sigmoid(w @ model.embed_out.weight[context[i]]))
        total += sum(math.log(torch.sigmoid(-(w @ model.embed_out.weight[z]))) for z in noise[i])
    loss = skip_gram_loss(model, (centre, context, noise))
    torch.testing.assert_close(loss, torch.tensor(-total / 2, dtype=torch.float64), **TIGHT)


def test_the_loss_begins_at_that_of_a_coin():
    model = SkipGram(6, 3)
    batch = torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([[4, 5], [4, 5]])
    assert skip_gram_loss(model, batch).item() == pytest.approx(3 * math.log(2))


def batches(centres, contexts, size, steps):
    """Pairs drawn at random, with five words of noise each, from the unigram^0.75."""
    generator, noise = torch.Generator().manual_seed(0), torch.bincount(contexts).double().pow(0.75)
    for _ in range(steps):
        chosen = torch.randint(len(centres), (size,), generator=generator)
        drawn = noise.multinomial(5 * size, replacement=True, generator=generator)
        yield centres[chosen], contexts[chosen], drawn.view(size, 5)


def test_skip_gram_learns_topics():
    pairs = skip_gram_pairs(topics(), window=4, subsample=0)
    torch.manual_seed(0)
    model = SkipGram(30, 8)
    fit(model, skip_gram_loss, [*batches(*pairs, 512, 150)], lr=0.02, weight_decay=0.0)
    assert same_topic(model.embed.weight.detach()) > 0.95
    assert model.neighbours(3, 9) == neighbours(model.embed.weight.detach(), 3, 9)


def test_mutual_information_knows_topics():
    pairs = skip_gram_pairs(topics(), window=4, subsample=0)
    vectors = ppmi_embeddings(*pairs, 30, 3)
    assert vectors.shape == (30, 3)
    assert same_topic(vectors) > 0.95


@pytest.mark.parametrize("smoothing", [1.0, 0.75])
def test_the_vectors_come_from_the_matrix_of_mutual_information(smoothing):
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randint(7, (2, 60), generator=generator)
    centres, contexts = torch.cat((a, b)), torch.cat((b, a))
    counts = torch.zeros(7, 7).double()
    for w, c in zip(centres.tolist(), contexts.tolist(), strict=True):
        counts[w, c] += 1
    p_w, p_c = counts.sum(1) / 120, counts.sum(0) ** smoothing / (counts.sum(0) ** smoothing).sum()
    matrix = (counts / 120 / (p_w[:, None] * p_c)).log().clamp(min=0)
    left, values, _ = torch.linalg.svd(matrix)
    expected = left[:, :4] * values[:4].sqrt()
    found = ppmi_embeddings(centres, contexts, 7, 4, smoothing).double()
    torch.testing.assert_close(found @ found.T, expected @ expected.T, rtol=0, atol=1e-5)
    torch.testing.assert_close(found.norm(dim=0), values[:4].sqrt(), rtol=0, atol=1e-5)


def test_the_vectors_are_the_same_again():
    pairs = skip_gram_pairs(topics(), window=4, subsample=0)
    assert torch.equal(ppmi_embeddings(*pairs, 30, 5), ppmi_embeddings(*pairs, 30, 5))


def test_neighbours_are_sorted_by_cosine_and_leave_out_the_word():
    vectors = torch.tensor([[1.0, 0.0], [5.0, 0.1], [0.0, 1.0], [-1.0, 0.0], [1.0, 1.0]])
    words, cosines = neighbours(vectors, 0, 4)
    assert words == [1, 4, 2, 3]
    assert cosines == pytest.approx([5 / 25.01**0.5, 0.5**0.5, 0, -1], abs=1e-6)


def test_errors():
    vectors, pair = torch.eye(3), torch.tensor([0])
    for word, k in ((3, 1), (-1, 1), (0, 0), (0, 3)):
        with pytest.raises(ValueError, match=f"word {word} and k = {k} for 3 words"):
            neighbours(vectors, word, k)
    for pairs, width in ((pair[:0], 1), (pair, 0), (pair, 3)):
        with pytest.raises(ValueError, match=f"{len(pairs)} pairs and width {width} for 3 words"):
            ppmi_embeddings(pairs, pairs, 3, width)
