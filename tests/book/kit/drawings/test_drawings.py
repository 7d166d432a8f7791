"""All drawings: the same in every run, described, with their numbers in them, and files equal to the code."""

import importlib
import inspect
import itertools
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import draw_pictures
import lxml.etree
import pytest
import torch
from chapters import chapters

from tests.book.kit.drawings import examples
from tests.book.kit.drawings.examples import EXAMPLES
from tformer_book.kit import plot_style as style
from tformer_book.kit.drawings.drawing import Drawing
from tformer_book.kit.drawings.lettering import LEAST, fitting, number, width_of
from tformer_book.kit.drawings.primitives import Scene
from tformer_book.kit.drawings.roles import KEY, QUERY, ROLES, STREAM, VALUE, style_variables
from tformer_book.positions import drawings as positions
from tformer_book.sequences import drawings as sequences

ROOT = Path(__file__).parents[4]
SVG = "{http://www.w3.org/2000/svg}"


def layouts(drawing):
    """The SVG elements of its HTML, parsed."""
    found = re.findall(r"<svg.*?</svg>", drawing.to_html(), re.DOTALL)
    return [lxml.etree.fromstring(svg) for svg in found]


def words(svg):
    return ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.__name__)
def test_a_drawing_says_what_it_shows(example):
    drawing = example()
    bundle = drawing._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert drawing.title in bundle["text/plain"]
    assert drawing.description in bundle["text/plain"]
    for svg in (*layouts(drawing), lxml.etree.fromstring(bundle["image/svg+xml"])):
        assert svg.get("role") == "img"
        for reference, tag, said in (
            ("aria-labelledby", "title", drawing.title),
            ("aria-describedby", "desc", drawing.description),
        ):
            (element,) = [e for e in svg.iter() if e.get("id") == svg.get(reference)]
            assert (element.tag, element.text) == (SVG + tag, said)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.__name__)
def test_two_layouts_say_the_same(example):
    """Nothing is left out on a phone; a label may be set on more lines, and a matrix stand once less."""
    wide, *narrow = (set(" ".join(words(svg)).replace(",", "").split()) for svg in layouts(example()))
    assert narrow in ([], [wide])  # a small drawing has one layout for both


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.__name__)
def test_ids_are_a_drawings_own(example):
    drawing = example()
    ids = [id for svg in layouts(drawing) for id in svg.xpath("//@id")]
    assert len(ids) == len(set(ids))
    assert all(id.startswith(drawing.name) for id in ids)
    named = {
        name for svg in layouts(drawing) for name in re.findall(r"url\(#(.*?)\)", str(svg.xpath("//@fill")))
    }
    assert named <= set(ids)


def test_drawings_do_not_share_a_name():
    names = [example().name for example in EXAMPLES]
    assert len(set(names)) == len(names)


def test_a_drawing_is_the_same_in_another_process():
    command = (
        "import json; from tests.book.kit.drawings.examples import EXAMPLES;"
        "print(json.dumps([e()._repr_mimebundle_() for e in EXAMPLES]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == [example()._repr_mimebundle_() for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.__name__)
def test_the_file_for_slides_needs_no_page(example):
    svg = example().to_svg()
    assert "var(" not in svg
    assert "<style" not in svg
    assert 'style="background:#fff;color:#' in svg


def test_tensors_and_lists_draw_the_same():
    tensors = examples.soft_lookup(
        scores=torch.tensor(examples.SCORES, dtype=torch.float64),
        weights=torch.tensor(examples.WEIGHTS, dtype=torch.float64),
    )
    assert tensors.to_html() == examples.soft_lookup().to_html()


def test_a_lookup_shows_its_numbers():
    for svg in layouts(examples.soft_lookup()):
        shown = words(svg)
        for each in ("10 h", "18 h", "−3.56", "−14.22", "0.64", "0.33", "8°", "13.6°", "softmax"):
            assert each in shown


def test_bars_and_lines_are_as_large_as_the_weights():
    (wide, _) = layouts(examples.soft_lookup(weights=[0.5, 0.25, 0.25, 0.0, 0.0]))
    bars = [r for r in wide.iter(f"{SVG}rect") if "weights" in r.get("fill")]
    assert [float(bar.get("height")) for bar in bars] == [50, 25, 25, 0, 0]
    lines = [p for p in wide.iter(f"{SVG}path") if "weights" in p.get("stroke")]
    assert [float(line.get("stroke-width")) for line in lines] == [6, 3.5, 3.5, 1, 1]


def full_cells(svg, role):
    """The words in boxes that are filled with a role's colour, from left to right, line by line."""
    found = []
    for cell in svg.iter(f"{SVG}g"):
        box = cell.find(f"{SVG}rect")
        if box is not None and box.get("fill") == role.fill and box.get("fill-opacity") is None:
            found.append((float(box.get("y")), float(box.get("x")), words(cell)))
    return [word for _, _, line in sorted(found) for word in line]


def test_one_query_is_in_colour_all_the_way():
    for svg in layouts(examples.attention_matrices(column=2)):
        assert full_cells(svg, QUERY) == ["0.00", "0.00", "3.60"]
        by_name = {role.name: full_cells(svg, role) for role in ROLES}
        assert by_name["key"] == []
        scores, weights = ["0.00", "0.00", "3.60", "0.00"], ["1/11", "1/11", "8/11", "1/11"]
        assert by_name["weights"] == scores + weights
        assert by_name["value"] == ["0.55", "0.82", "4.36"]


def left_of(svg, cells):
    """Where the boxes with these words begin, across."""
    boxes = {words(g)[0]: g.find(f"{SVG}rect") for g in svg.iter(f"{SVG}g") if words(g)}
    return {float(boxes[cell].get("x")) for cell in cells}


def test_the_weights_stand_straight_under_the_scores():
    Z = [["z0", "z1"], ["z2", "z3"], ["z4", "z5"]]
    A = [["a0", "a1"], ["a2", "a3"], ["a4", "a5"]]
    changes = {"Q": [[1, 0]], "K": [[1, 2, 3]], "V": [[1, 0, 1], [0, 1, 0]], "Y": [["y0", "y1"]] * 2}
    wide, narrow = layouts(examples.attention_matrices(Z=Z, A=A, **changes))
    for svg, column in itertools.product((wide, narrow), (0, 1)):
        cells = [f"{letter}{row + column}" for letter in "za" for row in (0, 2, 4)]
        assert len(left_of(svg, cells)) == 1
        (arrow,) = [t for t in words(svg) if "softmax" in t]
        assert arrow.startswith("÷ √Dh")
    assert len(left_of(narrow, ["z1", "a1", "y1"])) == 1


def test_writes_go_to_the_nearest_right_state():
    words = str(examples.writes_in_the_plane())
    for found in (
        "(2, 0), (4.28, 3.04), (7, 3.04)",
        "then reads 6.63",
        "at (3.14, 1.52)",
        "to (5, 4)",
        "reads 6.20",
    ):
        assert found in words


def test_long_numbers_are_set_one_above_the_other():
    wide, narrow = layouts(examples.negative_matrices())
    assert float(narrow.get("height")) > 2 * float(wide.get("height"))
    assert "−3.60" in words(narrow)


def test_text_and_code_have_the_same_query_in_colour():
    (wide, _) = layouts(examples.columns_and_rows(query=1))
    assert full_cells(wide, QUERY) == ["Hund", "Hund"]
    weights = next(role for role in ROLES if role.name == "weights")
    assert sorted(full_cells(wide, weights)) == sorted(2 * ["0.10", "0.80", "0.10"])


def test_the_mask_after_the_softmax_loses_weight():
    (wide, _) = layouts(examples.mask_before_softmax())
    assert words(wide).count("−∞") == 2
    sums = [word for word in words(wide) if word.startswith("sum")]
    assert sums == ["sum 1.00", "sum 0.52"]
    hatched = [g for g in wide.iter(f"{SVG}g") if any("url(" in r.get("fill", "") for r in g)]
    assert [words(cell)[0] for cell in hatched] == ["−∞", "−∞", "0.00", "0.00", "0.00", "0.00"]


def test_what_is_not_yet_written_is_not_shown():
    for svg in layouts(examples.decoder_looks_back(step=1)):
        assert words(svg).count("schwarze") == 2
        assert "Katze" not in words(svg)


def test_a_mask_hatches_what_may_not_be_read():
    for svg in layouts(examples.masks()):
        hatched = [r for r in svg.iter(f"{SVG}rect") if "url(" in r.get("fill", "")]
        assert len(hatched) == 4 * 3 / 2 + 4 * 2 + 1  # later words, padding, and the legend's
        assert words(svg).count("[pad]") == 2 + 2  # keys and queries
        assert full_cells(svg, QUERY) == ["sat"]


def test_a_mask_is_told_row_by_row_where_rows_differ():
    described = examples.masks().description
    assert "Causal mask: the to the; cat to the, cat; sat to the, cat, sat;" in described
    assert "Padding mask, sit down [pad] [pad]: each query may attend to sit, down." in described
    closed = {"Both": (["a", "b"], [[False, False], [True, False]])}
    assert "a to nothing; b to a." in examples.masks(panels=closed, chosen=None).description


def test_a_square_of_booleans_may_say_something_else_than_a_mask():
    panels = {"Both": (["a", "b"], [[True, False], [True, True]]), "One": (["a"], [[True]])}
    drawing = examples.masks(
        panels=panels, chosen=None, sides=("output", "input"), meaning=("depends", "does not")
    )
    assert "a row for each output and a column for each input" in drawing.description
    assert "One, a: each row is True at a." in drawing.description
    for svg in layouts(drawing):
        assert {"outputs", "inputs", "True: depends", "False: does not"} <= set(words(svg))


def test_the_letter_asked_is_in_colour_with_its_digit():
    for svg in layouts(examples.letter_memory(asked="t")):
        by_name = {role.name: full_cells(svg, role) for role in ROLES}
        assert by_name["query"] == ["t", "q"]
        assert by_name["key"] == ["t", "k5"]
        assert by_name["value"] == ["v5", "4", "y", "2"]
        bars = [float(r.get("width")) for r in svg.iter(f"{SVG}rect") if "weights" in r.get("fill")]
        shares = torch.tensor(bars) - 1
        expected = torch.tensor([0.01, 0.95, 0.02, 0, 0.01, 0.01]) / 0.95
        torch.testing.assert_close(shares / shares.max(), expected, atol=0.01, rtol=0)
        assert [word for word in words(svg) if word.startswith("W")] == ["Wq", "Wk", "Wv"]


def test_what_is_guessed_is_what_is_read_moved_by_one():
    for svg in layouts(examples.shifted_guesses()):
        assert full_cells(svg, QUERY) == ["h", "e", "␣", "c", "a", "t"]
        bars = [r for r in svg.iter(f"{SVG}rect") if r.get("fill") == QUERY.fill and r.get("rx") is None]
        bits = [-math.log2(p) for p in (0.9, 0.8, 0.5, 0.02, 0.4, 0.25)]
        assert [float(bar.get("height")) for bar in bars] == pytest.approx(
            [56 * b / max(bits) for b in bits], abs=0.1
        )
    assert "All together: 10.4 bits." in examples.shifted_guesses().description


def test_merges_join_from_left_to_right_and_only_the_new_token_is_in_colour():
    assert sequences.merged(list("aaab"), ("a", "a")) == (["aa", "a", "b"], [0])
    for svg in layouts(examples.merge_rows()):
        assert sorted(full_cells(svg, KEY)) == sorted(2 * ["ra", "in", "rain", "train", "trains"])
    assert "strains: s · t · r · a · i · n · s;" in examples.merge_rows().description


def test_the_picked_column_is_in_full_colour_in_all_three_matrices():
    for svg in layouts(examples.picked_columns(column=1)):
        by_name = {role.name: full_cells(svg, role) for role in ROLES}
        assert by_name["key"] == by_name["value"] == ["−1", "1"]
        assert by_name["query"] == ["0", "0", "1"]


def test_the_new_state_is_the_gate_s_mixture():
    for svg in layouts(examples.gated_state()):
        assert full_cells(svg, QUERY) == ["0.90", "0.20"]


def test_a_window_is_said_to_reach_or_not():
    assert "A window of 5 does not reach it." in examples.ways_to_the_past().description
    assert "A window of 9 reaches it." in examples.ways_to_the_past(window=9).description


def test_what_the_tasks_want_is_what_was_read_before():
    for svg in layouts(examples.two_tasks()):
        assert sorted(full_cells(svg, QUERY)) == ["a", "b", "b", "d"]  # recall's three, and the first
        assert full_cells(svg, KEY) == ["a", "b"]  # the sources of the last answers
    assert "after the first 2: b d a." in examples.two_tasks().description


def test_only_the_entries_that_share_a_mean_are_tinted():
    for svg in layouts(examples.norm_axes()):
        tinted = [r for r in svg.iter(f"{SVG}rect") if r.get("fill") == VALUE.fill]
        assert len(tinted) == 4 + 6  # features of a token; tokens of a batch
        assert sum(r.get("fill-opacity") is None for r in tinted) == 2  # the marked one


def test_tokens_with_one_direction_land_on_one_point():
    said = examples.normed_in_space().description
    assert said.count("(−1.22, 0.00, 1.22)") == 3
    assert said.count("(−0.71, −0.71, 1.41)") == 1
    for svg in layouts(examples.normed_in_space()):
        full = [r for r in svg.iter(f"{SVG}rect") if r.get("fill") == VALUE.fill]
        assert len(full) == 2


def test_a_norm_on_the_stream_stands_on_the_thick_line():
    for svg in layouts(examples.placements()):
        assert words(svg).count("N") == 2 + 2 + 2 + 2 + 2 + 1  # five kinds, and the legend's
        assert words(svg).count("N′") == 2
        assert words(svg).count("1+v") == 2 + 2 + 3  # after each sum with a norm on the stream, or the first
        assert words(svg).count("1+2v") == 3


def test_targets_are_the_tokens_moved_by_one_under_the_shapes():
    for svg in layouts(examples.ids_to_targets()):
        assert full_cells(svg, QUERY) == ["cat", "sat", "on", "the", "mat"]
        assert {"ids: N = 5", "stream: D × N = 64 × 5", "logits: vocab × N = 80 × 5"} <= set(words(svg))


def test_three_machines_differ_in_what_is_hatched():
    for svg in layouts(examples.machine_masks()):
        hatched = [r for r in svg.iter(f"{SVG}rect") if "url(" in r.get("fill", "")]
        assert len(hatched) == 0 + 6 + (4 + 1) + 1  # the last is the legend's
        tinted = [r for r in svg.iter(f"{SVG}rect") if r.get("fill") == VALUE.fill]
        assert len(tinted) == 2 * 2 + 1


def test_only_cross_attention_and_its_memory_are_in_full_colour():
    for svg in layouts(examples.encoder_decoder()):
        assert sorted(full_cells(svg, VALUE)) == ["cross-attention", "memory: D × S"]


def test_bars_of_the_stream_are_as_high_as_its_size():
    for svg in layouts(examples.stream_sizes()):
        bars = [float(r.get("height")) for r in svg.iter(f"{SVG}rect") if "stream" in r.get("fill", "")]
        assert bars[:17] == pytest.approx([76 * (1 + 0.25 * i) / 5 for i in range(17)], abs=0.1)
        assert [w for w in words(svg) if re.fullmatch(r"[\d.]+", w)] == ["1.0", "5.0", "1.0", "1.3"]


def scene_size(scene):
    return scene.width, scene.height


def trembling(value, rng):
    """The same structure, each float in it changed in its last digits, as another machine might."""
    if isinstance(value, dict):
        return {name: trembling(one, rng) for name, one in value.items()}
    if isinstance(value, list | tuple):
        moved = [trembling(one, rng) for one in value]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    return value * (1 + rng.uniform(-1e-6, 1e-6)) if isinstance(value, float) else value


@pytest.mark.parametrize("seed", range(5))
def test_the_last_digits_of_measured_sizes_move_nothing(seed):
    """Neither a word nor a line, nor the border, which was once as high as the sum of the tallest bars."""
    rng = random.Random(seed)
    sizes = {"a": [1.0 + 0.0931 * i for i in range(17)], "b": [0.0711 + 0.0612 * i for i in range(17)]}
    drawn = examples.stream_sizes(starts=sizes)._repr_mimebundle_()
    assert examples.stream_sizes(starts=trembling(sizes, rng))._repr_mimebundle_() == drawn
    swap = {"1 block": [0.96, 1.31, 0.0, 0.0], "2 blocks": [0.34, 1.14, 0.24, 0.13]}
    drawn = [str(positions.what_changed("abcd", [1, 0, 2, 3], one)) for one in (swap, trembling(swap, rng))]
    assert drawn[0] == drawn[1]


AT_A_LIMIT = {  # leaves what can be drawn when it trembles
    "state_or_triangle": "does not fit",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.__name__)
def test_the_last_digits_of_what_is_drawn_do_not_move_the_border(example, monkeypatch):
    """A width or a height is written whole into the page: what is measured is rounded before."""
    border = [scene_size(scene) for scene in example().scenes]
    rng, drawing = random.Random(0), []

    def unsure(function):
        def called(*args, **kwargs):
            if drawing:  # a drawing that is made by another one
                return function(*args, **kwargs)
            drawing.append(function)
            return function(*trembling(args, rng), **trembling(kwargs, rng))

        return called

    named = vars(sys.modules[example.__module__]).values()
    for module in (one for one in named if inspect.ismodule(one) and ".drawings" in one.__name__):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("_") and function.__module__ == module.__name__:
                monkeypatch.setattr(module, name, unsure(function))
    if example.__name__ in AT_A_LIMIT:
        with pytest.raises(ValueError, match=AT_A_LIMIT[example.__name__]):
            example()
        return
    again = example()
    assert drawing, "the example calls no function of a module of drawings"
    assert [scene_size(scene) for scene in again.scenes] == border


def pushes(svg):
    """How far up the arrow under each name goes, from left to right; text and arrows are in line."""
    found = {}
    for head in svg.iter(f"{SVG}path"):
        corners = [float(x) for x in re.findall(r"-?[\d.]+", head.get("d"))]
        if head.get("fill") == "currentColor" and head.get("fill-opacity") == "0.8":
            found[corners[0]] = corners[1]
    lines = [[float(x) for x in re.findall(r"-?[\d.]+", p.get("d"))] for p in svg.iter(f"{SVG}path")]
    level = max(line[1] for line in lines if len(line) == 4 and line[1] == line[3])
    middles = [float(t.get("x")) for t in svg.iter(f"{SVG}text") if "".join(t.itertext()) in SHARES]
    return [round(level - found[x], 1) for x in middles]


SHARES = ("0.40", "0.10", "0.20", "0.30")


def test_a_push_is_the_weight_times_the_way_beyond_the_line():
    values = torch.tensor([[3.0, 1], [-1, 4], [-4, -1], [0.0, -2]], dtype=torch.float64)
    weights, g = torch.tensor([0.4, 0.1, 0.2, 0.3]), torch.tensor([-2.0, 0.5], dtype=torch.float64)
    scores = weights.double().log().requires_grad_()
    (scores.softmax(dim=0) @ values @ g).backward()
    drawing = examples.pushed_scores(values=values, weights=weights, gradient=g)
    for svg in layouts(drawing):
        drawn = torch.tensor(pushes(svg), dtype=torch.float64)
        torch.testing.assert_close(drawn, -52 * scores.grad / scores.grad.abs().max(), atol=0.2, rtol=0)
        assert sorted(full_cells(svg, VALUE)) == ["v1", "v1", "v4", "v4"]  # in the plane and beside it
    assert "pushed up: v1, v4." in drawing.description
    assert "down: v2, v3." in drawing.description


def test_the_line_is_at_a_right_angle_to_the_gradient():
    for svg in layouts(examples.pushed_scores(gradient=[0.0, -1.0])):
        lines = [p for p in svg.iter(f"{SVG}path") if p.get("stroke-width") == "2"]
        heights = [float(x) for p in lines for x in re.findall(r"-?[\d.]+", p.get("d"))[1::2]]
        assert len(heights) == 4
        assert len(set(heights)) == 1
        assert set(full_cells(svg, VALUE)) == {"v1", "v2"}


def test_a_value_on_the_line_is_not_pushed():
    drawing = examples.pushed_scores(
        values=[[0.0, 0], [4, 0], [2, 3], [2, -3]], weights=[0.25] * 4, gradient=[1, 0], names="abcd"
    )
    assert "pushed up: a." in drawing.description
    assert "down: b." in drawing.description


def test_a_query_s_forbidden_keys_are_hatched():
    for svg in layouts(examples.who_asks(chosen=1)):
        hatched = [g for g in svg.iter(f"{SVG}g") if any("url(" in r.get("fill", "") for r in g)]
        assert [words(cell) for cell in hatched] == [["sat"], ["down"]]
    assert (
        "Cross: die Katze saß ask, other tokens, the cat sat down answer" in examples.who_asks().description
    )


def test_a_head_s_own_features_are_in_full_colour():
    for svg in layouts(examples.head_splits()):
        mine = [letter + number for letter in "abc" for number in "12"]
        assert sorted(full_cells(svg, VALUE)) == sorted(3 * mine)
    assert (
        "Wrong, a single view of the same shape, head 1: a1 a2; a3 a4;" in examples.head_splits().description
    )


def test_two_averages_are_taken_and_subtracted():
    for svg in layouts(examples.two_heads()):
        assert full_cells(svg, VALUE) == ["17", "13"]
        assert full_cells(svg, KEY) == ["Ann", "Ben"]
        assert full_cells(svg, STREAM) == ["4"]
        assert {"× (+1)", "× (−1)"} <= set(words(svg))


def test_an_output_moves_with_its_token():
    for svg in layouts(examples.shuffled()):
        assert full_cells(svg, STREAM) == ["dog", "dog"]
        assert full_cells(svg, VALUE) == ["ydog", "ydog"]


def test_the_token_is_a_column_in_the_text_and_a_row_in_code():
    for svg in layouts(examples.tokens_both_ways(token=1)):
        assert sorted(full_cells(svg, STREAM)) == sorted(["−1.2", "0.4", "0.8"] * 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: examples.soft_lookup(scores=[1.0, 2.0]), "scores: expected 5, got 2"),
        (lambda: examples.soft_lookup(weights=[0.5, -0.5, 1, 0, 0]), "weights must be at least 0"),
        (lambda: examples.soft_lookup(keys=["incomprehensibilities"] * 5), "does not fit into"),
        (lambda: examples.soft_lookup(title=" "), "a drawing needs a title"),
        (lambda: examples.attention_matrices(K=[[1, 0], [0, 1]]), "the rows of K: expected 3, got 2"),
        (lambda: examples.attention_matrices(Q=[[1, 0], [0]]), "the columns of Q: expected 2, got 1"),
        (lambda: examples.attention_matrices(column=4), "there is no query 4 among 4"),
        (lambda: examples.columns_and_rows(keys=["one"]), "the rows of A: expected 1, got 3"),
        (lambda: examples.columns_and_rows(query=-1), "there is no query -1 among 3"),
        (lambda: examples.mask_before_softmax(allowed=[False] * 5), "no key is allowed"),
        (lambda: examples.decoder_looks_back(step=4), "there is no step 4 among 4 words"),
        (lambda: examples.decoder_looks_back(weights=[1.0]), "weights: expected 4, got 1"),
        (lambda: examples.context_swap(step=5), "there is no step 5 among 5 symbols"),
        (lambda: examples.context_swap(second=["a"]), "second: expected 5, got 1"),
        (lambda: examples.masks(panels={}), "panels: expected at least one, got 0"),
        (lambda: examples.masks(chosen=("Causal mask", 9)), "no query 9 in 'Causal mask'"),
        (lambda: examples.masks(chosen=("Mask", 0)), "among 'Causal mask', 'Padding mask'"),
        (lambda: examples.attention_matrices(Z=examples.Q), "the rows of Z: expected 4, got 3"),
        (lambda: examples.masks(panels={"M": ([], [])}), "words of 'M': expected at least one, got 0"),
        (lambda: examples.masks(panels={"M": (["a", "b"], [[True, True]])}), "mask 'M': expected 2, got 1"),
        (lambda: examples.masks(panels={"M": (["a"], [[True, True]])}), "mask 'M': expected 1, got 2"),
        (lambda: examples.letter_memory(asked="q"), "there is no letter 'q' among"),
        (lambda: examples.letter_memory(letters="ckamtc"), "each letter stands once in the memory"),
        (lambda: examples.letter_memory(digits=[1]), "digits: expected 6, got 1"),
        (lambda: examples.letter_memory(weights=[0.0] * 6), "weights must be at least 0 and not all 0"),
        (lambda: examples.pushed_scores(values=[[1, 2, 3]]), "the columns of values: expected 2, got 3"),
        (lambda: examples.pushed_scores(weights=[0.5, 0.5]), "weights: expected 5, got 2"),
        (lambda: examples.pushed_scores(weights=[1, 1, 0, 0, 0]), "at least 0 and sum to one"),
        (lambda: examples.pushed_scores(gradient=[0, 0]), "the gradient is zero"),
        (lambda: examples.pushed_scores(gradient=[1]), "gradient: expected 2, got 1"),
        (lambda: examples.pushed_scores(names=["a"]), "names: expected 5, got 1"),
        (lambda: examples.pushed_scores(weights=[0, 0, 0, 0, 1.0]), "v5 and y are too close together"),
        (lambda: examples.shifted_guesses(probabilities=[0.5]), "probabilities: expected 6, got 1"),
        (lambda: examples.shifted_guesses(tokens="ab", probabilities=[0]), "above 0 and is at most 1, got 0"),
        (lambda: examples.merge_rows(words=[]), "words: expected at least one, got 0"),
        (lambda: examples.merge_rows(words=[""]), "a word's letters: expected at least one"),
        (lambda: examples.merge_rows(merges=[]), "merges: expected at least one, got 0"),
        (lambda: examples.picked_columns(X=3 * [[1, 1, 0]]), "column 0 of X is not one-hot:"),
        (lambda: examples.picked_columns(column=3), "there is no token 3 among 3"),
        (lambda: examples.picked_columns(labels=["E"]), "labels: expected 3, got 1"),
        (lambda: examples.picked_columns(rows=["a"]), "rows: expected 2, got 1"),
        (lambda: examples.unrolled(guessed="ab"), "guessed: expected 4, got 2"),
        (lambda: examples.ways_to_the_past(distance=10), "distance: expected 1 to 9, got 10"),
        (lambda: examples.ways_to_the_past(window=11), "window: expected 1 to 10, got 11"),
        (lambda: examples.gated_state(gate=[0.5, 1.5]), "a gate lies between 0 and 1, got 1.5"),
        (lambda: examples.gated_state(candidate=[1.0]), "candidate: expected 2, got 1"),
        (lambda: examples.two_tasks(distance=5), "distance: expected 1 to 4, got 5"),
        (lambda: examples.one_vector(source=[]), "source: expected at least one, got 0"),
        (lambda: examples.head_layer(weights=[[[1.0]]]), "heads: expected 2, got 1"),
        (lambda: examples.head_layer(tokens=["a"]), "the weights of head 1: expected 1, got 3"),
        (lambda: examples.who_asks(panels={}), "panels: expected at least one, got 0"),
        (lambda: examples.who_asks(chosen=3), "there is no query 3 among 3"),
        (lambda: examples.who_asks(panels={"M": ("ab", "ab", [[1, 1]])}, chosen=0), "mask 'M': expected 2"),
        (lambda: examples.head_splits(right=[[[0]]]), "right: expected 2, got 1"),
        (lambda: examples.head_splits(wrong=2 * [[[0, 1], [2, 3], [4, 5]]]), "each cell must stand there"),
        (lambda: examples.two_heads(values=[1]), "values: expected 3, got 1"),
        (lambda: examples.two_heads(weights=[[1, 0, 0]]), "weights: expected 2, got 1"),
        (lambda: examples.two_heads(asks=(0, 3)), "there is no token 3 among 3"),
        (lambda: examples.shuffled(order=[0, 0, 1]), "is no permutation of 3 tokens"),
        (lambda: examples.shuffled(follow=3), "there is no token 3 among 3"),
        (lambda: examples.block(words=[]), "words: expected at least one, got 0"),
        (lambda: examples.norm_axes(entry=(0, 3, 0)), "there is no entry (0, 3, 0) in the batch"),
        (lambda: examples.normed_in_space(tokens=[[1, 2]]), "the columns of tokens: expected 3, got 2"),
        (lambda: examples.normed_in_space(tokens=[[2, 2, 2]]), "features are all equal"),
        (lambda: examples.becoming_one(rows={}), "rows: expected at least one, got 0"),
        (lambda: examples.becoming_one(rows={"a": [([[1, 2, 3]], 1)]}), "points: expected 2, got 3"),
        (lambda: examples.tokens_both_ways(words=["the"]), "the columns of X: expected 1, got 4"),
        (lambda: examples.tokens_both_ways(token=4), "there is no token 4 among 4"),
        (lambda: examples.linear_both_ways(E=0), "E is drawn from 1 to 8, got 0"),
        (lambda: examples.linear_both_ways(token=9), "there is no token 9 among 4"),
        (lambda: examples.sizes(heads=5), "heads are drawn from 1 to 4, got 5"),
        (lambda: examples.sizes(words=[]), "words: expected at least one, got 0"),
        (lambda: examples.three_places(tokens=[]), "tokens: expected at least one, got 0"),
        (lambda: examples.clock_faces(places=[]), "places: expected at least one, got 0"),
        (lambda: examples.turning_pair(pairs=[]), "pairs: expected at least one, got 0"),
        (lambda: examples.offsets_and_biases(heads=["a", "b"]), "the columns of rows: expected 2, got 3"),
        (lambda: examples.swept_angles(read=64), "expected 0 < trained < read, got 64 and 64"),
        (lambda: examples.what_changed(swapped=[1, 1, 2, 3]), "[1, 1, 2, 3] is no order of 4 tokens"),
        (lambda: examples.floors(floors=["book", "a | "]), "each floor needs at least one room"),
        (lambda: examples.ids_to_targets(tokens=["a"], ids=[1]), "a text of one token has no next one"),
        (lambda: examples.ids_to_targets(ids=[1]), "ids: expected 6, got 1"),
        (lambda: examples.ids_to_targets(sizes={"D": 4}), "the size M is missing among D"),
        (lambda: examples.machine_masks(panels={}), "panels: expected at least one, got 0"),
        (lambda: examples.machine_masks(panels={"E": (["a"], [[1]], 2, "x")}), "2 cannot be the source"),
        (lambda: examples.encoder_decoder(source=[]), "source: expected at least one, got 0"),
        (lambda: examples.stream_sizes(starts={}), "starts: expected at least one, got 0"),
        (lambda: examples.block_squares(mlp={}), "MLP: expected at least one, got 0"),
        (lambda: examples.block_squares(mlp={"W_in": (0, 1)}), "MLP: a matrix has at least one square"),
        (lambda: examples.stream_sizes(starts={"a": [1.0, 2], "b": [1.0]}), "b: expected 2, got 1"),
        (lambda: examples.stream_sizes(starts={"a": [1.0, -2]}), "a size is at least 0"),
        (lambda: examples.both_sides(guesses={}), "guesses: expected at least one, got 0"),
        (lambda: examples.both_sides(place=6), "is not among 6 tokens"),
        (lambda: examples.trainings(stages=[("", "no name")]), "each stage has a name"),
        (lambda: examples.four_heads(heads={}), "heads: expected at least one, got 0"),
        (lambda: examples.four_heads(heads={"tag": ([6], "O")}), "'tag' reads [6], and there are 6 tokens"),
        (lambda: examples.four_heads(heads={"tag": ([], "O")}), "what 'tag' reads: expected at least one"),
        (lambda: examples.four_heads(heads={"tag": ([0], 60 * "O")}), "too long for the drawing"),
        (lambda: examples.leakage(own=[0]), "own: expected 2, got 1"),
        (lambda: examples.writes_in_the_plane(values=[2, 5]), "values: expected 3, got 2"),
        (lambda: examples.writes_in_the_plane(keys=3 * [[1.0, 1.0]]), "keys are of length 1"),
        (lambda: examples.writes_in_the_plane(values=[2, 5, 70]), "lie outside the drawing"),
        (lambda: examples.leakage(place=4), "4 words, place 4: expected two words or more"),
        (lambda: examples.three_fates(place=4), "there is no place 4 among 4 words"),
        (lambda: examples.three_fates(shares=[1]), "shares: expected 3, got 1"),
        (lambda: examples.embedding_sum(segments=[0]), "segments: expected 7, got 1"),
        (lambda: examples.embedding_sum(tokens=9 * ["wonderful"], segments=9 * [0]), "px wide, and 760"),
        (lambda: examples.pretraining(asked={}), "asked for are [], and the row has the places 1 to 8"),
        (lambda: examples.pretraining(asked={9: "late"}), "asked for are [9], and the row has the places"),
        (lambda: examples.pretraining(segments=9 * [0]), "segments are some 0 and then some 1"),
        (lambda: examples.tags_and_pieces(tags=["O"]), "word 3 has no tag: there are 1"),
        (lambda: examples.tags_and_pieces(first=[0]), "first: expected 8, got 1"),
        (lambda: examples.two_stacks(asked=["a"]), "asked: expected 4, got 1"),
        (lambda: examples.forced_reading(real=[True]), "real: expected 4, got 1"),
        (lambda: examples.beam_tree(k=4), "k: expected 1 to 3, got 4"),
        (lambda: examples.beam_tree(P=[[1.0]]), "the rows of P: expected 3, got 1"),
        (lambda: examples.ngram_brackets(written=["a"]), "4-grams need four words, got 1"),
        (lambda: examples.one_column(weights=[1.0]), "weights: expected 7, got 1"),
        (lambda: examples.one_column(step=6), "there is no step 6 among 6 tokens"),
        (lambda: examples.cut_paths(cuts={}), "cuts: expected at least one experiment, got none"),
        (lambda: examples.cut_paths(cuts={"one": [True]}), "one: expected 3, got 1"),
        (lambda: examples.one_sequence(asked=["a"]), "asked: expected 4, got 1"),
        (lambda: Drawing("a title", "", Scene(1, 1)), "a drawing needs a description"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_said(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_numbers_have_a_minus_and_no_negative_zero():
    assert [number(x) for x in (-0.224, -0.001, float("-inf"), "2/5", 3)] == [
        "−0.22",
        "0.00",
        "−∞",
        "2/5",
        "3.00",
    ]


def test_text_shrinks_only_so_far():
    assert fitting(["word"], 1000, 15) == 15
    tight = width_of("word", LEAST) + 0.01
    assert LEAST <= fitting(["word"], tight, 15) < 13
    with pytest.raises(ValueError, match="does not fit"):
        fitting(["word"], tight - 1, 15)


def test_every_primitive_draws():
    """Those that no drawing of chapter 2 uses."""
    scene = Scene(200, 200)
    scene.map(10, 10, 100, 40, "W_{q}")
    scene.arrow((10, 60), (10, 100), label="D", side="left")
    scene.brace(10, 100, 120, "N", up=True)
    scene.stream((0, 150), (200, 150), role=QUERY)
    scene.map(20, 160, 100, 30, "W_{k}", slant=-0.2)
    scene.area((130, 10), (190, 10), (160, 60), role=KEY, shade=1)
    (svg,) = layouts(Drawing("Parts", "Some parts.", scene))
    assert words(svg) == ["Wq", "D", "N", "Wk"]
    assert "M20,160 L120,160 L130,190 L10,190 Z" in svg.xpath("//@d")  # broad below
    assert [p.get("fill-opacity") for p in svg.iter(f"{SVG}path") if p.get("fill") == KEY.fill] == ["0.48"]
    assert any(path.get("stroke-width") == "8" for path in svg.iter(f"{SVG}path"))


def test_a_roles_colours_are_the_plots_and_text_on_them_can_be_read():
    assert {role.light for role in ROLES} <= {
        style.BLUE, style.ORANGE, style.GREEN, style.RED, style.PURPLE
    }  # fmt: skip
    for role in ROLES:
        assert contrast(role.light, role.on_light) >= 4.5
        assert contrast(role.dark, role.on_dark) >= 4.5
        assert contrast(role.dark, "#14181e") >= 3  # against the dark page itself


def test_the_style_sheet_has_the_roles_colours():
    assert style_variables() in (ROOT / "book/site/static/drawings.css").read_text("utf8")


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_a_card_is_small_and_has_no_words(chapter):
    for svg in layouts(importlib.import_module(f"tformer_book.{chapter.name}.card").draw()):
        assert (svg.get("width"), svg.get("height")) == ("162", "102")
        assert words(svg) == []


def test_the_files_are_what_the_functions_draw():
    """Run `python tools/draw_pictures.py` after a change to the drawings."""
    found = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("book/*/card.svg", "book/site/static/drawings/*", "book/site/drawings/*", "assets/*")
        for path in ROOT.glob(pattern)
        if path.suffix != ".png"
    }
    expected = draw_pictures.files()
    assert found == set(expected)
    for name, text in expected.items():
        assert (ROOT / name).read_text("utf8") == text, f"{name} is not up to date"


def test_the_offset_alone_decides_the_angle():
    for svg in layouts(examples.turning_pair()):
        assert [word for word in words(svg) if "°" in word] == [
            "angle: 40°",
            "offset 1: 80°",
            "offset 1: 80°",
            "offset 3: 160°",
        ]


def test_cells_on_a_diagonal_share_an_offset():
    for svg in layouts(examples.offsets_and_biases()):
        hatched = [r for r in svg.iter(f"{SVG}rect") if "url(" in r.get("fill", "")]
        assert len(hatched) == 6
        grid = [word for word in words(svg) if word in set("0123")]
        assert [grid.count(d) for d in "0123"] == [5, 4, 3, 2]  # and once in the table beside the grid


def test_angles_not_seen_in_training_are_hatched():
    for svg in layouts(examples.swept_angles()):
        paths = [p for p in svg.iter(f"{SVG}path") if "url(" in p.get("fill", "")]
        assert len(paths) == 5  # the three fast hands have seen every angle
        assert "114°" in words(svg)
        assert "to 462°" in words(svg)
    for svg in layouts(examples.swept_angles(shown=[0, 3])):
        assert len([p for p in svg.iter(f"{SVG}path") if "url(" in p.get("fill", "")]) == 1
        assert {"114°", "w₃ =", "w₃ = 0.032"} & set(words(svg)) > {"114°"}


def test_what_changed_is_in_colour():
    for svg in layouts(examples.what_changed()):
        weights = next(role for role in ROLES if role.name == "weights")
        assert full_cells(svg, weights) == ["0.41", "0.52", "0.33", "0.60", "0.12", "0.08"]


def test_each_prefix_asks_for_the_next_word_and_hides_the_rest():
    (wide, _) = layouts(examples.questions(words=["a", "b", "c"]))
    assert words(wide)[1:6] == ["a", "b", "a", "b", "c"]
    hatched = [box for box in wide.iter(f"{SVG}rect") if "url(" in box.get("fill", "")]
    assert len(hatched) == 1 + 1  # one word of the first row, and the key


def test_what_is_asked_for_stands_under_the_token_before_it():
    (wide, _) = layouts(examples.packed_window())
    shown = words(wide)
    at = shown.index("asked for: the last N, moved by one")
    read, asked = shown[at + 1 : at + 6], shown[at + 6 :]
    assert (read, asked) == (["ran", "home", ".", "[end]", "she"], ["home", ".", "[end]", "she", "sat"])


def test_a_window_that_jumps_is_read_anew():
    (wide, _) = layouts(examples.jumping_window())
    assert words(wide).count("5") == 2
    assert "at 9, 13, all is read anew" in examples.jumping_window().description


def test_two_beams_keep_what_greedy_search_drops():
    for svg in layouts(examples.beam_tree()):
        assert set(full_cells(svg, QUERY)) == {"a", "b", "a.", "b."}
        thick = [p for p in svg.iter(f"{SVG}path") if "weights" in p.get("stroke", "")]
        assert len(thick) == 2 + 1  # two steps, and the legend's
        shown = [word for word in words(svg) if word.startswith("0.")]
        assert shown.count("0.90") == 1  # the factor from b to b., which has 0.36
        assert shown.count("0.36") == 1
    assert "ends with a.." in examples.beam_tree().description


def test_brackets_are_counted_as_often_as_the_reference_has_them():
    drawing = examples.ngram_brackets(written=["the"] * 4, reference=["the", "cat", "the", "the"])
    for svg in layouts(drawing):
        assert [word for word in words(svg) if "/" in word] == ["3/4", "1/3", "0/2", "0/1"]
    for svg in layouts(examples.ngram_brackets()):
        assert [word for word in words(svg) if "/" in word] == ["5/6", "3/5", "1/4", "0/3"]
        filled = [r for r in svg.iter(f"{SVG}rect") if r.get("fill") == VALUE.fill]
        assert len(filled) == 5 + 3 + 1


def test_teacher_forcing_hides_what_comes_later_and_padding():
    for svg in layouts(examples.forced_reading()):
        hatched = [r for r in svg.iter(f"{SVG}rect") if "url(" in r.get("fill", "")]
        assert len(hatched) == 4 + 4 * 3 / 2 + 4
        assert full_cells(svg, QUERY) == ["14", ".", "März", "end"]


def test_one_column_draws_bars_as_long_as_weights():
    for svg in layouts(examples.one_column()):
        bars = [float(r.get("width")) for r in svg.iter(f"{SVG}rect") if "weights" in r.get("fill", "")]
        assert bars[3] == max(bars)
        assert bars[3] / bars[6] == pytest.approx(7, abs=0.1)


def test_cut_paths_are_hatched_where_an_experiment_cuts():
    drawing = examples.cut_paths()
    for svg in layouts(drawing):
        hatched = [r for r in svg.iter(f"{SVG}rect") if "url(" in r.get("fill", "")]
        assert words(svg).count("cut") == len(hatched) == 1 + 1 + 3
    assert "nothing hidden: none; decoder may not read PM: 1; hour may not read PM: 2" in drawing.description


def test_one_sequence_hides_what_neither_mask_opens():
    drawing = examples.one_sequence(source=["a", "b", "c", "d"], read=["begin", "x"], asked=["x", "end"])
    for svg in layouts(drawing):
        hatched = [r for r in svg.iter(f"{SVG}rect") if "url(" in r.get("fill", "")]
        assert words(svg).count("+") == 4 * 3 / 2  # the prefix mask opens the source's upper triangle
        assert len(hatched) == 6 * 5 / 2 - 4 * 3 / 2
        assert full_cells(svg, QUERY) == ["x", "end"]
        places = [word for word in words(svg) if word.isdigit()]
        assert sorted(places) == sorted(["1", "2", "3", "4", "5", "6", "1", "2", "3", "4", "1", "2"])
    assert "at begin x; at x end" in drawing.description


def test_groups_of_characters_end_at_the_last_one():
    for svg in layouts(examples.tables_and_block()):
        assert full_cells(svg, STREAM) == ["gh", "igh", "nigh", "+", "+"]
        assert [word for word in words(svg) if word in ("80", "1,601")] == 3 * ["80"] + 3 * ["1,601"]
    assert "h, g, i, each a row in a table of 80 rows" in examples.tables_and_block().description
    for wrong in ({"characters": "h"}, {"earlier": 4}, {"earlier": -1}):
        with pytest.raises(ValueError, match="have no groups"):
            examples.tables_and_block(**wrong)


def test_black_is_black_and_white_is_white_on_either_page():
    corners = [[0.2, 1.0], [1.0, 0.2]]
    drawing = examples.noise_and_back(images=[corners, corners], times=[0, 1])
    for svg in layouts(drawing):
        fills = [e.get("fill") for e in svg.iter(f"{SVG}rect") if e.get("fill", "").startswith("#")]
        assert fills == ["#333333", "#ffffff", "#ffffff", "#333333"] * 2
    known = [cell.get("fill") for svg in layouts(examples.fold()) for cell in svg.iter(f"{SVG}rect")]
    assert {"#000000", "#ffffff"} <= set(known)


def test_a_spectrogram_s_shades_are_not_cut_off():
    bands = [[0.0, 0.0, 0.5, 0.5, 0.8, 0.8, 1.0, 1.0]] * 2
    drawing = examples.sound_to_columns(bands=bands, patch=2)
    for svg in layouts(drawing):
        shades = [e.get("fill-opacity") for e in svg.iter(f"{SVG}path") if VALUE.fill == e.get("fill")]
        assert shades == ["0.5", "0.8", "1.0"]
