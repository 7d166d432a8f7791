"""The chapter's drawing and its experiment."""

import pytest

from tformer_book.walking.drawings import row_of_tokens
from tformer_book.walking.experiments.walking_means import distance


def test_a_row_needs_a_token():
    with pytest.raises(ValueError, match="expected at least one token, got none"):
        row_of_tokens([])


def test_more_numbers_bring_the_mean_nearer():
    assert sum(distance(10, seed) for seed in range(20)) > 3 * sum(distance(1000, seed) for seed in range(20))
