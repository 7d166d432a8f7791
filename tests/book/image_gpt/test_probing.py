"""A linear probe finds what a line separates, and chooses its penalty."""

import torch

from tformer_book.image_gpt.probing import choose_penalty, linear_probe


def test_a_probe_finds_what_a_line_separates_and_nothing_in_noise():
    generator = torch.Generator().manual_seed(0)
    x, noise = (torch.randn(400, 5, generator=generator) for _ in range(2))
    labels = (x[:, 0] + x[:, 1] > 0).long()
    assert linear_probe(x[:300], labels[:300], x[300:], labels[300:]) > 0.93
    assert 0.3 < linear_probe(noise[:300], labels[:300], noise[300:], labels[300:]) < 0.7
    constant = torch.cat([x, torch.ones(400, 1)], dim=1)  # a feature that never changes
    assert linear_probe(constant[:300], labels[:300], constant[300:], labels[300:]) > 0.93


def test_a_noisy_problem_gets_a_smaller_penalty_constant():
    generator = torch.Generator().manual_seed(0)
    x, step = torch.randn(300, 40, generator=generator), 0.2 * torch.randn(300, generator=generator)
    clean = torch.stack([x[:, 0], x[:, 0] + step], dim=1)  # told apart by a small difference
    noise = torch.randn(300, generator=generator)
    noisy_labels = (x[:, 0] + 3 * noise > 0).long()
    assert choose_penalty(x, noisy_labels) < choose_penalty(clean, (step > 0).long())
