"""Positions against formulations of their own, written here."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer_lib import MultiHeadAttention, Transformer, TransformerConfig, causal_mask
from tformer_lib.core.attention import Attend, FusedAttend
from tformer_lib.core.positions import (
    ALiBi,
    LearnedPositions,
    RelativeBias,
    Rotary,
    Rotary2D,
    SinusoidalPositions,
    sinusoidal,
)

properties = settings(derandomize=True, deadline=None, max_examples=40)


@pytest.mark.parametrize(("n", "d", "offset"), [(7, 8, 0), (3, 2, 0), (4, 6, 1000)])
def test_sinusoidal_entry_by_entry(n, d, offset):
    table = sinusoidal(n, d, offset=offset, dtype=torch.float64)
    assert table.shape == (n, d)
    for row in range(n):
        for column in range(d):
            wave = math.cos if column % 2 else math.sin
            angle = (row + offset) / 10000 ** (2 * (column // 2) / d)
            assert table[row, column].item() == pytest.approx(wave(angle), abs=1e-10)


def test_sinusoidal_is_float32_unless_told_and_exact_far_out():
    table = sinusoidal(1, 2, offset=10_000_000)
    assert table.dtype == torch.float32
    assert table[0, 0].item() == pytest.approx(math.sin(10_000_000), abs=1e-6)
    assert sinusoidal(0, 4).shape == (0, 4)


def test_sinusoidal_turns_with_the_offset():
    """The rotation property: the row at n + k is one fixed matrix times the row at n."""
    d, k = 8, 5
    table = sinusoidal(20, d, dtype=torch.float64)
    matrix = torch.zeros(d, d)
    for i in range(d // 2):
        angle = k / 10000 ** (2 * i / d)
        c, s = math.cos(angle), math.sin(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[c, s], [-s, c]])
    torch.testing.assert_close(table[:-k] @ matrix.T, table[k:], rtol=0, atol=1e-10)


def test_added_positions_keep_dtype_and_respect_offsets():
    x = torch.randn(2, 6, 8)
    for module in (SinusoidalPositions(8), LearnedPositions(10, 8)):
        whole = module(x)
        torch.testing.assert_close(module(x[:, 4:], offset=4), whole[:, 4:], rtol=0, atol=1e-12)
        assert module.to(torch.bfloat16)(x.bfloat16()).dtype == torch.bfloat16
    assert not list(SinusoidalPositions(8).parameters())


def test_learned_positions_add_their_rows_and_learn():
    module = LearnedPositions(6, 4)
    x = torch.randn(2, 6, 4)
    out = module(x)
    assert torch.equal(out, x + module.table)
    out.sum().backward()
    assert torch.equal(module.table.grad, torch.full((6, 4), 2.0))


def rotary_by_matrices(x, offset=0, base=10000.0):
    """RoFormer's equation 15: for each token a matrix with 2 x 2 rotations along its diagonal."""
    n, d = x.shape[-2:]
    turns = torch.zeros(n, d, d)
    for place in range(n):
        for i in range(d // 2):
            angle = (offset + place) * base ** (-2 * i / d)
            c, s = math.cos(angle), math.sin(angle)
            turns[place, 2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[c, -s], [s, c]])
    return torch.einsum("nij,...nj->...ni", turns, x)


@pytest.mark.parametrize("d_head", [2, 6, 16])
@pytest.mark.parametrize("offset", [0, 3, 5000])
@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_rotary_against_the_papers_matrices(d_head, offset, base, agree):
    x = torch.randn(2, 3, 7, d_head)
    agree(Rotary(d_head, base)(x, offset), rotary_by_matrices(x, offset, base))


def test_rotary_of_views_and_its_gradient(agree):
    """Heads split by a transpose, and a slice that starts at an odd place in memory."""
    x = torch.randn(2, 7, 3, 9)
    for view in (x[..., 1:].transpose(1, 2), x[..., :8].transpose(1, 2)):
        agree(Rotary(8)(view), rotary_by_matrices(view))
    y = torch.randn(2, 5, 6, requires_grad=True)
    assert torch.autograd.gradcheck(Rotary(6), y)


@properties
@given(n=st.integers(0, 60), s=st.integers(0, 60), shift=st.integers(0, 500), seed=st.integers(0, 99))
def test_rotary_scores_depend_on_the_offset_only(n, s, shift, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, 1, 1, 8, generator=generator)
    turn = Rotary(8)
    here = turn(q, offset=n) @ turn(k, offset=s).mT
    there = turn(q, offset=n + shift) @ turn(k, offset=s + shift).mT
    torch.testing.assert_close(here, there, rtol=0, atol=1e-10)
    torch.testing.assert_close(turn(q, offset=n).norm(), q.norm(), rtol=0, atol=1e-12)


def test_rotary_scores_do_depend_on_the_offset():
    q, k = torch.randn(2, 1, 1, 1, 8)
    turn = Rotary(8)
    assert not torch.allclose(turn(q, offset=1) @ k.mT, turn(q, offset=2) @ k.mT)


def test_rotary_layer_is_shift_invariant(agree):
    """A layer whose tokens all stand k places later gives the same output."""

    class Shifted(Rotary):
        def forward(self, x, offset=0):
            return super().forward(x, offset + 11)

    layer = MultiHeadAttention(12, 3, rotary=Rotary(4))
    x = torch.randn(2, 6, 12)
    here = layer(x, mask=causal_mask(6))
    layer.rotary = Shifted(4)
    agree(layer(x, mask=causal_mask(6)), here)
    layer.rotary = None
    assert not torch.allclose(layer(x, mask=causal_mask(6)), here)


def test_rotary_tables_made_while_generating_serve_training():
    """They are kept for the next layer, which may want gradients, another precision or other frequencies."""
    x = torch.randn(1, 2, 37, 6)
    with torch.inference_mode():
        inference = Rotary(6, 77.0)(x, 5).clone()
    y = x.clone().requires_grad_()
    out = Rotary(6, 77.0)(y, 5)
    assert torch.equal(out, inference)
    out.square().sum().backward()  # a turn keeps lengths, so that this is the gradient of |y|^2
    torch.testing.assert_close(y.grad, 2 * x)
    assert Rotary(6, 77.0)(x.float(), 5).dtype == torch.float32
    assert not torch.allclose(Rotary(6, 78.0)(x, 5), inference)
    assert not torch.allclose(Rotary(6, 77.0)(x, 6), inference)


def test_rotary_in_pieces_is_rotary_at_once(agree):
    turn, x = Rotary(8), torch.randn(2, 3, 12, 8)
    agree(torch.cat((turn(x[..., :5, :]), turn(x[..., 5:6, :], 5), turn(x[..., 6:, :], 6)), dim=-2), turn(x))


def test_rotary_with_rescaled_frequencies(agree):
    """Frequencies divided by four are positions divided by four; other maps are other tables."""
    x = torch.randn(2, 3, 9, 8)
    slowed = Rotary(8, rescale=lambda w: w / 4)
    agree(slowed(x)[..., ::4, :], Rotary(8)(x[..., ::4, :]))
    agree(Rotary(8, rescale=lambda w: w)(x, 3), Rotary(8)(x, 3))
    halved = Rotary(8, rescale=lambda w: w.where(w > 0.5, 0.0))  # only the fastest pair turns
    assert torch.equal(halved(x)[..., 2:], x[..., 2:])
    agree(halved(x)[..., :2], Rotary(8)(x)[..., :2])


@pytest.mark.parametrize(("d_head", "grid", "before"), [(4, (3, 5), 1), (8, (4, 2), 0), (12, (1, 6), 3)])
@pytest.mark.parametrize("base", [100.0, 7.0])
def test_rotary_2d_is_the_papers_rotation_by_the_row_and_by_the_column(d_head, grid, before, base, agree):
    """Token by token: half of the features by the matrices of the row, half by those of the column."""
    (rows, columns), half = grid, d_head // 2
    x = torch.randn(2, 3, before + rows * columns, d_head)
    expected = x.clone()
    for n in range(rows * columns):
        for place, part in ((n // columns, slice(half)), (n % columns, slice(half, None))):
            token = x[..., before + n : before + n + 1, part]
            expected[..., before + n : before + n + 1, part] = rotary_by_matrices(token, place, base)
    found = Rotary2D(d_head, grid, base=base, before=before)(x)
    agree(found, expected)
    assert torch.equal(found[..., :before, :], x[..., :before, :])


def plane_scores(q, k, grid, **choices):
    """The scores of one query and one key put at all places of a grid: (tokens, tokens)."""
    turn = Rotary2D(q.shape[-1], grid, **choices)
    n = turn.before + grid[0] * grid[1]
    return turn(q.expand(n, -1)) @ turn(k.expand(n, -1)).mT


@pytest.mark.parametrize("centred", [False, True])
@properties
@given(r=st.integers(0, 5), c=st.integers(0, 4), down=st.integers(0, 9), right=st.integers(0, 9))
def test_rotary_2d_scores_depend_on_the_offsets_of_row_and_column_only(centred, r, c, down, right):
    q, k = torch.randn(2, 1, 8)
    here = plane_scores(q, k, (6, 5), before=0, centred=centred).reshape(6, 5, 6, 5)
    there = plane_scores(q, k, (6 + down, 5 + right), before=0, centred=centred)
    there = there.reshape(6 + down, 5 + right, 6 + down, 5 + right)[down:, right:, down:, right:]
    torch.testing.assert_close(here[r, c], there[r, c], rtol=0, atol=1e-10)


def test_rotary_2d_scores_do_depend_on_the_row_and_on_the_column():
    scores = plane_scores(*torch.randn(2, 1, 8), (2, 2), before=0)[0]
    assert len({round(score, 6) for score in scores.tolist()}) == 4


def test_the_class_token_stands_at_the_corner_or_in_the_middle(agree):
    """It is never turned; centred, it scores a patch by how far that is from the middle."""
    q, k = torch.randn(2, 1, 8)

    def seen(side, centred):
        return plane_scores(q, k, (side, side), centred=centred)[0, 1:].reshape(side, side)

    agree(seen(4, False), seen(6, False)[:4, :4])
    agree(seen(4, True), seen(6, True)[1:5, 1:5])
    assert not torch.allclose(seen(4, False), seen(4, True))
    agree(*(plane_scores(q, k, (3, 3), centred=centred)[1:, 1:] for centred in (False, True)))


def test_rotary_2d_in_a_layer_and_its_gradient():
    x = torch.randn(2, 7, 12, requires_grad=True)
    assert torch.autograd.gradcheck(Rotary2D(12, (2, 3)), x)
    layer = MultiHeadAttention(12, 3, rotary=Rotary2D(4, (2, 3)))
    before = layer(x)
    layer.rotary = None
    assert not torch.allclose(layer(x), before)
    assert Rotary2D(12, (2, 3))(x.float()).dtype == torch.float32


def test_rotary_2d_says_what_does_not_fit():
    with pytest.raises(ValueError, match="4 must divide d_head=6"):
        Rotary2D(6, (2, 2))
    with pytest.raises(ValueError, match="the number of rows"):
        Rotary2D(8, (0, 2))
    turn = Rotary2D(8, (2, 2))
    with pytest.raises(ValueError, match="a grid of 2 x 2 patches behind 1 other tokens is 5 tokens"):
        turn(torch.randn(1, 1, 4, 8))
    with pytest.raises(ValueError, match="from place 1"):
        turn(torch.randn(1, 1, 5, 8), 1)
    with pytest.raises(ValueError, match="heads of width 8"):
        turn(torch.randn(1, 1, 5, 12))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rotary_in_half_precision_rounds_once(dtype):
    x = torch.randn(2, 3, 300, 16).to(dtype)
    turned = Rotary(16)(x)
    assert turned.dtype == dtype
    exact = rotary_by_matrices(x.double())
    torch.testing.assert_close(turned.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-5)


def test_alibi_slopes_of_the_paper():
    assert ALiBi(8).slopes.tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    sixteen = ALiBi(16).slopes
    torch.testing.assert_close(sixteen[0], torch.tensor(2**-0.5))
    torch.testing.assert_close(sixteen[1:] / sixteen[:-1], torch.full((15,), 2**-0.5))
    assert "slopes" not in ALiBi(8).state_dict()


def test_alibi_bias_entry_by_entry():
    bias = ALiBi(2)(3, 5)  # queries stand at 2, 3, 4
    assert bias.shape == (2, 3, 5)
    for h, slope in enumerate((1 / 16, 1 / 256)):
        for n, place in enumerate((2, 3, 4)):
            for s in range(5):
                assert bias[h, n, s].item() == -slope * abs(place - s)
    assert ALiBi(2)(0, 4).shape == (2, 0, 4)


def test_alibi_of_late_queries_is_the_end_of_the_whole(agree):
    agree(ALiBi(4)(3, 9), ALiBi(4)(9, 9)[:, -3:])


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_alibi_in_a_layer(backend, dtype):
    bias = ALiBi(4)
    q, k, v = (torch.randn(2, 4, 6, 8) for _ in range(3))
    mask = causal_mask(6)
    scores = q @ k.mT / math.sqrt(8) + bias(6, 6)
    expected = scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
    out = backend(score_bias=bias)(q.to(dtype), k.to(dtype), v.to(dtype), mask)
    assert out.dtype == dtype
    tolerance = 1e-10 if dtype == torch.float64 else 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
def test_a_whole_stack_with_alibi(backend):
    config = TransformerConfig(d_model=12, n_heads=4, n_blocks=2)
    model = Transformer(config, make_backend=lambda: backend(score_bias=ALiBi(4)))
    x = torch.randn(2, 5, 12)
    assert not torch.allclose(model(x), model(x.flip(1)).flip(1)[:, [1, 0, 2, 3, 4]])
    assert model(x, mask=causal_mask(5)).shape == x.shape


def published_bucket(offset, n_buckets, max_distance, causal):
    """Raffel et al. (2020) in whole numbers: (K - E) ln(d/E) / ln(M/E) >= j iff d^(K-E) >= E^(K-E-j) M^j."""
    distance, first = (max(offset, 0) if causal else abs(offset)), 0
    if not causal:
        n_buckets //= 2
        first = n_buckets if offset < 0 else 0
    exact = n_buckets // 2
    if distance < exact:
        return first + distance
    steps = n_buckets - exact
    j = 0
    while j + 1 < steps and distance**steps >= exact ** (steps - j - 1) * max_distance ** (j + 1):
        j += 1
    return first + exact + j


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("n_buckets", "max_distance"), [(32, 128), (32, 64), (32, 1000), (8, 32), (8, 8), (16, 100), (4, 16)]
)
def test_buckets_are_the_published_ones(n_buckets, max_distance, causal):
    bias = RelativeBias(2, n_buckets=n_buckets, max_distance=max_distance, causal=causal)
    offsets = torch.arange(-3 * max_distance, 3 * max_distance + 1)
    expected = [published_bucket(o, n_buckets, max_distance, causal) for o in offsets.tolist()]
    assert bias.bucket(offsets).tolist() == expected
    assert bias.bucket(offsets[None, :, None]).flatten().tolist() == expected


def test_t5s_own_buckets():
    """Thirty-two buckets, a distance of 128: sixteen offsets alone, then ranges that grow by 8^(1/16)."""
    bias = RelativeBias(1)
    first = {b: d for d, b in reversed(list(enumerate(bias.bucket(torch.arange(1000)).tolist())))}
    assert [first[b] for b in range(17)] == list(range(17))
    assert [first[b] for b in range(17, 32)] == [math.ceil(16 * 8 ** (k / 16)) for k in range(1, 16)]


@pytest.mark.parametrize("causal", [True, False])
def test_relative_bias_entry_by_entry(causal):
    bias = RelativeBias(3, n_buckets=8, max_distance=16, causal=causal)
    torch.nn.init.normal_(bias.table)
    whole = bias(3, 20)  # queries stand at 17, 18, 19
    assert whole.shape == (3, 3, 20)
    for n, place in enumerate((17, 18, 19)):
        for s in range(20):
            assert torch.equal(whole[:, n, s], bias.table[:, published_bucket(place - s, 8, 16, causal)])
    assert torch.equal(bias(20, 20)[:, -3:], whole)
    assert bias(0, 4).shape == (3, 0, 4)


@pytest.mark.parametrize("backend", [Attend, FusedAttend])
def test_relative_bias_in_a_layer_learns(backend, agree):
    """Shared by all blocks; nothing at first, and every bucket in use gets a gradient."""
    config = TransformerConfig(d_model=12, n_heads=2, n_blocks=2)
    bias = RelativeBias(2, n_buckets=8, max_distance=16)
    model = Transformer(config, make_backend=lambda: backend(score_bias=bias))
    assert sum(p is bias.table for p in model.parameters()) == 1
    x, mask = torch.randn(2, 5, 12), causal_mask(5)
    plain = Transformer(config, make_backend=backend)
    plain.load_state_dict(model.state_dict(), strict=False)
    agree(model(x, mask=mask), plain(x, mask=mask))
    model(x, mask=mask).square().sum().backward()
    assert (bias.table.grad[:, :5] != 0).all()  # offsets 0 to 4; buckets 0 to 3 alone, 4 from 4 on
    assert (bias.table.grad[:, 5:] == 0).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_heads": 0}, ["n_heads", "0"]),
        ({"n_heads": 2, "n_buckets": 7}, ["n_buckets=7", "causal=True"]),
        ({"n_heads": 2, "n_buckets": 6, "causal": False}, ["n_buckets=6", "causal=False"]),
        ({"n_heads": 2, "n_buckets": 32, "max_distance": 16}, ["max_distance", "16"]),
    ],
)
def test_relative_bias_says_what_is_wrong(arguments, words):
    with pytest.raises(ValueError, match=".*".join(words)):
        RelativeBias(**arguments)


def test_relative_bias_wants_no_more_queries_than_keys():
    with pytest.raises(ValueError, match="5 queries and 3 keys"):
        RelativeBias(2)(5, 3)
