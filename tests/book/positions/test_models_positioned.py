"""One model, positions told in six ways, and the loss at each place of a window."""

import cmath
import math

import pytest
import torch
import torch.nn.functional as F

from tformer_book.positions.models.positioned import (
    POSITIONS,
    OffsetAttend,
    loss_by_position,
    overlapping_windows,
    positioned_gpt,
    shared_text,
)
from tformer_lib.core.masks import causal_mask
from tformer_lib.core.positions import LearnedPositions, RelativeBias, Rotary, sinusoidal
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.language import language_loss
from tformer_lib.training import count_parameters

CONFIG = TransformerConfig(d_model=16, n_heads=2, n_blocks=2)


def build(name):
    torch.manual_seed(0)
    return positioned_gpt(name, CONFIG, 11, length=32, longest=40)


@pytest.mark.parametrize("name", POSITIONS)
def test_differs_from_its_siblings_in_positions_only(name):
    extra = {"learned": 40 * 16, "relative": 2 * 32}.get(name, 0)
    model = build(name)
    assert count_parameters(model) == count_parameters(build("none")) + extra
    tokens = torch.randint(11, (3, 40))
    logits = model(tokens)
    assert logits.shape == (3, 40, 11)
    torch.testing.assert_close(model(tokens[:, :7]), logits[:, :7], rtol=1e-4, atol=1e-5)


def test_each_is_what_its_name_says():
    assert isinstance(build("learned").positions, LearnedPositions)
    assert build("rotary").transformer.blocks[0].self_attention.rotary.d_head == 8
    biases = [b.self_attention.backend.score_bias for b in build("relative").transformer.blocks]
    assert isinstance(biases[0], RelativeBias)
    assert biases[0] is biases[1]
    assert biases[0].max_distance == 32
    slopes = build("alibi").transformer.blocks[1].self_attention.backend.score_bias.slopes
    assert slopes.tolist() == [1 / 16, 1 / 256]
    model, tokens = build("sinusoidal"), torch.randint(11, (1, 5))
    expected = math.sqrt(16) * model.embed(tokens) + sinusoidal(5, 16)
    torch.testing.assert_close(model.positions(model.embed(tokens)), expected)


def test_an_unknown_name_is_named():
    with pytest.raises(ValueError, match="rotating"):
        positioned_gpt("rotating", CONFIG, 11, length=32, longest=40)


def test_loss_by_position_is_the_loss_taken_apart():
    model = build("rotary")
    windows = torch.randint(11, (7, 13))
    by_position = loss_by_position(model, windows, batch=3)
    assert by_position.shape == (12,)
    torch.testing.assert_close(by_position.mean(), language_loss(model, windows).detach())
    third = F.cross_entropy(model(windows[:, :-1])[:, 2], windows[:, 3])
    torch.testing.assert_close(by_position[2], third.detach())


def test_overlapping_windows_predict_the_same_tokens_at_many_positions():
    windows = overlapping_windows(torch.arange(1000), 20, stride=5, count=40, places=2)
    assert windows.shape == (40, 21)
    assert (windows.diff(dim=1) == 1).all()
    assert windows[:3, 0].tolist() == [0, 5, 10]
    assert windows[20:22, 0].tolist() == [500, 505]
    assert set(windows[4:20, 1].tolist()) <= set(windows[:, 16].tolist()) | set(windows[:, 1].tolist())


def test_overlapping_windows_must_fit():
    with pytest.raises(ValueError, match="do not fit"):
        overlapping_windows(torch.arange(100), 20, stride=5, count=40, places=2)


def test_shared_text_is_the_same_at_every_position():
    windows = overlapping_windows(torch.arange(1000), 20, stride=5, count=40, places=2)
    keep = shared_text(20, stride=5, count=40, places=2)
    assert keep.shape == (40, 20)
    predicted = [
        sorted(windows[:, 1:][:, 5 * i : 5 * i + 5][keep[:, 5 * i : 5 * i + 5]].tolist()) for i in range(4)
    ]
    assert predicted[0] == predicted[1] == predicted[2] == predicted[3]
    assert len(predicted[0]) == 2 * (20 - 3) * 5
    model = build("none")
    some = torch.randint(11, (40, 21))
    alone = loss_by_position(model, some[keep[:, 7]])
    torch.testing.assert_close(loss_by_position(model, some, keep=keep)[7], alone[7])


def test_without_shared_text_nothing_is_measured():
    with pytest.raises(ValueError, match="share no token"):
        shared_text(20, stride=5, count=6, places=2)
    with pytest.raises(ValueError, match="share no token"):
        shared_text(20, stride=6, count=40)


def scores_one_by_one(q, k, length, clamped):
    """The same scores from complex numbers, pair by pair."""
    n, d = q.shape
    scores = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(i + 1):
            for hand in range(d // 2):
                stop = clamped.get(hand) if isinstance(clamped, dict) else length - 1
                offset = stop if hand in clamped and i - j >= length else i - j
                turn = cmath.exp(1j * offset * 10000.0 ** (-2 * hand / d))
                query = complex(*q[i, 2 * hand : 2 * hand + 2].tolist())
                key = complex(*k[j, 2 * hand : 2 * hand + 2].tolist())
                scores[i, j] += (key.conjugate() * query * turn).real
    return scores / math.sqrt(d)


@pytest.mark.parametrize("clamped", [[], [1], [0, 2], [0, 1, 2], {1: 0.0, 2: 6.5}])
def test_offset_attend_stops_the_clamped_hands(clamped):
    q, k, v = torch.randn(3, 9, 6, dtype=torch.float64).unbind()
    past = causal_mask(9)
    scores = scores_one_by_one(q, k, 4, clamped).masked_fill(~past, -math.inf)
    y = OffsetAttend(4, clamped)(q[None, None], k[None, None], v[None, None], past)
    torch.testing.assert_close(y[0, 0], scores.softmax(dim=-1) @ v)


def test_offset_attend_can_hide_what_is_far_or_sharpen_the_scores():
    q, k, v = torch.randn(3, 9, 6, dtype=torch.float64).unbind()
    turn, places = Rotary(6), torch.arange(9)
    scores = turn(q) @ turn(k).T / math.sqrt(6)
    far = (places[:, None] - places >= 4) | ~causal_mask(9)
    y = OffsetAttend(4, window=True)(q[None, None], k[None, None], v[None, None], causal_mask(9))
    torch.testing.assert_close(y[0, 0], scores.masked_fill(far, -math.inf).softmax(dim=-1) @ v)
    sharper = scores * ((places + 1).clamp(min=4).double().log() / math.log(4))[:, None]
    y = OffsetAttend(4, temperature=True)(q[None, None], k[None, None], v[None, None], causal_mask(9))
    expected = sharper.masked_fill(~causal_mask(9), -math.inf).softmax(dim=-1) @ v
    torch.testing.assert_close(y[0, 0], expected, rtol=1e-5, atol=1e-6)
