"""What the drawings of the forms of parallelism show is what happens."""

import pytest
import torch

from tformer_book.scale.drawings import parallel as draw


def test_a_ring_ends_with_the_sum_everywhere_and_moves_one_part_a_step():
    for n in (2, 3, 4, 5):
        values = [[10**i * (j + 1) for j in range(n)] for i in range(n)]
        states, changed = draw.ring_states(values)
        assert len(states) == 2 * (n - 1) + 1
        sums = [sum(column) for column in zip(*values, strict=True)]
        assert states[-1] == [sums] * n
        for fresh in changed[1:]:
            assert sorted(process for process, _ in fresh) == list(range(n))
        half = states[n - 1]  # after the adding each process holds one whole sum
        assert sorted(j for row in half for j in range(n) if row[j] == sums[j]) == list(range(n))


def test_ring_attention_says_how_many_meetings_are_empty():
    assert "6 of the 16 meetings are empty" in draw.ring_attention(4).description


@pytest.mark.parametrize("seed", range(3))
def test_tensor_parallel_shows_what_autograd_finds(seed):
    generator = torch.Generator().manual_seed(seed)
    x, W_in, W_out, gradient = (
        torch.randint(-4, 5, shape, generator=generator).double() for shape in ((2,), (2, 2), (2, 2), (2,))
    )
    x.requires_grad_()
    h = (W_in @ x).relu()
    y = W_out @ h
    y.backward(gradient)
    said = draw.tensor_parallel(x.detach(), W_in, W_out, gradient).description

    def written(vector):
        return "(" + ", ".join(f"{v:.0f}".replace("-", "\N{MINUS SIGN}") for v in (vector + 0).tolist()) + ")"

    assert f"makes the output {written(y.detach())}" in said
    assert f"makes the gradient {written(x.grad)} at x" in said


def test_bad_input():
    with pytest.raises(ValueError, match="3 rows cannot be halved"):
        draw.data_parallel(3, "1 KiB")
    with pytest.raises(ValueError, match="W_in must be 2 x 2"):
        draw.tensor_parallel([1, 2], [[1, 1], [3, -1], [0, 1]], [[2, 1], [-1, 4]], [1, 0])
    with pytest.raises(ValueError, match="into 2 parts, got 3"):
        draw.ring_all_reduce([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ValueError, match="at least 2, got 1"):
        draw.ring_attention(1)
    with pytest.raises(ValueError, match="schedules"):
        draw.pipeline_schedules({})
    with pytest.raises(ValueError, match="processes"):
        draw.cut_ways(1)
