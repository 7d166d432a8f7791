"""Passages that are told twice."""

import pytest
import torch

from tformer_book.long_sequences.data.told import ToldTwice

IDS = torch.arange(100)


def test_half_of_the_rows_come_again():
    batches = ToldTwice(IDS, passage=5, batch=4, steps=3, seed=0)
    rows = list(batches)
    assert len(batches) == len(rows) == 3
    for row in rows:
        assert row.shape == (4, 11)
        assert (row[:2].diff(dim=1) == 1).all()
        assert row[2:, 5:10].equal(row[2:, :5])
        assert row[2:, 10].equal(row[2:, 4] + 1)  # then the text goes on
        assert (row[2:, :5].diff(dim=1) == 1).all()
    assert all(a.equal(b) for a, b in zip(rows, batches, strict=True))
    assert IDS.equal(torch.arange(100))


@pytest.mark.parametrize(("ids", "batch"), [(IDS, 3), (IDS[:10], 4)])
def test_refuses(ids, batch):
    with pytest.raises(ValueError, match="even batch"):
        ToldTwice(ids, passage=5, batch=batch, steps=1, seed=0)
