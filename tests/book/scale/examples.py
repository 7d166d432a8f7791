"""Every drawing of the chapter once, with small numbers, for the tests that look at all of them."""

from tformer_book.scale.drawings import costs as scale_costs
from tformer_book.scale.drawings import law as scale_law
from tformer_book.scale.drawings import messages as scale_messages
from tformer_book.scale.drawings import parallel as scale_parallel
from tformer_book.scale.drawings import tuning as scale_tuning
from tformer_book.scale.pipeline import pipeline_order, pipeline_times
from tformer_book.scale.timeline import data_parallel_lanes, waiting_lanes


def where_the_bytes_are(**changes):
    names = ("parameters", "gradients", "copy", "averages", "rest")
    sizes = {"a GPT of Chapter 8": (2e6, 2e6, 0, 4e6, 2e7), "7 billion": (14e9, 14e9, 27e9, 54e9, 20e9)}
    models = {model: dict(zip(names, of, strict=True)) for model, of in sizes.items()}
    return scale_costs.where_the_bytes_are(**({"models": models, "memory": 80e9} | changes))


def cut_ways():
    return scale_parallel.cut_ways(4)


def averaged_gradients():
    return scale_parallel.data_parallel(8, "57,856 bytes")


def ring_of_three():
    return scale_parallel.ring_all_reduce([[1, 2, 3], [10, 20, 30], [100, 200, 300]])


def gathered_layer():
    return scale_parallel.sharded("13,120 bytes")


def hidden_halves():
    return scale_parallel.tensor_parallel([1, 2], [[1, 1], [3, -1]], [[2, 1], [-1, 4]], [1, 0])


def pipeline_bubbles():
    schedules = {"GPipe": "gpipe", "1F1B": "1f1b"}
    return scale_parallel.pipeline_schedules(
        {name: pipeline_times(pipeline_order(kind, 3, 4)) for name, kind in schedules.items()}
    )


def keys_that_travel():
    return scale_parallel.ring_attention(4)


def what_hides():
    pieces = [("attention", 0.0059), ("MLP", 0.0079), ("MLP", 0.0158), ("attention", 0.0118)]
    return scale_messages.step_timelines(
        {
            "data parallel, eight machines: a step": (*data_parallel_lanes(0.448, 0.896, 0.944, 4), 1),
            "tensor parallel, one machine: a block": (*waiting_lanes(pieces, 0.00157), 2),
        }
    )


def machines_of_eight():
    return scale_messages.grid_of_gpus(16, 8, "300 GB/s", "25 GB/s")


def coherent_step(**changes):
    x = [0.8, -1.1, 0.3, 1.5, -0.6, -0.9]
    weights = [0.2, 0.3, -0.4, 0.1, -0.3, 0.5]
    step = [0.1, -0.1, 0.1, 0.1, -0.1, -0.1]
    return scale_tuning.coherent_step(**({"x": x, "weights": weights, "step": step} | changes))


def one_budget(**changes):
    runs = [
        ("too small", 11700, 5.35e6, 1.91),
        ("best", 41240, 1.75e6, 1.81),
        ("too large", 151584, 5.1e5, 1.89),
    ]
    return scale_law.one_budget(**({"runs": runs} | changes))


EXAMPLES = (
    where_the_bytes_are,
    cut_ways,
    averaged_gradients,
    ring_of_three,
    gathered_layer,
    hidden_halves,
    pipeline_bubbles,
    keys_that_travel,
    what_hides,
    machines_of_eight,
    coherent_step,
    one_budget,
)
