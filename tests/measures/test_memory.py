"""Memory counted tensor by tensor."""

import torch

from tformer_lib.measures.memory import peak_memory


def test_the_peak_is_what_is_held_at_one_time():
    def one_after_the_other():
        for _ in range(5):
            torch.zeros(1000)

    def together():
        return [torch.zeros(1000) for _ in range(5)]

    assert peak_memory(one_after_the_other) <= 2 * 4000
    assert peak_memory(together) == 5 * 4000


def test_views_and_writing_in_place_take_nothing():
    x = torch.zeros(10, 100)

    def function():
        x.T.reshape(-1, 5).T[2:].expand(4, 3, -1).size()
        x.view(-1).add_(1.0)
        x[3].zero_()

    assert peak_memory(function) <= 4000  # reshape copies once


def test_what_stands_outside_is_not_counted():
    x = torch.zeros(1000)
    assert peak_memory(lambda: x.sum()) == 4


def test_backward_passes_are_seen():
    x = torch.ones(1000, requires_grad=True)
    forward = peak_memory(lambda: x.exp())
    both = peak_memory(lambda: x.exp().sum().backward())
    assert forward == 4000
    assert both >= 8000  # what was saved, and a gradient


def test_the_same_each_time():
    x = torch.ones(50, 50, requires_grad=True)
    assert len({peak_memory(lambda: (x @ x).softmax(-1).sum().backward()) for _ in range(3)}) == 1
