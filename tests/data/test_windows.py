"""Windows: every batch is cut from the text, repeats under its seed, and measuring windows miss nothing."""

import pytest
import torch

from tformer_lib.data.windows import RandomWindows, consecutive_windows


def test_windows_are_cut_from_the_sequence():
    ids = torch.arange(100, 200)
    windows = RandomWindows(ids, batch=7, length=5, steps=4, seed=3)
    batches = list(windows)
    assert len(windows) == len(batches) == 4
    for batch in batches:
        assert batch.shape == (7, 6)
        assert (batch.diff(dim=1) == 1).all()
        assert batch.min() >= 100
        assert batch.max() < 200


def test_the_same_seed_gives_the_same_batches_each_time():
    def flat(seed):
        return torch.stack(list(RandomWindows(torch.arange(50), batch=4, length=3, steps=5, seed=seed)))

    windows = RandomWindows(torch.arange(50), batch=4, length=3, steps=5, seed=1)
    torch.manual_seed(5)
    first = torch.stack(list(windows))
    torch.manual_seed(6)
    assert torch.equal(first, torch.stack(list(windows)))
    assert torch.equal(first, flat(1))
    assert not torch.equal(first, flat(2))


def test_every_start_is_possible_and_the_last_token_is_used():
    ids = torch.arange(8)
    batches = torch.cat(list(RandomWindows(ids, batch=50, length=3, steps=10)))
    assert set(batches[:, 0].tolist()) == {0, 1, 2, 3, 4}
    assert batches.max() == 7


def test_consecutive_windows_predict_each_token_once():
    ids = torch.arange(23)
    windows = consecutive_windows(ids, 5)
    assert windows.shape == (4, 6)
    assert windows[:, 1:].flatten().tolist() == list(range(1, 21))
    assert torch.equal(windows[1:, 0], windows[:-1, -1])


def test_a_window_as_long_as_the_sequence():
    ids = torch.arange(6)
    assert torch.equal(consecutive_windows(ids, 5), ids[None])
    assert torch.equal(next(iter(RandomWindows(ids, batch=1, length=5, steps=1))), ids[None])


@pytest.mark.parametrize(
    "cut",
    [lambda ids: RandomWindows(ids, batch=1, length=5, steps=1), lambda ids: consecutive_windows(ids, 5)],
)
def test_bad_sequences(cut):
    with pytest.raises(ValueError, match="6 tokens, and the sequence has 5"):
        cut(torch.arange(5))
    with pytest.raises(ValueError, match=r"one long sequence, got shape \(2, 9\)"):
        cut(torch.zeros(2, 9, dtype=torch.long))
