"""What a step costs on a grid of GPUs, beside the formulas of a single axis."""

from dataclasses import replace

import pytest

from tformer_book.scale import costs, mesh
from tformer_book.scale.published_runs import RUNS
from tformer_lib import TransformerConfig
from tformer_lib.scale import traffic

SEVEN, SEVENTY = RUNS["Llama 2 7B"].shape, RUNS["Llama 2 70B"].shape
EIGHT = mesh.Machines(gpus=8, speed=1e14, inside=3e11, between=2.5e10)
MANY = replace(EIGHT, gpus=128)


@pytest.mark.parametrize(("inside", "between"), [(1, 4), (4, 1), (2, 4), (8, 16)])
def test_two_parts_send_together_what_a_ring_sends(inside, between):
    assert sum(mesh.two_part_bytes(1e6, inside, between)) == pytest.approx(
        traffic.all_gather_bytes(1e6, inside * between)
    )


def test_places_of_an_axis():
    assert mesh.places(8, 1, 8) == (8, 1)
    assert mesh.places(16, 8, 8) == (1, 16)
    assert mesh.places(32, 4, 8) == (2, 16)
    assert mesh.places(16, 1, 8) == (8, 2)
    assert mesh.places(2, 1, 8) == (2, 1)


def test_one_axis_costs_what_the_formulas_of_one_axis_say():
    parts = mesh.grid_memory(SEVEN, 8, 4096, tensor=1, shards=8, sequence=False)
    known = costs.memory_per_gpu(
        SEVEN, 1, 4096, gpus=8, sharding="zero3", kernel="flash", precision="bfloat16"
    )
    assert sum(parts.values()) == pytest.approx(sum(known.values()), rel=1e-5)  # the rows' numbers
    seconds = mesh.grid_seconds(SEVEN, 8, 4096, EIGHT, tensor=1)
    assert seconds["tensor"] == 0
    assert seconds["shards"] == traffic.sharded_bytes(costs.parameters(SEVEN), 8, 2) / 3e11
    assert seconds["work"] == costs.step_flops(SEVEN, 1, 4096) / 1e14
    alone = mesh.grid_seconds(SEVEN, 8, 4096, EIGHT, tensor=8)
    sent = traffic.tensor_parallel_bytes(8 * 4096 * 4096, 2 * 32, 8, 2)
    assert alone["tensor"] == pytest.approx(sent / 3e11)
    assert alone["shards"] == 0


def test_the_whole_of_a_block_is_what_its_norms_keep():
    shape = costs.GPTShape(config=TransformerConfig(d_model=16, n_heads=4, n_blocks=1), vocab_size=8)
    assert mesh.whole_in_tensor_parallel(shape, 5) == 2 * 5 * (4 * 16 + 4)
    two = mesh.grid_memory(SEVENTY, 32, 4096, tensor=8, shards=16, sequence=False)
    less = mesh.grid_memory(SEVENTY, 32, 4096, tensor=8, shards=16, sequence=True)
    apart = two["activations"] - less["activations"]
    assert apart == pytest.approx(2 * 80 * mesh.whole_in_tensor_parallel(SEVENTY, 4096) * 7 / 8)


def test_the_order_of_the_axes_matters():
    first, last = (
        mesh.grid_seconds(SEVENTY, 32, 4096, MANY, tensor=8, tensor_first=order) for order in (True, False)
    )
    assert last["tensor"] == pytest.approx(12 * first["tensor"])  # the two links' ratio
    assert mesh.step_seconds(first) < mesh.step_seconds(last)


def test_bad_input():
    with pytest.raises(ValueError, match="do not fill machines of 8"):
        replace(EIGHT, gpus=12)
    with pytest.raises(ValueError, match="32 rows cannot be shared by 128 groups"):
        mesh.grid_seconds(SEVENTY, 32, 4096, MANY, tensor=1)
    with pytest.raises(ValueError, match="groups of 3"):
        mesh.grid_seconds(SEVENTY, 32, 4096, MANY, tensor=3)
    with pytest.raises(ValueError, match="do not fit"):
        mesh.places(3, 1, 8)
