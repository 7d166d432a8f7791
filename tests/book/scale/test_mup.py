"""muP's rules against their formulas, and the coordinate check: flat under muP, growing under the other."""

import math

import jaxtyping
import pytest
import torch

from tformer_book.scale.mup import (
    WidthAttend,
    WidthRules,
    activations,
    coordinate_check,
    hidden_matrices,
    train_by_rules,
)
from tformer_lib import GPT, TransformerConfig
from tformer_lib.core.attention import Attend
from tformer_lib.core.positions import LearnedPositions
from tformer_lib.models.language import language_loss

BASE, VOCAB = 16, 20


def config(width, heads=4):
    return TransformerConfig(d_model=width, n_heads=heads, n_blocks=2)


def build(parametrisation, width, seed=0):
    torch.manual_seed(seed)
    rules = WidthRules(BASE, parametrisation)
    return rules, rules.gpt(config(width), VOCAB, positions=LearnedPositions(8, width)).double()


def batches(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(VOCAB, (8, 9), generator=generator) for _ in range(n)]


def test_scores_are_divided_by_the_width_of_a_head():
    q, k, v = torch.randn(3, 2, 4, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = (q @ k.mT * math.sqrt(2) / 8).softmax(dim=-1) @ v
    torch.testing.assert_close(WidthAttend(2)(q, k, v), expected)
    torch.testing.assert_close(WidthAttend(8)(q, k, v), Attend()(q, k, v))


def test_at_the_base_width_both_are_the_same():
    (_, one), (_, other) = build("standard", BASE), build("mup", BASE)
    tokens = batches(1)[0][:, :-1]
    torch.testing.assert_close(one(tokens), other(tokens))
    for rates in (WidthRules(BASE, "standard").groups(one, 0.1), WidthRules(BASE).groups(one, 0.1)):
        assert [group["lr"] for group in rates] == [0.1, 0.1]


@pytest.mark.parametrize("parametrisation", ["standard", "mup"])
def test_initial_values_and_rates_follow_the_table(parametrisation):
    width, m = 128, 8
    rules, model = build(parametrisation, width)
    for matrix in hidden_matrices(model):
        assert matrix.std().item() == pytest.approx(1 / math.sqrt(matrix.shape[1]), rel=0.05)
    head = 1 / math.sqrt(width) / (math.sqrt(m) if parametrisation == "mup" else 1)
    assert model.head.weight.std().item() == pytest.approx(head, rel=0.05)
    assert model.embed.weight.std().item() == pytest.approx(1, rel=0.05)
    matrices, rest = rules.groups(model, 0.1)
    assert matrices["lr"] == pytest.approx(0.1 / m if parametrisation == "mup" else 0.1)
    assert rest["lr"] == 0.1
    assert len(hidden_matrices(model)) == 12
    assert len(matrices["params"]) == 13
    taken = [id(p) for group in (matrices, rest) for p in group["params"]]
    assert sorted(taken) == sorted(id(p) for p in model.parameters())
    backend = model.transformer.blocks[0].self_attention.backend
    assert isinstance(backend, WidthAttend) == (parametrisation == "mup")


def test_a_readout_with_a_multiplier_is_the_same_function():
    """Adam on h W with W small and slow, and on (h V) / m with V = m W at m times the rate."""
    m, generator = 8, torch.Generator().manual_seed(0)
    h = torch.randn(30, 16, generator=generator, dtype=torch.float64)
    y = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    W = torch.randn(16, 3, generator=generator, dtype=torch.float64).requires_grad_()
    V = (m * W.detach()).requires_grad_()
    for parameter, lr, scale in ((W, 1e-2, 1), (V, m * 1e-2, m)):
        optimizer = torch.optim.Adam([parameter], lr=lr, eps=0.0)
        for _ in range(20):
            optimizer.zero_grad()
            (h @ parameter / scale - y).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(V / m, W)


def growth(parametrisation):
    """Of each activation's change after three steps: its exponent in the width, from 32 to 128."""
    found = {}
    for width in (32, 128):
        for seed in range(3):
            rules, model = build(parametrisation, width, seed)
            probe = batches(1, 9)[0][:, :-1]
            changes = coordinate_check(model, language_loss, batches(3, seed), probe, rules=rules, lr=0.01)
            for name, values in changes.items():
                found.setdefault(name, {}).setdefault(width, []).append(values[-1])
    return {name: math.log(sum(by[128]) / sum(by[32])) / math.log(4) for name, by in found.items()}


def test_coordinate_check():
    standard, mup = growth("standard"), growth("mup")
    assert set(mup) == {"stream", "logits", *(f"block {i} {s}" for i in (0, 1) for s in ("attention", "mlp"))}
    assert all(0.6 < standard[name] < 1.2 for name in mup if name != "logits"), standard
    assert all(abs(mup[name]) < 0.2 for name in mup if name != "logits"), mup
    assert abs(mup["logits"]) < 0.3 < standard["logits"]


def test_training_lowers_the_loss_with_each_group_at_its_own_rate():
    rules, model = build("mup", 32)
    batch = batches(1)
    losses = train_by_rules(model, language_loss, batch * 30, rules=rules, lr=0.01, steps=30, warmup=5)
    assert len(losses) == 30
    assert losses[-1] < 0.5 * losses[0]
    assert train_by_rules(model, lambda *_: torch.tensor(math.nan), batch * 3, rules=rules, lr=1.0, steps=3)


def test_activations_leave_no_hooks():
    _, model = build("mup", 16)
    activations(model, batches(1)[0][:, :-1])
    assert not any(module._forward_hooks for module in model.modules())


def test_unknown_parametrisation():
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with pytest.raises(ValueError, match="parametrisation must be one of"):
            WidthRules(16, "ntk")
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_bad_input():
    with pytest.raises(ValueError, match="base_width"):
        WidthRules(0)
    with pytest.raises(ValueError, match="must divide the base width"):
        WidthRules(18).gpt(config(32), VOCAB)
    with pytest.raises(ValueError, match="gain"):
        WidthRules(16).gpt(config(32), VOCAB, gain=0.0)
    rules, model = build("mup", 16)
    with pytest.raises(ValueError, match="lr"):
        rules.groups(model, 0.0)
    with pytest.raises(ValueError, match="tied"):
        rules.groups(GPT(config(16), VOCAB), 0.1)
    with pytest.raises(ValueError, match="base_head"):
        WidthAttend(0)
