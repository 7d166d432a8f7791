"""Probes against scikit-learn and against tasks whose answer is known."""

import pytest
import torch

from tformer_book.inside.probes import (
    best_labels,
    control_labels,
    fit_probes,
    removal,
    without,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_probes_are_as_good_as_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    x = torch.randn(1500, 6, generator=generator()) * torch.tensor([1.0, 5, 1, 1, 0.1, 1]) + 3
    truth = (
        x @ torch.randn(6, 3, generator=generator(1)) + torch.randn(1500, 3, generator=generator(2))
    ).argmax(-1)
    two = (x[:, 0] > 3.3).long()
    probes = fit_probes(x[:1000], {"three": truth[:1000], "two": two[:1000]}, steps=300)
    theirs = LogisticRegression(max_iter=2000).fit(x[:1000].numpy(), truth[:1000].numpy())
    ours = (probes["three"](x[1000:]) == truth[1000:]).float().mean().item()
    assert ours == pytest.approx(theirs.score(x[1000:].numpy(), truth[1000:].numpy()), abs=0.03)
    assert (probes["two"](x[1000:]) == two[1000:]).float().mean() > 0.97
    with pytest.raises(ValueError, match="label"):
        fit_probes(x, {"three": truth[:10]})


def test_a_control_task_gives_each_type_one_class_as_often_as_the_task():
    types = torch.randint(400, (20_000,), generator=generator())
    labels = (torch.rand(20_000, generator=generator(1)) < 0.3).long()
    control = control_labels(types, labels, generator(2))
    for t in range(400):
        assert len(control[types == t].unique()) == 1
    assert control.float().mean().item() == pytest.approx(0.3, abs=0.1)


def test_what_is_removed_is_gone_and_the_rest_is_as_it_was():
    directions = torch.randn(8, 3, generator=generator())
    directions = torch.cat((directions, directions[:, :1] + directions[:, 1:2]), dim=1)  # of rank 3
    keep = removal(directions)
    assert keep.trace().item() == pytest.approx(5, abs=1e-4)
    torch.testing.assert_close(keep @ keep, keep)
    x, mean = torch.randn(4, 8, generator=generator(1)), torch.randn(8, generator=generator(2))
    left = without(x, mean, keep)
    torch.testing.assert_close((left - mean) @ directions, torch.zeros(4, 4), atol=1e-4, rtol=0)
    torch.testing.assert_close((left - x) @ keep, torch.zeros(4, 8), atol=1e-4, rtol=0)


def test_the_best_label_of_a_unit_and_its_f1_on_new_tokens():
    labels = torch.rand(4000, 3, generator=generator()) < torch.tensor([0.1, 0.2, 0.3])
    noise = torch.rand(4000, 4, generator=generator(1))
    units = torch.stack(
        (labels[:, 2] + 0.0, labels[:, 0] * 2.0, noise[:, 2], labels[:, 1] + noise[:, 3]), dim=1
    )
    found = best_labels(units, labels)
    assert found.label[[0, 1, 3]].tolist() == [2, 0, 1]
    assert found.f1[[0, 1, 3]].tolist() == pytest.approx([1, 1, 1], abs=0.02)
    assert found.f1[2] < 0.55  # a unit of noise: F1 of saying yes half of the time, 2 * 0.15 / (0.5 + 0.3)
    second = labels[2000:]
    fires = units[2000:, 3] > 1
    tp = (fires & second[:, 1]).sum()
    assert found.f1[3].item() == pytest.approx((2 * tp / (fires.sum() + second[:, 1].sum())).item(), abs=0.02)
