"""Figures to touch: what they compute is the library's, and they work by mouse, keyboard, link and file."""

import base64
import gzip
import json
import math
import posixpath
import random
import re
from contextlib import nullcontext
from itertools import chain
from urllib.parse import parse_qsl

import lxml.html
import pytest
import torch
import yaml
from chapters import chapters, notebooks

from tests.site.pages import ROOT, eventually
from tformer_book.attention.exercises import nadaraya_watson
from tformer_book.bert.experiments.bert_page import Page
from tformer_book.bert.experiments.hidden_words import SENTENCES, hidden
from tformer_book.inside.models.attention_only import built_induction
from tformer_book.kit.data.mnist import mnist
from tformer_book.kit.live import FILE, as_script, from_json, live_model
from tformer_book.kit.models.recipes import MODERN
from tformer_book.kit.published import PUBLISHED, forward_flops_per_token
from tformer_book.kit.records import recorded
from tformer_book.scale.costs import (
    GPTShape,
    memory_per_gpu,
    message_bytes,
    parameters,
    step_flops,
    training_days,
)
from tformer_book.scale.published_runs import RUNS
from tformer_book.skip_norm.experiments.gradient_depth import KINDS, stack, tokens_and_gradient
from tformer_lib.analysis.ablation import mask_heads
from tformer_lib.analysis.activations import ablate
from tformer_lib.analysis.weights import attention_weights
from tformer_lib.core.attention import Attend
from tformer_lib.core.patches import to_patches
from tformer_lib.core.positions import Rotary
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.efficient.latent import MultiHeadLatentAttention
from tformer_lib.efficient.tiled import TiledAttend
from tformer_lib.generation.filling import fill_in
from tformer_lib.generation.sampling import next_token_probabilities

LIVE = ROOT / "book" / "site" / "static" / "live"
FIGURES = {
    name: figure
    for chapter in chapters()
    if (file := chapter.folder / "live.yml").exists()
    for name, figure in yaml.safe_load(file.read_text("utf8")).items()
}
DATA = ("logits.js", "attention.js", "patching.js", "gradients.js", "fillings.js")  # numbers, not programs
MADE = ("model_weights.js",)  # when the site is built
PAGES = {name: f"book/{'live_model' if name == 'live-model' else 'play'}.html" for name in FIGURES}
GREATEST = 66_000  # bytes of all programs and the style sheet, compressed


@pytest.fixture(scope="module")
def maths(browser):
    """Calls a function of maths.js: `maths("softmax", [1, 2])`."""
    context = browser.new_context()
    page = context.new_page()
    page.add_script_tag(path=LIVE / "maths.js")

    def call(name: str, *values):
        return page.evaluate("([name, values]) => TformerMaths[name](...values)", [name, list(values)])

    yield call
    context.close()


def numbers(chance: random.Random, *shape: int):
    if len(shape) == 1:
        return [chance.gauss(0, 1.5) for _ in range(shape[0])]
    return [numbers(chance, *shape[1:]) for _ in range(shape[0])]


def close(found, wanted) -> None:
    found, wanted = (torch.as_tensor(x, dtype=torch.float64) for x in (found, wanted))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def exact(x) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(3))
def test_the_soft_dictionary_is_kernel_regression(maths, seed):
    chance = random.Random(seed)
    keys, values, query, h = numbers(chance, 5), numbers(chance, 5), chance.gauss(0, 1), 0.2 + chance.random()
    found = maths("softLookup", query, keys, values, h)
    close(found["answer"], nadaraya_watson.reference(exact([query]), exact(keys), exact(values), h).squeeze())
    assert math.isclose(sum(found["weights"]), 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("masked", [False, True])
def test_one_query_attends_as_the_library_does(maths, seed, masked):
    chance = random.Random(seed)
    q, keys, values = numbers(chance, 6), numbers(chance, 5, 6), numbers(chance, 5, 3)
    mask = [chance.random() < 0.6 for _ in range(5)] if masked else None
    found = maths("attendOne", q, keys, values, mask)
    library = Attend()
    keep = None if mask is None else torch.tensor([[mask]])
    wanted = library(exact([[q]]), exact([keys]), exact([values]), keep)
    close(found["output"], wanted[0, 0])


def test_a_query_that_may_read_nothing_gets_zeros(maths):
    found = maths("attendOne", [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], [[3.0], [4.0]], [False, False])
    assert found["output"] == [0]
    assert found["weights"] == [0, 0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scaled", [False, True])
def test_gradients_are_those_of_autograd(maths, seed, scaled):
    chance = random.Random(seed)
    q, keys, values, g = (numbers(chance, *s) for s in ((8,), (6, 8), (6, 4), (4,)))
    found = maths("gradients", q, keys, values, g, scaled)
    query = exact(q).requires_grad_()
    scores = exact(keys) @ query / (math.sqrt(8) if scaled else 1)
    scores.retain_grad()
    (scores.softmax(dim=0) @ exact(values) @ exact(g)).backward()
    close(found["atScores"], scores.grad)
    close(found["atQuery"], query.grad)


@pytest.mark.parametrize("place", [0, 1, 17, 300])
def test_rotation_is_the_librarys(maths, place):
    x = numbers(random.Random(place), 8)
    turned = Rotary(8)(exact([[x]]), offset=place)
    close(maths("rotate", x, place), turned[0, 0])


RULES = (
    {},
    {"temperature": 0.3},
    {"temperature": 0},
    {"topK": 3},
    {"topP": 0.7},
    {"minP": 0.2},
    {"temperature": 1.7, "topK": 8, "topP": 0.9, "minP": 0.05},
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_sampling_rules_are_the_librarys(maths, seed, rules):
    logits = numbers(random.Random(seed), 20)
    names = {"temperature": "temperature", "topK": "top_k", "topP": "top_p", "minP": "min_p"}
    wanted = next_token_probabilities(exact(logits), **{names[key]: value for key, value in rules.items()})
    close(maths("nextProbabilities", logits, rules), wanted)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tile", [1, 2, 3, 8])
def test_the_online_softmax_is_the_librarys(maths, seed, tile):
    chance = random.Random(seed)
    scores, values = numbers(chance, 8), numbers(chance, 8)
    states = maths("onlineSoftmax", scores, values, tile)
    library = TiledAttend(tile=tile)
    wanted = library(exact([[[[1.0]]]]), exact(scores).view(1, 1, 8, 1), exact(values).view(1, 1, 8, 1))
    close(states[-1]["output"], wanted.item())
    assert len(states) == math.ceil(8 / tile)


@pytest.mark.parametrize("seed", range(4))
def test_the_error_that_heads_leave_is_that_of_least_squares(maths, seed):
    chance = random.Random(seed)
    heads = torch.tensor(numbers(chance, 1 + seed % 2, 8), dtype=torch.float64).softmax(dim=1)
    target = exact([1, -1, 0, 0, 0, 0, 0, 0])
    fit = torch.linalg.lstsq(heads.T, target[:, None]).solution
    wanted = (target - (heads.T @ fit)[:, 0]).square().sum() / 2
    close(maths("errorLeft", heads.tolist()), wanted)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sharp", [1.5, 200.0])
@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_the_induction_circuit_is_the_library_s(maths, seed, sharp, connected, first):
    chance = random.Random(seed)
    vocab, places = 7, 10
    tokens = [chance.randrange(vocab) for _ in range(chance.randint(6, places))]
    options = {"sharp": sharp, "connected": connected}
    model = built_induction(vocab, places, **options).double()
    names = ["transformer.blocks.0.self_attention"] if not first else []
    batch = (torch.tensor([tokens]),)
    with torch.no_grad(), ablate(model, names) if names else nullcontext():
        logits, weights = model(*batch)[0], attention_weights(model, batch)[0]
    found = maths("induction", tokens, vocab, {**options, "first": first})
    close(found["logits"], logits)
    close(found["previous"], weights[0, 0])
    close(found["weights"], weights[1, 0])


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_patches_and_a_map_of_them_are_the_librarys(maths, seed):
    chance = random.Random(seed)
    side, p = chance.choice([(28, 7), (12, 3), (8, 4)])
    right, down = (chance.randint(-p, p) for _ in range(2))
    image, omega = numbers(chance, side * side), torch.nn.Linear(p * p, 5, bias=False).double()
    whole = torch.nn.functional.pad(exact(image).view(1, 1, side, side), (right, -right, down, -down))
    found = maths("moved", image, side, right, down)
    close(found, whole.flatten())
    columns = maths("patchColumns", found, side, p)
    close(columns, to_patches(whole, p)[0])
    mapped = [maths("product", omega.weight.tolist(), x) for x in columns]
    close(mapped, omega(to_patches(whole, p))[0].detach())


@pytest.fixture(scope="module")
def gradients():
    text = (LIVE / "gradients.js").read_text("utf8")
    return json.loads(text.removeprefix("window.TformerGradients = ").removesuffix(";\n"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_recorded_gradients_are_those_of_stacks_of_the_library(gradients, kind):
    """Stack after stack by autograd, from its own end; recorded are powers of ten."""
    tokens, back = tokens_and_gradient()
    blocks, (lengths, own) = stack(kind), gradients[kind]
    assert len(lengths) == len(own) == len(blocks) == 64
    for depth in (1, 2, 9):
        first = tokens.clone().requires_grad_()
        last = torch.nn.Sequential(*blocks[:depth])(first)
        (last * back).sum().backward()
        assert abs(lengths[depth - 1] - math.log10(first.grad.norm() / back.norm())) < 2e-3
        spread = (last - last.mean(dim=1, keepdim=True)).norm() / last.norm()
        if spread > 1e-12:  # less is rounding
            assert abs(own[depth - 1] - math.log10(spread.item())) < 2e-3


@pytest.mark.parametrize("kind", KINDS)
def test_the_record_of_the_gradients_fits_them(gradients, kind):
    for depth, facts in recorded("gradient_depth")["results"][kind].items():
        for power, fact in zip(gradients[kind], facts.values(), strict=True):
            assert power[int(depth) - 1] == round(math.log10(max(fact, 1e-30)), 3) or fact < 1e-14


@pytest.fixture(scope="module")
def fillings():
    text = (LIVE / "fillings.js").read_text("utf8")
    assert len(text) < 60_000
    return json.loads(text.removeprefix("window.TformerFillings = ").removesuffix(";\n"))


def test_recorded_fillings_are_probabilities_of_each_word(fillings):
    assert len(fillings) == 4
    for one in fillings:
        for side in ("left", "both"):
            assert len(one[side]) == len(one["words"])
            for word, said in zip(one["words"], one[side], strict=True):
                shares = [share for _, share in said["best"]]
                assert shares == sorted(shares, reverse=True)
                assert sum(shares) < 1.001
                assert dict(said["best"]).get(word, said["true"]) == said["true"]


def test_the_record_of_the_fillings_fits_them(fillings):
    facts = recorded("hidden_words")["results"]
    sides = {
        side: [(word, said) for one in fillings for word, said in zip(one["words"], one[side], strict=True)]
        for side in ("left", "both")
    }
    first = {side: sum(word == said["best"][0][0] for word, said in all_) for side, all_ in sides.items()}
    assert (first["both"], first["left"]) == (facts["first with both"], facts["first with the left"])
    likelier = facts["likelier with both"]  # counted before rounding
    pairs = [(b["true"], a["true"]) for (_, a), (_, b) in zip(sides["left"], sides["both"], strict=True)]
    assert sum(b > a for b, a in pairs) <= likelier <= sum(b >= a for b, a in pairs)
    program = (LIVE / "hidden_word.js").read_text("utf8")
    assert f"{likelier} of these {facts['words']} words are likelier" in program


def test_fillings_are_the_models_with_the_rest_shown_or_cut_off(fillings):
    """With a model of any weights: both sides are those of `fill_in`, the left is that of a shorter text."""
    page = Page()
    model = page.fresh(3).eval()
    sentence = SENTENCES[1]
    found = hidden(page, model, sentence)
    assert found["words"] == fillings[1]["words"]
    words = found["words"]
    for n, word in enumerate(words):
        text = " ".join("[MASK]" if m == n else other for m, other in enumerate(words))
        (best,) = fill_in(model, page.tokenizer, text, k=4)
        assert [[token, round(p, 3)] for token, p in best] == found["both"][n]["best"]
        read = page.tokenizer.encode(
            "[CLS]" + " ".join([*words[:n], "[MASK]"]), allow_special=["[CLS]", "[MASK]"]
        )
        with torch.no_grad():
            p = model(torch.tensor([read]))[0][0, -1].softmax(dim=-1)
        assert found["left"][n]["true"] == round(p[page.tokenizer.tokens.index(word)].item(), 3)


@pytest.fixture
def play(visit):
    """A page with its figures, or the one of that name, started; further options are those of `visit`."""

    def open_page(path: str = "book/play.html", name: str = "", **options):
        seen = visit(path, **options)
        for details in seen.page.locator(f"details[data-try{f'={name}' * bool(name)}]").all():
            details.scroll_into_view_if_needed()
            details.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
        return seen

    return open_page


def test_the_machines_models_are_counted_as_the_library_counts_them(maths, play):
    page = play(name="the-machine").page
    models = page.evaluate("() => TformerLive.figures.get('the-machine').models")
    names = [name for name in models if name in PUBLISHED]
    assert len(names) == 4
    for name in names:
        spec, model = PUBLISHED[name], models[name]
        assert maths("parameters", model) == spec.by_component()
        for length in (1, 1000):
            wanted = forward_flops_per_token(spec.config, length, vocab_size=spec.vocab_size)
            assert maths("forwardFlops", model, length) == wanted
    ours = MODERN.build(80)
    count = sum(p.numel() for p in ours.parameters())
    counted = maths("parameters", models["This book's modern one"])
    heads = 2 * MODERN.config.n_blocks * 32  # the gains of queries and keys, which the machine has not
    assert sum(counted.values()) == count - heads


def test_the_caches_sizes_are_those_of_the_layers(maths, play):
    models = play(name="the-cache").page.evaluate("() => TformerLive.figures.get('the-cache').models")
    for name in ("GPT-3 175B", "Llama 3 8B"):
        weights = sum(PUBLISHED[name].by_component().values())
        assert math.isclose(models[name]["weights"] * 1e9, weights, rel_tol=1e-3)
    m = models["DeepSeek-V3"]
    with torch.device("meta"):
        layer = MultiHeadLatentAttention(
            7168, m["H"], d_latent=m["latent"], d_head=m["Dh"], d_rotary=m["rope"]
        )
    assert maths("cacheNumbers", m) == m["M"] * (layer.d_latent + layer.d_rotary)
    for name in ("GPT-3 175B", "Llama 3 8B"):
        c = PUBLISHED[name].config
        kv = c.n_kv_heads or c.n_heads
        assert maths("cacheNumbers", models[name]) == 2 * c.n_blocks * kv * c.d_model // c.n_heads


def shape_of(c) -> GPTShape:
    """The sizes of a figure's model as the library has them."""
    config = TransformerConfig(
        d_model=c["D"],
        n_heads=c["H"],
        n_blocks=c["M"],
        d_hidden=c["F"],
        n_kv_heads=c["G"],
        norm="rms" if c["rms"] else "layer",
        activation="swiglu" if c["gated"] else "gelu",
        bias=c["bias"],
    )
    return GPTShape(config=config, vocab_size=c["V"], places=c["places"], tied=c["tied"])


@pytest.mark.parametrize("seed", range(8))
def test_the_calculator_reckons_as_the_library_does(maths, seed):
    chance = random.Random(seed)
    keys, sharing = chance.choice([1, 2, 4]), chance.choice([1, 2, 4])
    modern = chance.random() < 0.5
    c = {
        "D": 8 * keys * sharing * chance.randint(1, 9),
        "H": keys * sharing,
        "G": keys,
        "F": chance.randint(8, 900),
        "M": chance.randint(1, 40),
        "V": chance.randint(10, 100_000),
        "places": chance.choice([0, 512]),
        "bias": not modern,
        "gated": modern,
        "rms": modern,
        "tied": chance.random() < 0.5,
    }
    rows, length, gpus = chance.randint(1, 40), chance.randint(1, 5000), chance.choice([1, 3, 64])
    shape = shape_of(c)
    assert sum(maths("parameters", c).values()) == parameters(shape)
    for again in (False, True):
        flops = step_flops(shape, rows, length, recompute=again)
        close(maths("stepFlops", c, rows, length, again) / flops, 1.0)
        for stage, sharding in enumerate(("ddp", "zero1", "zero2", "zero3")):
            for plain, half in ((False, False), (True, True), (False, True)):
                how = {"gpus": gpus, "stage": stage, "half": half, "again": again, "plain": plain}
                wanted = memory_per_gpu(
                    shape,
                    rows,
                    length,
                    gpus=gpus,
                    sharding=sharding,
                    kernel="plain" if plain else "flash",
                    precision="bfloat16" if half else "float32",
                    recompute=again,
                )
                found = maths("gpuMemory", c, rows, length, how)
                assert found.keys() == wanted.keys()
                for part, size in wanted.items():
                    assert math.isclose(found[part], size, rel_tol=1e-5), (part, how)
    close(maths("trainingDays", 1e22, gpus, 3e14, 0.4), training_days(1e22, gpus, 3e14, 0.4))
    for stage, sharding in enumerate(("ddp", "zero1", "zero2", "zero3")):
        for half, precision in ((False, "float32"), (True, "bfloat16")):
            found = maths("messageBytes", c, {"gpus": gpus, "stage": stage, "half": half})
            wanted = message_bytes(shape, gpus=gpus, sharding=sharding, precision=precision)
            assert math.isclose(found, wanted, rel_tol=1e-12)


def test_the_calculator_compares_only_what_its_authors_ran(play):
    figure = play(name="calculator").page.locator('details[data-try="calculator"]')
    said = figure.locator(".tl-said")
    assert "on 8 GPUs" in said.inner_text()
    assert "sends 23.6 GB, 0.08 s over its link; its products take 1.34 s" in said.inner_text()
    assert "Its authors state" in said.inner_text()
    figure.get_by_label("Compute each block again").check()
    assert "Its authors state" not in said.inner_text()
    assert re.search(r"35\.\d% of the rate", said.inner_text())
    figure.get_by_label("Model").select_option("Llama 3.1 8B")  # begins with its authors' settings
    assert not figure.get_by_label("Compute each block again").is_checked()
    assert "Its authors state 1.46 million GPU hours" in said.inner_text()


def test_the_calculators_trainings_are_the_published_ones(maths, play):
    figure = play(name="calculator").page
    found = figure.evaluate("() => TformerLive.figures.get('calculator').runs")
    gpus = figure.evaluate("() => TformerLive.figures.get('calculator').gpus")
    assert [name for name in found if "hours" in found[name] or "flops" in found[name]] == [
        *sorted(RUNS.keys() - {"GPT-3 175B"}, key=lambda name: list(found).index(name)),
        "GPT-3 175B",
    ]
    for name, wanted in RUNS.items():
        run = found[name]
        assert parameters(shape_of(run["c"])) == parameters(wanted.shape)
        assert (run["tokens"], run["N"], run["gpus"]) == (wanted.tokens, wanted.length, wanted.gpus)
        assert gpus[run["gpu"]] == [wanted.memory / 1e9, wanted.rate / 1e12]
        flops = run["tokens"] / run["N"] * maths("stepFlops", run["c"], 1, run["N"])
        hours = 24 * maths("trainingDays", flops, 1, wanted.rate, run["use"] / 100)
        error = hours / run["hours"] - 1 if "hours" in run else flops / run["flops"] - 1
        assert math.isclose(error, wanted.error(), abs_tol=1e-5)
        assert (abs(error) < 0.1) == (name not in ("Llama 2 34B", "Llama 3.1 8B", "Llama 3.1 70B"))


def test_programs_are_small():
    programs = [path for path in LIVE.iterdir() if path.name not in DATA]
    assert len(gzip.compress(b"".join(path.read_bytes() for path in programs))) < GREATEST
    for name in DATA:
        assert (LIVE / name).stat().st_size < 1_600_000


def test_every_program_is_used():
    used = {script for figure in FIGURES.values() for script in figure["scripts"]}
    there = {path.name for path in LIVE.glob("*.js")}
    first_page = {"writing.js"}
    assert "live/writing.js" in (ROOT / "book" / "index.md").read_text("utf8")
    assert used | {"load.js", "core.js", "maths.js"} | first_page == there | set(MADE)
    assert there.isdisjoint(MADE)


def test_the_site_makes_the_script_of_the_weights_from_the_package(site):
    made = (site / "_static" / "live" / "model_weights.js").read_text("utf8")
    assert made == as_script(FILE.read_text("utf8"))


def test_all_figures_start_and_say_something(play):
    seen = play()
    said = seen.page.locator(".tl-said").all_inner_texts()
    assert len(said) == list(PAGES.values()).count("book/play.html")
    assert all(re.search(r"\d", text) for text in said)
    assert not seen.problems
    assert not seen.outside


def nudge(figure) -> None:
    """Changes every slider, or the first box where there is none, by keyboard; each has a label."""
    sliders = figure.locator("input[type=range]:visible").all()
    for control in sliders or [figure.locator("input[type=checkbox]").first]:
        assert control.evaluate("e => e.labels[0].textContent").strip()
        control.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowRight") if sliders else ("Space",):
            control.press(key)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_answers_the_keyboard_and_begins_again(play, name):
    figure = play(PAGES[name], name).page.locator(f'details[data-try="{name}"]')
    said = figure.locator(".tl-said")
    before = said.inner_text()
    nudge(figure)
    assert figure.evaluate("e => new URLSearchParams(location.hash).size") == 0  # only a press makes a link
    changed = figure.inner_text()
    figure.get_by_role("button", name="Start again").click()
    assert figure.inner_text() != changed
    assert said.inner_text() == before


@pytest.mark.parametrize("name", FIGURES)
def test_every_slider_moves_with_every_press(play, name):
    figure = play(PAGES[name], name).page.locator(f'details[data-try="{name}"]')
    for slider in figure.locator("input[type=range]:visible").all():
        least, most, step = (float(slider.get_attribute(key)) for key in ("min", "max", "step"))
        presses = min(3, round((most - least) / step))
        for end, key in (("End", "ArrowLeft"), ("Home", "ArrowRight")):  # to one end, and back from it
            slider.press(end)
            seen = [slider.get_attribute("aria-valuetext")]
            for _ in range(presses):
                slider.press(key)
                seen.append(slider.get_attribute("aria-valuetext"))
            assert len(set(seen)) == presses + 1, (end, seen)


@pytest.mark.parametrize("name", FIGURES)
def test_a_link_keeps_the_state(play, visit, name):
    page = play(PAGES[name], name).page
    figure = page.locator(f'details[data-try="{name}"]')
    nudge(figure)
    said = figure.locator(".tl-said").inner_text()
    figure.get_by_role("button", name="Link to this state").click()
    page.wait_for_function("() => location.hash.includes('try=')")
    link = page.evaluate("() => location.hash")
    again = visit(f"{PAGES[name]}{link}").page.locator(f'details[data-try="{name}"]')
    again.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    assert again.locator(".tl-said").inner_text() == said


@pytest.mark.parametrize("state", ["q=no&h=", "q=1e999&h=-3", "h=0&q=%3Cb%3E", "nothing=1"])
def test_a_link_with_nonsense_does_no_harm(visit, state):
    seen = visit(f"book/play.html#try=soft-dictionary&{state}")
    figure = seen.page.locator('details[data-try="soft-dictionary"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    assert "NaN" not in figure.inner_text()
    assert not seen.problems


def test_dragging_moves_the_query(play):
    figure = play(name="soft-dictionary").page.locator('details[data-try="soft-dictionary"]')
    picture = figure.locator("svg").first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    mouse = figure.page.mouse
    mouse.move(box["x"] + 60, box["y"] + 150)
    mouse.down()
    mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 150, steps=4)
    mouse.up()
    assert re.search(r"At 1[678]:\d\d", figure.locator(".tl-said").inner_text())


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360), ("light", 360)])
@pytest.mark.parametrize("path", sorted(set(PAGES.values())))
def test_nothing_in_a_picture_overlaps_or_leaves_it(play, path, scheme, width):
    page = play(path, scheme=scheme, width=width).page
    faults = page.evaluate("""() => [...document.querySelectorAll('tformer-live svg')].flatMap((svg) => {
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim());
      const boxes = texts.map((t) => t.getBoundingClientRect());
      const name = (svg.getAttribute('aria-label') ?? '').slice(0, 30);
      return texts.flatMap((t, i) => {
        const found = [];
        if (boxes[i].left < frame.left - 2 || boxes[i].right > frame.right + 2) found.push('leaves');
        if (parseFloat(getComputedStyle(t).fontSize) < 11.5) found.push('is small');
        const across = (b) => Math.min(b.right, boxes[i].right) - Math.max(b.left, boxes[i].left);
        const down = (b) => Math.min(b.bottom, boxes[i].bottom) - Math.max(b.top, boxes[i].top);
        if (boxes.some((b, j) => j < i && across(b) > 1 && down(b) > 4)) found.push('overlaps');
        return found.map((fault) => `${name}: ${t.textContent} ${fault}`);
      });
    })""")
    assert faults == []
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= width


def test_a_chapter_has_its_figure_behind_the_drawing_and_loads_nothing_before(visit):
    page = visit("book/attention/chapter.html").page
    assert page.evaluate("() => window.TformerMaths === undefined")
    details = page.locator('details[data-try="soft-dictionary"]')
    after = details.evaluate("e => !!e.previousElementSibling.querySelector('#fig-attention-lookup')")
    assert after
    details.locator("summary").click()
    details.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)


def test_pages_without_figures_have_no_script_for_them(site):
    assert "live/load.js" in (site / "book/play.html").read_text("utf8")
    assert "live/load.js" not in (site / "book/glossary.html").read_text("utf8")


def test_without_scripts_and_on_paper_there_is_the_drawing(visit):
    page = visit("book/attention/chapter.html", scripts=False).page
    assert not page.locator('details[data-try="soft-dictionary"]').is_visible()
    assert page.locator("#fig-attention-lookup").is_visible()
    page = visit("book/attention/chapter.html").page
    page.emulate_media(media="print")
    assert not page.locator('details[data-try="soft-dictionary"]').is_visible()


def test_figures_work_from_a_file(browser, site):
    context = browser.new_context()
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((site / "book" / "play.html").as_uri())
    figure = page.locator('details[data-try="the-root"]')
    figure.scroll_into_view_if_needed()
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    context.close()
    assert problems == []


def test_a_screen_reader_hears_names_values_and_the_sentence(play):
    figure = play(name="soft-dictionary").page.locator('details[data-try="soft-dictionary"]')
    tree = figure.aria_snapshot()
    for part in (
        'slider "Query q"',
        'slider "Bandwidth h"',
        'img "Five temperatures',
        "At 7:00 the answer is 9.4°",
    ):
        assert part in tree
    assert figure.get_by_label("Query q").get_attribute("aria-valuetext") == "7:00"


@pytest.fixture(scope="module")
def exported():
    """What the page computes with, and a GPT of the library with the same weights."""
    return from_json(FILE.read_text("utf8")), live_model()[0]


def stepped(browser, tokens: list[int], silent: list[str]) -> dict:
    """What model.js says at the last of these tokens, and the logits at all of them."""
    context = browser.new_context()
    page = context.new_page()
    page.add_script_tag(path=LIVE / "model.js")
    page.add_script_tag(content=as_script(FILE.read_text("utf8")))
    found = page.evaluate(
        """([tokens, silent]) => {
          const model = new TformerGPT(TformerModel);
          const cache = model.newCache();
          const all = tokens.map((token) => model.step(token, cache, new Set(silent)));
          return {...all.at(-1), every: all.map((step) => step.logits)};
        }""",
        [tokens, silent],
    )
    context.close()
    return found


@pytest.mark.parametrize("silent", [[], ["0:1"], ["1:0", "1:3", "3:2"]], ids=str)
def test_the_model_in_the_page_is_the_librarys(browser, exported, silent):
    content, model = exported
    chance = torch.Generator().manual_seed(len(silent))
    tokens = torch.randint(len(content["letters"]), (1, content["context"]), generator=chance)
    heads = [tuple(map(int, name.split(":"))) for name in silent]
    stack, read = model.transformer, {}
    hooks = [
        block.register_forward_hook(lambda _, __, out, n=n: read.update({n: out}))
        for n, block in enumerate(stack.blocks)
    ]
    with torch.no_grad(), mask_heads(model, heads):
        wanted = model(tokens)[0]
        lens = [stack.final_norm(read[n]) @ model.embed.weight.T for n in range(len(stack.blocks))]
    for hook in hooks:
        hook.remove()
    found = stepped(browser, tokens[0].tolist(), silent)
    torch.testing.assert_close(torch.tensor(found["every"]), wanted, atol=1e-4, rtol=0)
    for here, there in zip(found["lens"], lens, strict=True):
        torch.testing.assert_close(torch.tensor(here), there[0, -1], atol=1e-4, rtol=0)
    weights = torch.tensor(found["attention"])  # (blocks, heads, tokens read)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 4))


def test_the_weights_in_the_page_are_those_of_attention(browser, exported):
    content, model = exported
    tokens = torch.randint(len(content["letters"]), (1, 40), generator=torch.Generator().manual_seed(5))
    wanted = attention_weights(model, (tokens,))[0, :, :, -1]  # (blocks, heads, tokens read)
    found = torch.tensor(stepped(browser, tokens[0].tolist(), [])["attention"])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_the_recorded_logits_are_the_models(exported):
    content, model = exported
    text = (LIVE / "logits.js").read_text("utf8")
    logits = json.loads(text.removeprefix("window.TformerLogits = ").removesuffix(";\n"))
    assert logits["letters"] == content["letters"]
    for prompt in logits["prompts"]:
        ids = torch.tensor([[content["letters"].index(letter) for letter in prompt["text"]]])
        with torch.no_grad():
            wanted = model(ids)[0, -1]
        torch.testing.assert_close(torch.tensor(prompt["logits"]), wanted, atol=1e-3, rtol=0)


def test_the_page_of_the_model_says_what_was_recorded():
    results = recorded("live_model")["results"]
    page = (ROOT / "book" / "live_model.md").read_text("utf8")
    for number in (
        f"{results['parameters']:,}",
        f"{results['held_out']:.3f}",
        f"{results['held_out_eight_bits']:.3f}",
        f"{results['bytes'] / 1e6:.2f} MB",
        f"{results['steps']:,} steps",
        f"{min(recorded('shakespeare')['results']['ngram']['all plays'].values()):.2f}",
    ):
        assert number in page, number
    looks = results["looks"]
    assert max(max(row) for row in looks["before"]) == looks["before"][1][1]
    assert round(looks["before"][1][1], 2) == 0.67
    assert [round(looks["far"][m][0]) for m in (0, 3)] == [16, 18]
    assert sorted(chain(*looks["far"]))[-2:] == [looks["far"][m][0] for m in (0, 3)]
    rounded = [looks["bits"], looks["silent"][0][3], looks["blocks"][2] - looks["bits"]]
    assert [f"{x:.2f}" for x in rounded] == ["2.08", "4.02", "0.31"]
    assert "4.02 bits for a letter in place of 2.08" in page
    assert min(chain(*looks["silent"])) == looks["silent"][2][2]
    assert "head 3.3" in page
    assert f"{looks['silent'][2][2]:.2f}" == "2.10"
    assert round(100 * looks["changed"]) == 42
    assert results["held_out_eight_bits"] - results["held_out"] < 0.02
    assert results["bytes"] == len(as_script(FILE.read_text("utf8")))


def test_one_can_write_with_the_model_in_the_page(play):
    seen = play("book/live_model.html")
    figure = seen.page.locator('details[data-try="live-model"]')
    said = figure.locator(".tl-said")
    box = figure.get_by_label("Text that the model reads")
    box.fill("HAMLET:\nTo be, or not to b")
    seen.page.wait_for_function("e => /expects e/.test(e.textContent)", arg=said.element_handle())
    box.fill("a \N{SNOWMAN} b")
    assert "never met \N{SNOWMAN}" in figure.inner_text()
    box.fill("")
    assert re.search(r"expects .* \(\d+%\)", said.inner_text())
    box.fill("x" * 300 + "JULIET:\nO Romeo, Rom")
    before = box.input_value()
    figure.get_by_role("button", name="Write").click()
    figure.get_by_role("button", name="Stop").wait_for()
    figure.get_by_role("button", name="Write").wait_for(timeout=60_000)
    written = box.input_value()
    assert box.evaluate(
        "e => e.scrollHeight > e.clientHeight && e.scrollTop + e.clientHeight > e.scrollHeight - 24"
    )
    assert written.startswith(before)
    assert len(written) == len(before) + 200
    plain = said.inner_text()
    figure.get_by_role("button", name="Block 1, head 2").click()
    figure.get_by_role("button", name="Silence head 1.2").click()
    assert figure.get_by_role("button", name="Block 1, head 2, silenced").is_visible()
    assert said.inner_text() != plain
    assert said.inner_text().endswith("Silent: 1.2.")
    figure.get_by_role("button", name="Let head 1.2 speak").click()
    assert "Silent" not in said.inner_text()
    assert not seen.problems


def test_the_script_of_the_weights_is_base_64_of_as_many_bytes(exported):
    content, _ = exported
    data = json.loads(FILE.read_text("utf8"))["data"]
    shapes = [shape for _, shape in content["parameters"]]
    needed = sum(4 * s[0] + (s[0] * s[1] if len(s) == 2 else 0) for s in shapes)
    assert len(base64.b64decode(data)) == needed


def test_the_recorded_maps_are_weights_and_probabilities():
    text = (LIVE / "attention.js").read_text("utf8")
    maps = json.loads(text.removeprefix("window.TformerMaps = ").removesuffix(";\n"))
    assert {name: len(items) for name, items in maps.items()} == {"BERT": 3, "translator": 3, "ViT": 5}
    for items in maps.values():
        for item in items:
            weights = torch.tensor(item["weights"])  # (blocks, heads, queries, keys)
            blocks, heads, queries, keys = weights.shape
            torch.testing.assert_close(
                weights.sum(dim=-1), torch.ones(blocks, heads, queries), atol=0.01, rtol=0
            )
            assert set(item["answers"]) == {"", *(f"{m}:{h}" for m in range(blocks) for h in range(heads))}
            for rows in item["answers"].values():
                assert len(rows) == len(item["asked"])
                assert all(p[0][1] >= p[1][1] >= p[2][1] for p in rows)
            if "pixels" in item:
                assert (len(item["pixels"]), queries, keys) == (28 * 28, 1, 17)
            else:
                assert (len(item["asks"]), len(item["reads"])) == (queries, keys)


def test_the_record_of_the_maps_fits_them():
    text = (LIVE / "attention.js").read_text("utf8")
    maps = json.loads(text.removeprefix("window.TformerMaps = ").removesuffix(";\n"))
    for name, facts in recorded("attention_maps")["results"].items():
        answers = [item["answers"] for item in maps[name]]
        assert facts["asked"] == sum(len(rows[""]) for rows in answers)
        changed = sum(
            any(rows[key][n][0][0] != rows[""][n][0][0] for key in rows)
            for rows in answers
            for n in range(len(rows[""]))
        )
        assert facts["changed"] == changed


def test_a_head_can_be_chosen_and_silenced(play):
    figure = play(name="attention-explorer").page.locator('details[data-try="attention-explorer"]')
    said = figure.locator(".tl-said")
    for model, heads in (("BERT", 8), ("Translator", 8), ("Vision transformer", 18)):
        figure.get_by_role("button", name=model).click()
        assert figure.locator(".tl-heads button").count() == heads
        figure.get_by_role("button", name="Block 2, head 3").click()
        assert "Head 3 of block 2 reads most from" in said.inner_text()
        figure.get_by_label("Silence this head").check()
        assert figure.locator("svg text", has_text="without head 2.3").is_visible()
        figure.get_by_label("Show the mean of all heads of the block").check()
        assert "On average the heads of block 2" in said.inner_text()
        figure.get_by_label("Show the mean of all heads of the block").uncheck()
    figure.get_by_label("Example").select_option("3")
    patches = figure.locator("svg").first
    assert patches.is_visible()
    figure.get_by_role("button", name="Translator").click()
    assert not patches.is_visible()
    before = said.inner_text()
    figure.locator(".tl-words button").nth(3).click()
    assert said.inner_text() != before


def test_the_play_page_says_what_each_figure_teaches():
    page = " ".join((ROOT / "book" / "play.md").read_text("utf8").split())
    for name, figure in FIGURES.items():
        assert " ".join(figure["teaches"].split()) in page, name
        assert f"```{{live}} {name} ```" in page or name == "live-model"


def test_heads_that_the_task_speaks_of_are_there():
    text = (LIVE / "attention.js").read_text("utf8")
    for item in json.loads(text.removeprefix("window.TformerMaps = ").removesuffix(";\n"))["BERT"]:
        weights = torch.tensor(item["weights"])
        rows = len(item["asks"]) - 1
        for offset, head in ((-1, 3), (1, 1)):  # the token before, the token after
            shares = weights.diagonal(offset=offset, dim1=-2, dim2=-1).mean(dim=-1)
            assert shares.argmax() == head
            assert shares.max() > 0.55
            first = weights[0, head].argmax(dim=-1)  # what each token reads most
            neighbours = (first - torch.arange(rows + 1) == offset).sum()
            assert neighbours == (9 if rows == 10 else 14 if offset < 0 else 13)
            assert rows in (10, 18)


def test_letters_can_be_typed_and_the_circuit_taken_apart(play):
    figure = play(name="induction-explorer").page.locator('details[data-try="induction-explorer"]')
    said = figure.locator(".tl-said")
    figure.get_by_label("Step", exact=True).press("End")
    assert "reads place 2 (“c”) with 100%. The largest logit, 2.00: “c” (1 for" in said.inner_text()
    box = figure.get_by_label("Six to ten letters that the circuit reads")
    box.fill("hello hello")
    assert "Six to ten letters" in figure.locator(".tl-fault").inner_text()
    assert "“c”" in said.inner_text()
    box.fill("lamalam")
    assert figure.locator(".tl-fault").inner_text() == ""
    assert "“m” at place 6 reads place 3 (“a”)" in said.inner_text()
    figure.get_by_label("Head 1.0 compares with what").uncheck()
    assert "“m” at place 6 reads place 2 (“m”) with 50%" in said.inner_text()
    figure.get_by_label("Head 1.0 compares with what").check()
    figure.get_by_label("Head 0.0 is there").uncheck()
    assert "with 17%" in said.inner_text()
    figure.get_by_role("button", name="l, place 0").click()
    assert "“l” at place 0 reads place 0" in said.inner_text()


@pytest.fixture(scope="module")
def patches():
    text = (LIVE / "patching.js").read_text("utf8")
    assert len(text) < 40_000
    return json.loads(text.removeprefix("window.TformerPatches = ").removesuffix(";\n"))


def test_recorded_patches_restore_what_the_layers_allow(patches):
    assert [one["reads"] for one in patches] == ["all"] * 4 + ["end"] * 4
    for one in patches:
        changed = [a != b for a, b in zip(one["clean"], one["corrupted"], strict=True)]
        assert sum(changed) == 1
        at = changed.index(True)
        clean, corrupted = (torch.tensor(one["plain"][run]) for run in ("clean", "corrupted"))
        assert clean[0] > 0 > corrupted[0]  # both are answered rightly
        assert clean[1] > 0.5 < corrupted[2]
        for way, base, goal in (("denoise", corrupted, clean), ("noise", clean, corrupted)):
            grid = torch.tensor(one["encoder"][way])
            assert grid.shape == (3, len(one["clean"]), 3)
            torch.testing.assert_close(grid[0, at], goal, atol=2e-3, rtol=0)
            assert (grid[0, [s for s in range(8) if s != at]] - base).abs().max() < 2e-3
            written = torch.tensor(one["decoder"][way])
            assert written.shape == (3, len(one["written"]), 3)
            torch.testing.assert_close(written[-1, -1], goal, atol=2e-3, rtol=0)
            if one["reads"] == "end":
                torch.testing.assert_close(grid[-1, -1], goal, atol=2e-3, rtol=0)
        assert abs(sum(one["weights"]) - 1) < 0.01


def test_a_cell_of_the_board_can_be_chosen(play, patches):
    figure = play(name="patching-board").page.locator('details[data-try="patching-board"]')
    said = figure.locator(".tl-said")
    assert "restores 0% of the logit difference" in said.inner_text()
    figure.get_by_role("button", name="twenty / seventy, start: effect 1.00").click()
    assert "restores 100% of the logit difference" in said.inner_text()
    end = next(i for i, one in enumerate(patches) if one["reads"] == "end")
    figure.get_by_label("Model and pair").select_option(str(end))
    cells = figure.locator(".tl-grid button")
    assert cells.count() == 3 * 8
    last = figure.get_by_role("button", name="end, block 2: effect 1.00")
    last.focus()
    last.press("Enter")
    assert "The clean vector of “end” behind block 2 restores 100%" in said.inner_text()
    assert figure.locator('[data-cell="2:7"]').evaluate("e => e === document.activeElement")
    figure.get_by_label("Direction").select_option("noise")
    assert "destroys 100%" in said.inner_text()
    figure.get_by_label("Show what the decoder reads").check()
    assert "reads most from “end” (100%)" in said.inner_text()
    figure.get_by_label("Where to patch").select_option("decoder")
    assert cells.count() == 3 * len(patches[end]["written"])


def test_what_the_exercise_and_the_tasks_say_of_silenced_heads():
    text = (LIVE / "attention.js").read_text("utf8")
    maps = json.loads(text.removeprefix("window.TformerMaps = ").removesuffix(";\n"))
    one, two, three = (item["answers"] for item in maps["BERT"])
    of = {key: rows[0][0][1] for key, rows in one.items() if rows[0][0][0] == "of"}
    assert of.keys() == one.keys()
    assert [round(100 * of[key]) for key in ("", "0:3", "0:1")] == [70, 17, 28]
    assert min(p for key, p in of.items() if key not in ("0:3", "0:1")) > 0.62

    def turned(answers, place=0):
        return {key for key, rows in answers.items() if rows[place][0][0] != answers[""][place][0][0]}

    assert (turned(one), turned(two), turned(three)) == (set(), {"0:1"}, {"0:3"})
    assert [(a[""][0][0][0], round(100 * a[""][0][0][1])) for a in (two, three)] == [("in", 14), ("the", 5)]
    first = maps["translator"][0]
    assert len(first["asked"]) == 11
    changes = [n for n in range(11) if turned(first["answers"], n)]
    assert [first["asks"][n] for n in changes] == ["e"]
    digits = maps["ViT"]
    assert digits[0]["true"] == 7
    assert digits[0]["answers"][""][0][0] == ["2", 0.613]
    assert [len(turned(item["answers"])) for item in digits] == [8, 0, 0, 1, 0]
    assert all(digits[0]["answers"][key][0][0][0] == "7" for key in turned(digits[0]["answers"]))


PLACES = [
    ("bert/chapter", "attention-explorer", "BERT"),
    ("translation/laboratory", "attention-explorer", "Translator"),
    ("vit/chapter", "attention-explorer", "Vision transformer"),
    ("multi_head/chapter", "live-model", ""),
    ("gpt/chapter", "live-model", ""),
    ("modern_decoder/chapter", "live-model", ""),
    ("transformer/chapter", "the-machine", ""),
    ("play", "online-softmax", ""),
    ("scale/chapter", "calculator", ""),
    ("play", "sampler", ""),
]


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize(("chapter", "name", "model"), PLACES)
def test_a_link_opens_the_folds_around_its_figure_and_goes_there(visit, chapter, name, model, width):
    page = visit(f"book/{chapter}.html#try={name}", width=width).page
    figure = page.locator(f'details[data-try="{name}"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    assert figure.locator(".tl-said").is_visible()
    if model:
        assert figure.get_by_role("button", name=model).get_attribute("aria-pressed") == "true"
    eventually(page, lambda: 0 <= figure.bounding_box()["y"] <= 200)  # figures above it load and grow
    assert page.evaluate("() => document.activeElement.closest('details')?.dataset.try") == name
    before = page.evaluate("scrollY")
    page.mouse.move(width / 2, 880)
    page.mouse.wheel(0, -300)  # and then the reader may go
    eventually(page, lambda: page.evaluate("scrollY") < before - 200)


@pytest.mark.parametrize(
    ("name", "state"), [("the-cache", "written=9"), ("patching-board", "place=5"), ("calculator", "stage=3")]
)
def test_what_a_link_brings_reaches_no_task(visit, name, state):
    page = visit(f"book/play.html#try={name}&{state}").page
    figure = page.locator(f'details[data-try="{name}"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    wide = figure.locator("svg").last.bounding_box()["width"]
    page.set_viewport_size({"width": 500, "height": 800})  # it is drawn once more
    eventually(page, lambda: figure.locator("svg").last.bounding_box()["width"] != wide)
    assert figure.locator(".tl-done").count() == 0


def dragged(figure, picture: int, x: float, y: float, to: float) -> None:
    """Drags in a picture, from a place to another at the same height; places are shares of it."""
    drawing = figure.locator("svg").nth(picture)
    drawing.scroll_into_view_if_needed()
    box, mouse = drawing.bounding_box(), figure.page.mouse
    mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    mouse.down()
    mouse.move(box["x"] + to * box["width"], box["y"] + y * box["height"], steps=4)
    mouse.up()


def test_bars_and_dots_are_dragged_where_they_stand(play):
    page = play().page
    cache, days = (page.locator(f'details[data-try="{name}"]') for name in ("the-cache", "calculator"))
    length = cache.get_by_label("Length of text")
    before = length.get_attribute("aria-valuetext")
    dragged(cache, 1, 0.3, 0.2, 0.7)
    assert length.get_attribute("aria-valuetext") != before
    dragged(days, 0, 0.7, 0.8, 0.4)
    assert int(days.get_by_label("GPUs", exact=True).get_attribute("aria-valuetext").replace(",", "")) > 100


def test_a_link_on_the_same_page_changes_the_state(play):
    page = play(name="soft-dictionary").page
    page.evaluate("() => { location.hash = '#try=soft-dictionary&q=10.5'; }")
    page.wait_for_function("() => /At 10:30/.test(document.querySelector('.tl-said').textContent)")
    assert page.locator('details[data-try="soft-dictionary"] .tl-to-do').inner_text()  # and begins again


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_group_with_its_title_and_says_its_sentence_once(play, name):
    figure = play(PAGES[name], name).page.locator(f'details[data-try="{name}"]')
    tree = figure.aria_snapshot()
    assert f'group "{FIGURES[name]["title"]}"' in tree
    heard = figure.locator(".tl-heard").inner_text()
    assert heard == figure.locator(".tl-said").inner_text()
    assert tree.count(heard.replace('"', '\\"')) == 1
    assert not re.search("[\N{OPEN BOX}\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}]", heard)


MINUS_ZERO = re.compile(r"\N{MINUS SIGN}0(?:\.0+)?(?![\d.]*[1-9])(?!\.?\d)")


def test_there_is_no_minus_before_a_zero(play):
    page = play(name="two-heads").page
    shown = "([x, digits]) => TformerLive.number(x, digits)"
    for x, digits, wanted in ((-0.4, 0, "0"), (-1e-17, 2, "0.00"), (-0.05, 1, "\N{MINUS SIGN}0.1")):
        assert page.evaluate(shown, [x, digits]) == wanted
    assert page.evaluate(shown, [-1234.5, 1]) == "\N{MINUS SIGN}1,234.5"
    for name in FIGURES:
        if PAGES[name] == "book/play.html":
            figure = page.locator(f'details[data-try="{name}"]')
            figure.scroll_into_view_if_needed()
            figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    heads = page.locator('details[data-try="two-heads"]')
    heads.get_by_label("A second head").check()
    for slider, value in (
        ("Head 1, weight on +", 70),
        ("Head 1, weight on −", 30),
        ("Head 2, weight on +", 50),
        ("Head 2, weight on −", 50),
    ):
        heads.get_by_label(slider).fill(str(value))
    assert "Together they leave 0% of" in heads.locator(".tl-said").inner_text()
    sampler = page.locator('details[data-try="sampler"]')
    sampler.get_by_label("Top-k", exact=True).fill("1")
    assert sampler.locator(".tl-said").inner_text().endswith("Entropy 0.00 bits.")
    assert not MINUS_ZERO.search(page.locator("article").inner_text())


def test_sharing_of_heads_stays_as_it_was(play):
    figure = play(name="the-machine").page.locator('details[data-try="the-machine"]')
    figure.get_by_label("Start from").select_option("Llama 3 8B")
    heads = figure.get_by_label("Heads, H")
    heads.focus()
    sizes = []
    for _ in range(4):
        count = int(heads.get_attribute("aria-valuetext"))
        assert count % 4 == 0
        attention = figure.get_by_role("button", name=re.compile("^attention: ")).get_attribute("aria-label")
        assert f"keys and values: {count // 4} heads of" in attention
        sizes.append(number_in(r"([\d.]+) billion parameters", figure.locator(".tl-said").inner_text()))
        heads.press("ArrowRight")
    assert len(set(sizes)) == 4
    assert sizes == sorted(sizes)
    figure.get_by_label("Start from").select_option("GPT-3 175B")
    heads.fill(str(math.log2(192)))
    assert heads.get_attribute("aria-valuetext") == "192"


def test_a_link_keeps_the_model_that_a_machine_was_made_from(play, visit):
    page = play(name="the-machine").page
    figure = page.locator('details[data-try="the-machine"]')
    figure.get_by_label("Start from").select_option("Llama 3 8B")
    figure.get_by_label("Blocks, M").press("ArrowRight")
    said = figure.locator(".tl-said").inner_text()
    assert said.startswith("A machine made from Llama 3 8B, D = 4096: 8.25 billion")
    figure.get_by_role("button", name="Link to this state").click()
    page.wait_for_function("() => location.hash.includes('try=')")
    again = visit(f"book/play.html{page.evaluate('() => location.hash')}").page.locator(
        'details[data-try="the-machine"]'
    )
    again.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    assert again.locator(".tl-said").inner_text() == said


def test_scores_can_come_in_order_and_rises_are_counted(play):
    figure = play(name="online-softmax").page.locator('details[data-try="online-softmax"]')
    figure.get_by_label("Keys in a tile", exact=True).fill("1")
    figure.get_by_label("Tiles read", exact=True).press("End")
    said = figure.locator(".tl-said")
    figure.get_by_label("The scores come").select_option("up")
    assert "The maximum has risen 8 times." in said.inner_text()
    figure.get_by_label("The scores come").select_option("down")
    assert "The maximum has risen once." in said.inner_text()
    figure.get_by_role("button", name="Other numbers").click()
    assert said.inner_text().startswith("All tiles read")
    figure.get_by_label("Keys in a tile", exact=True).fill("8")
    assert figure.get_by_label("Tiles read", exact=True).get_attribute("aria-valuetext") == "1 of 1"


def test_the_root_shows_its_lesson_at_once(play):
    figure = play(name="the-root").page.locator('details[data-try="the-root"]')
    said = figure.locator(".tl-said")
    width = figure.get_by_label("Width of query and keys")

    def keys() -> float:
        return float(re.search(r"as much as ([\d.]+) keys", said.inner_text())[1])

    width.fill("8")
    many = keys()
    figure.get_by_label("Divide the scores").uncheck()
    assert keys() < 1.2 < 5 < many
    width.fill("0")  # a root of one changes nothing
    plain = said.inner_text().replace("without the root", "with the root")
    figure.get_by_label("Divide the scores").check()
    assert said.inner_text() == plain


def test_the_clocks_say_their_angles(play):
    figure = play(name="rotary-clocks").page.locator('details[data-try="rotary-clocks"]')
    figure.get_by_label("Place of the query, n").fill("0")
    figure.get_by_label("Place of the key, s").fill("44")
    row = figure.locator("tbody tr").first
    assert row.locator("td").nth(0).inner_text() == "0.000"
    assert row.locator("td").nth(1).inner_text() == "0.018 + 7 turns"
    figure.get_by_label("Place of the key, s").fill("299")
    figure.get_by_role("button", name="Both ten places on").click()
    assert "offset n − s = −299" in figure.locator(".tl-said").inner_text()


def test_results_are_in_the_sentence_and_signs_have_names(play):
    page = play().page
    said = {name: page.locator(f'details[data-try="{name}"] .tl-said') for name in FIGURES}
    assert "13.3% of the operations go into scores" in said["the-machine"].inner_text()
    assert "the cache of Llama 3 8B takes" in said["the-cache"].inner_text()
    assert "The four products" in said["rotary-clocks"].inner_text()
    sampler = page.locator('details[data-try="sampler"]')
    sampler.get_by_label("Top-k", exact=True).fill("3")
    assert "3 letters can come: s with" in said["sampler"].inner_text()
    sampler.get_by_label("Temperature", exact=True).fill("1.6")
    sampler.get_by_label("Top-k", exact=True).fill("0")
    sampler.get_by_label("After the text").select_option("3")
    assert "first of all a space with" in said["sampler"].inner_text()
    sampler.get_by_role("button", name="Draw 50 letters").click()
    told = sampler.locator(".tl-drawn").aria_snapshot()
    assert "a space" in told
    assert "\N{OPEN BOX}" not in told
    explorer = page.locator('details[data-try="attention-explorer"]')
    explorer.get_by_role("button", name="Block 1, head 4").click()
    explorer.get_by_label("Silence this head").check()
    assert (
        "Without head 1.4 the answer in the hole stays “of”, with 17% instead of 70%"
        in said["attention-explorer"].inner_text()
    )
    assert "97%" in explorer.locator(".tl-words").nth(1).inner_text()  # for the ear
    hand = page.locator('details[data-try="attention-by-hand"]')
    box = hand.get_by_label("dog, number 1")
    box.fill("12")
    box.blur()
    assert box.input_value() == "0"
    hand.get_by_label("Step", exact=True).press("End")
    assert "weight × 2nd" in hand.inner_text()


def test_start_again_and_typing_stop_the_writing(play):
    seen = play("book/live_model.html", alone=True)  # with a clock for itself
    figure = seen.page.locator('details[data-try="live-model"]')
    box = figure.get_by_label("Text that the model reads")
    start = box.input_value()
    write = figure.get_by_role("button", name="Write")
    stop = figure.get_by_role("button", name="Stop")
    far = write.bounding_box()["y"] - box.bounding_box()["y"]
    assert abs(far) < 260  # both are seen at once
    clock = seen.page.clock  # the page's time passes when we say so, however busy the machine is
    clock.install(time=0)
    clock.pause_at(1000)
    write.click()
    clock.run_for(1000)
    assert len(start) + 30 <= len(box.input_value()) <= len(start) + 50  # some 36 a second,
    assert stop.is_visible()  # slow enough to be watched
    figure.get_by_role("button", name="Start again").click()
    clock.run_for(500)
    assert write.is_visible()
    assert box.input_value() == start
    write.click()
    clock.run_for(200)
    box.focus()  # who goes to the text is not disturbed there
    at_rest = box.input_value()
    clock.run_for(500)
    assert write.is_visible()
    assert box.input_value() == at_rest != start
    write.click()
    clock.run_for(200)
    box.fill("LEAR:\n")
    clock.run_for(500)
    assert write.is_visible()
    assert box.input_value() == "LEAR:\n"
    write.click()
    clock.run_for(10_000)
    assert write.is_visible()  # it ends by itself
    assert len(box.input_value()) == 6 + 200
    write.click()
    clock.run_for(300)
    stop.click()
    at_rest = box.input_value()
    clock.run_for(500)
    assert box.input_value() == at_rest
    figure.get_by_role("button", name="One letter").click()
    count = len(box.input_value())
    figure.get_by_role("button", name="One letter").click()
    assert len(box.input_value()) == count + 1
    box.fill("the queen is")
    said = figure.locator(".tl-said").inner_text()
    assert "a space (" in said
    assert "a space " in figure.locator(".tl-lens").get_attribute("aria-label")
    assert not seen.problems


def test_buttons_stay_where_they_are_while_it_writes(play):
    page = play("book/live_model.html", width=360).page
    figure = page.locator('details[data-try="live-model"]')
    box = figure.get_by_label("Text that the model reads")
    again = figure.get_by_role("button", name="Start again")

    def place() -> float:
        return again.bounding_box()["y"] - figure.bounding_box()["y"]

    box.fill("a")
    figure.get_by_role("button", name="One letter").click()
    said, first = figure.locator(".tl-said"), place()
    for text in ("the queen is\n" * 4, "ROMEO:\n" + "it is the east " * 30, "b"):
        height = said.bounding_box()["height"]
        box.fill(text)
        figure.locator(".tl-said:not(:empty)").wait_for()
        grown = said.bounding_box()["height"] - height
        assert grown >= 0
        assert place() - first == pytest.approx(grown, abs=1)  # the sentence alone may take a line more
        first = place()
    narrow = said.bounding_box()["height"]
    page.set_viewport_size({"width": 1280, "height": 900})  # fewer lines: no room is left over
    eventually(page, lambda: said.bounding_box()["height"] < narrow)


def test_where_motion_is_unwanted_the_text_is_written_at_once(visit):
    page = visit("book/live_model.html").page
    page.emulate_media(reduced_motion="reduce")
    figure = page.locator('details[data-try="live-model"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    box = figure.get_by_label("Text that the model reads")
    before = len(box.input_value())
    figure.get_by_role("button", name="Write").click()
    figure.get_by_role("button", name="Write").wait_for(timeout=60_000)
    assert len(box.input_value()) == before + 200


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("attention-explorer", "Who reads: choose a token"),
        ("attention-explorer", "Heads: which one is shown"),
        ("induction-explorer", "Who asks: choose a letter"),
        ("patching-board", None),
    ],
)
def test_what_is_chosen_can_be_seen_and_heard(play, name, group):
    figure = play(name=name).page.locator(f'details[data-try="{name}"]')
    figure.scroll_into_view_if_needed()
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    within = figure.get_by_role("group", name=group) if group else figure.locator(".tl-grid")
    for place in (0, 2):
        button = within.get_by_role("button").nth(place)
        button.click()
        assert within.locator('[aria-pressed="true"]').count() == 1
        assert "[pressed]" in within.aria_snapshot()
        assert within.get_by_role("button").nth(place).get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize(
    ("name", "slider", "steps"),
    [
        ("online-softmax", "Tiles read", 4),
        ("attention-by-hand", "Step", 4),
        ("induction-explorer", "Step", 3),
    ],
)
def test_a_control_stays_under_the_pointer(play, name, slider, steps):
    figure = play(name=name).page.locator(f'details[data-try="{name}"]')
    figure.scroll_into_view_if_needed()
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    control = figure.get_by_label(slider, exact=True)
    top = figure.locator("summary")
    places = []
    for step in range(steps + 1):
        control.fill(str(step))
        places.append(control.bounding_box()["y"] - top.bounding_box()["y"])
    assert max(places) - min(places) < 2


def test_an_error_that_is_left_is_not_shown_as_none(play):
    heads = play(name="two-heads").page.locator('details[data-try="two-heads"]')
    heads.scroll_into_view_if_needed()
    heads.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    heads.get_by_label("A second head").check()
    for slider, value in (
        ("1, weight on +", 90),
        ("1, weight on −", 10),
        ("2, weight on +", 0),
        ("2, weight on −", 90),
    ):
        heads.get_by_label(f"Head {slider}").fill(str(value))
    assert "Together they leave 0.13% of" in heads.locator(".tl-said").inner_text()


def test_the_model_has_met_speakers_in_the_form_in_which_it_is_asked():
    from tformer_book.kit.data.text import shakespeare

    start = re.search(r'text: "(\w+:)\\n', (ROOT / "book/site/static/live/live_model.js").read_text("utf8"))
    assert shakespeare("train").count(f"\n{start.group(1)}\n") > 20


def test_letters_are_coloured_by_how_much_they_surprised_the_model(play, exported):
    content, model = exported
    figure = play("book/live_model.html").page.locator('details[data-try="live-model"]')
    text = "JULIET:\nO Romeo, Romeo, wherefore art thou xylophone"
    figure.get_by_label("Text that the model reads").fill(text)
    ids = torch.tensor([[content["letters"].index(letter) for letter in text]])
    with torch.no_grad():
        p = model(ids)[0, :-1].softmax(dim=-1)
    bits = -p[torch.arange(len(text) - 1), ids[0, 1:]].log2()
    drawn = figure.locator(".tl-behind span[style]")
    found = [
        float(style.split(":")[1]) for style in drawn.evaluate_all("a => a.map(e => e.getAttribute('style'))")
    ]
    assert "".join(drawn.all_text_contents()) == text[1:]  # before the first letter nothing was expected
    wanted = (bits / 7).clamp(max=1)
    torch.testing.assert_close(torch.tensor(found), wanted, atol=0.006, rtol=0)
    assert wanted.max() == 1  # the x
    assert f"took it {bits.mean():.1f} bits each" in figure.locator(".tl-said").inner_text()


def test_what_is_reused_of_a_text_changes_nothing(play):
    """It keeps what it has read of a text's beginning, whatever is done to its end."""
    page = play("book/live_model.html").page
    figure = page.locator('details[data-try="live-model"]')
    box, said = figure.get_by_label("Text that the model reads"), figure.locator(".tl-said")
    texts = [
        "the queen",
        "the que",
        "the quarrel",
        "a" * 200 + "the quarrel",
        "the quarrel of",
        "xthe quarrel of",
        "",
    ]
    there = {}
    for text in texts:
        box.fill(text)
        there[text] = said.inner_text()
    for text in reversed(texts):
        box.fill("O, " * 20)
        box.fill(text)
        assert said.inner_text() == there[text], text


def test_strips_are_what_heads_read_and_the_lens_ends_at_the_answer(play, exported):
    content, model = exported
    figure = play("book/live_model.html").page.locator('details[data-try="live-model"]')
    text = figure.get_by_label("Text that the model reads").input_value()
    ids = torch.tensor([[content["letters"].index(letter) for letter in text]])
    weights = attention_weights(model, (ids,))[0, :, :, -1]
    with torch.no_grad():
        best = content["letters"][model(ids)[0, -1].argmax()]
    strips = figure.locator(".tl-strips button")
    assert strips.count() == 16
    for n, place in enumerate(strips.locator("path").evaluate_all("a => a.map(e => e.getAttribute('d'))")):
        drawn = [(float(x), float(h)) for x, h in re.findall(r"M([\d.]+) 24v-([\d.]+)", place)]
        row = weights[n // 4, n % 4]
        wanted = [(64 - len(row) + s + 0.5, 22 * (w / row.max()).item()) for s, w in enumerate(row)]
        high = {x: h for x, h in wanted if h > 0.3}
        assert high.keys() <= {x for x, _ in drawn}
        assert all(abs(h - dict(wanted)[x]) < 0.06 for x, h in drawn)
    lens = figure.locator(".tl-lens")
    assert f"Block 4: {best} " in lens.get_attribute("aria-label")
    assert lens.locator('path[stroke-width="3"]').count() == 3 - (
        lens.locator('rect[stroke-width="2"]').count() < 4
    )


def test_undo_takes_back_what_was_typed_and_what_was_written(play):
    page = play("book/live_model.html").page
    figure = page.locator('details[data-try="live-model"]')
    box, undo = figure.get_by_label("Text that the model reads"), figure.get_by_role("button", name="Undo")
    start = box.input_value()
    assert undo.is_disabled()
    box.press("End")
    box.press("Control+End")
    page.keyboard.type("y day")
    figure.get_by_role("button", name="One letter").click()
    assert box.input_value().startswith(start + "y day")
    assert len(box.input_value()) == len(start) + 6
    for text in (start + "y day", start + "y", start):  # a letter, a word, a word
        undo.click()
        assert box.input_value() == text
    assert undo.is_disabled()


def test_bars_heads_and_lens_follow_the_cursor(play):
    """What stands at a place of the text is what the model says of the text up to there."""
    figure = play("book/live_model.html").page.locator('details[data-try="live-model"]')
    box = figure.get_by_label("Text that the model reads")
    seen = (".tl-next", ".tl-strips path", ".tl-lens")
    shown = "all => all.map(e => e.textContent + e.getAttribute('d') + e.getAttribute('aria-label')).join()"

    def looks() -> list[str]:
        return [figure.locator(part).evaluate_all(shown) for part in seen]

    text = box.input_value()
    at_the_end = looks()
    box.fill(text[:14])
    wanted = looks()
    box.fill(text)
    assert looks() == at_the_end
    box.evaluate("e => { e.focus(); e.setSelectionRange(14, 14); }")
    eventually(figure.page, lambda: looks() == wanted)
    letter, bars = (
        figure.locator(part).bounding_box() for part in (".tl-behind span:nth-child(15)", ".tl-next")
    )
    assert bars["x"] == pytest.approx(letter["x"], abs=2)
    assert 0 < bars["y"] - letter["y"] - letter["height"] < 12
    figure.locator(".tl-reads span").nth(len(text) - 1).click()
    assert looks() == at_the_end
    figure.locator(".tl-reads span").nth(13).click()
    assert looks() == wanted
    figure.get_by_role("button", name="One letter").click()  # it goes on at the end
    assert box.input_value()[:-1] == text


def test_a_letter_of_the_lens_is_written_where_the_cursor_is(play):
    figure = play("book/live_model.html").page.locator('details[data-try="live-model"]')
    box = figure.get_by_label("Text that the model reads")
    text = box.input_value()
    last = figure.locator('.tl-lens rect[data-key="3 0"]')
    for at in (len(text), 14):
        figure.locator(".tl-reads span").nth(at - 1).click()
        letter = last.get_attribute("data-letter")
        last.click()
        assert box.input_value() == text[:at] + letter + text[at:]
        figure.get_by_role("button", name="Undo").click()
        assert box.input_value() == text


def test_the_text_can_be_cleared_and_comes_back(play):
    seen = play("book/live_model.html")
    figure = seen.page.locator('details[data-try="live-model"]')
    box = figure.get_by_label("Text that the model reads")
    text = box.input_value()
    figure.get_by_role("button", name="Clear").click()
    seen.page.keyboard.type("the queen")
    assert box.input_value() == "the queen"
    while figure.get_by_role("button", name="Undo").is_enabled():
        figure.get_by_role("button", name="Undo").click()
    assert box.input_value() == text
    assert not seen.problems


def test_what_a_silenced_head_spoils_is_said_beside_the_heads(play, exported):
    """In bits a letter of this text, which are those of the library."""
    content, model = exported
    figure = play("book/live_model.html").page.locator('details[data-try="live-model"]')
    text = figure.get_by_label("Text that the model reads").input_value()
    ids = torch.tensor([[content["letters"].index(letter) for letter in text]])

    def bits() -> float:
        with torch.no_grad():
            p = model(ids)[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])
        return -p.mean().item() / math.log(2)

    whole = bits()
    said = figure.locator(".tl-spoils")
    assert said.inner_text() == f"With all heads: {whole:.2f} bits a letter."
    below = figure.locator(".tl-reads").bounding_box()["y"]
    figure.get_by_role("button", name="Block 1, head 4").click()
    figure.get_by_role("button", name="Silence head 1.4").click()
    with mask_heads(model, [(0, 3)]):
        without = bits()
    assert without > whole
    assert said.inner_text() == f"Without 1.4: {without:.2f} bits a letter; with all heads {whole:.2f}."
    assert figure.locator(".tl-reads").bounding_box()["y"] == below


@pytest.mark.parametrize(("across", "down"), [(0, 200), (20, 200), (120, 10)])
def test_a_finger_that_scrolls_past_a_figure_changes_nothing(visit, across, down):
    page = visit("book/play.html", width=360, height=780, alone=True).page
    figure = page.locator('details[data-try="soft-dictionary"]')
    figure.evaluate("e => e.scrollIntoView()")  # it is built when it comes into view
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    figure.locator("svg").first.evaluate("e => e.scrollIntoView({ block: 'center' })")
    before = figure.locator(".tl-said").inner_text()
    grip = figure.locator("svg rect.tl-grip").bounding_box()
    x, y = grip["x"] + grip["width"] + 30, grip["y"] + 120
    touch = page.context.new_cdp_session(page)
    touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for n in range(1, 11):
        place = {"x": x + across * n / 10, "y": y - down * n / 10}
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [place]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    eventually(page, lambda: (figure.locator(".tl-said").inner_text() != before) == (across > down))


def test_the_picture_stays_where_it_is_when_a_task_is_reached(visit):
    page = visit("book/index.html", width=360, alone=True).page
    figure = page.locator('details[data-try="soft-dictionary"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    picture = figure.locator(".tl-stage svg")
    top = picture.evaluate("e => e.getBoundingClientRect().top - document.body.getBoundingClientRect().top")
    for values in ({"q": 10}, {"h": 0.3}, {"h": 11}):
        figure.locator("tformer-live").evaluate("(e, values) => e.change(values)", values)
        now = "e => e.getBoundingClientRect().top - document.body.getBoundingClientRect().top"
        assert picture.evaluate(now) == top
    assert figure.locator(".tl-done").count() == 3


@pytest.mark.parametrize("width", [360, 1440])
def test_the_lookup_shows_its_numbers_and_its_weights(visit, width):
    """The ball is over no number, the weights stand on a line, the ring has a name until it is dragged."""
    page = visit("book/index.html", width=width, alone=True).page
    figure = page.locator('details[data-try="soft-dictionary"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    name = figure.locator("svg text", has_text="bandwidth 1.5 h")
    assert name.count() == 1
    bars = 'svg rect[fill="var(--tformer-weights)"]'
    ends = figure.locator(bars).evaluate_all(
        "all => all.map(e => e.y.baseVal.value + e.height.baseVal.value)"
    )
    assert max(ends) - min(ends) < 0.01
    high = figure.locator(bars).evaluate_all("all => Math.max(...all.map(e => e.height.baseVal.value))")
    assert high == pytest.approx(0.66 * 40, abs=0.5)
    page.emulate_media(reduced_motion="reduce")
    for q in range(16, 81):
        hidden = figure.locator("tformer-live").evaluate(
            """(e, q) => {
              e.change({ q });
              const ball = e.querySelector("svg circle[r='9']").getBoundingClientRect();
              const is = (t) => /^\\d+°$/.test(t.textContent);
              const numbers = [...e.querySelectorAll("svg text")].filter(is);
              return numbers.filter((t) => {
                const box = t.getBoundingClientRect();
                return Math.min(box.right, ball.right) > Math.max(box.left, ball.left) + 2
                  && Math.min(box.bottom, ball.bottom) > Math.max(box.top, ball.top) + 4;
              }).map((t) => t.textContent);
            }""",
            q / 4,
        )
        assert hidden == [], q / 4
    figure.locator("tformer-live").evaluate("e => e.change({ h: 1 })")
    assert name.count() == 0


def test_the_live_model_s_buttons_are_as_high_as_a_finger(play):
    figure = play("book/live_model.html", width=360).page.locator('details[data-try="live-model"]')
    high = figure.locator(".tl-buttons button").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert len(high) == 6
    assert min(high) >= 44


SHIFTS = """() => { window.shifts = 0; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts += one.value;
}).observe({ type: "layout-shift" }); }"""


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("path", ["book/play.html", "book/live_model.html", "book/index.html"])
def test_nothing_moves_when_figures_come(visit, path, width):
    """A reader scrolls down: figures load before they are seen, into the room that was kept for them."""
    page = visit(path, width=width).page
    page.evaluate("document.fonts.ready.then(() => 0)")
    page.evaluate(SHIFTS)
    for details in page.locator("details[data-try]").all():
        details.evaluate("e => e.scrollIntoView({block: 'center'})")
        details.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    assert page.evaluate("shifts") <= 0.02


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", FIGURES)
def test_the_room_that_is_kept_for_a_figure_is_what_it_takes(play, name, width):
    figure = play(PAGES[name], name, width=width).page.locator(f'details[data-try="{name}"]')
    kept = FIGURES[name]["tall"][width < 576]
    figure.evaluate("e => { e.style.minHeight = 0; }")
    taken = figure.bounding_box()["height"]
    assert taken - 8 <= kept <= taken + 48, (taken, kept)


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (360, 740)])
def test_text_and_hands_are_on_the_first_screen(visit, width, height):
    page = visit("book/live_model.html", width=width, height=height).page
    figure = page.locator('details[data-try="live-model"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    seen = [figure.get_by_label("Text that the model reads"), figure.get_by_role("button", name="Write")]
    seen += [figure.locator(".tl-strips")] * (width > 1000)
    for part in seen:
        box = part.bounding_box()
        assert box["y"] + box["height"] <= height


def test_on_a_wide_screen_what_one_learns_stands_beside_its_figure(visit):
    page = visit("book/play.html", width=1440).page
    places = page.locator("section#play > section:has(> details)").evaluate_all("""all => all.map((part) =>
      ["h2", "p", "details"].map((name) => part.querySelector(name).getBoundingClientRect()).map(
        (box) => [box.left, box.right, box.top]))""")
    assert len(places) > 10
    for title, words, figure in places:
        assert max(title[1], words[1]) < figure[0]
        assert figure[1] - figure[0] == pytest.approx(604, abs=1)
        assert abs(title[2] - figure[2]) < 60
    page.set_viewport_size({"width": 1100, "height": 900})
    below = page.locator("section#play > section:has(> details)").first.evaluate(
        "part => part.querySelector('details').getBoundingClientRect().top"
        " - part.querySelector('p').getBoundingClientRect().bottom"
    )
    assert below > 0


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", [name for name in FIGURES if PAGES[name] == "book/play.html"])
def test_the_sliders_of_a_figure_are_of_one_length(play, name, width):
    figure = play(PAGES[name], name, width=width).page.locator(f'details[data-try="{name}"]')
    long = figure.locator("input[type=range]").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width).filter(Boolean)"
    )
    assert max(long, default=0) - min(long, default=0) <= 1, long


@pytest.mark.parametrize("width", [1440, 360])
def test_no_line_of_the_text_is_cut_at_the_box_s_edge(visit, width):
    page = visit("book/live_model.html", width=width, height=900).page
    figure = page.locator('details[data-try="live-model"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    box = figure.get_by_label("Text that the model reads")
    box.fill("A word, and a line.\n" * 12 + "Then")
    scrolled, line, kept, above = box.evaluate("""box => {
      const style = getComputedStyle(box);
      return [box.scrollTop, parseFloat(style.lineHeight), parseFloat(style.paddingTop),
        box.getBoundingClientRect().top - box.parentElement.getBoundingClientRect().top];
    }""")
    assert scrolled > 5 * line
    assert kept == 0
    assert (scrolled / line) % 1 == pytest.approx(0, abs=0.02)
    assert above >= 8
    end, bars, edge = (
        figure.locator(part).evaluate("e => e.getBoundingClientRect().bottom")
        for part in (".tl-behind span:last-child", ".tl-next", ".tl-paperlike")
    )
    assert end < bars <= edge


def test_nothing_is_empty_beside_box_and_lens(visit):
    page = visit("book/live_model.html", width=1440, height=900).page
    figure = page.locator('details[data-try="live-model"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    names = (".tl-writes", ".tl-key", ".tl-spoils", ".tl-lens", ".tl-reads")
    text, hands, heads, lens, chosen = (figure.locator(name).bounding_box() for name in names)
    ends = [box["y"] + box["height"] for box in (text, hands, heads, lens)]
    assert abs(ends[0] - ends[1]) < 12
    assert abs(ends[2] - ends[3]) < 32
    assert max(ends) <= chosen["y"] < max(ends) + 24
    assert chosen["width"] == pytest.approx(hands["x"] + hands["width"] - text["x"], abs=2)


def test_a_head_that_is_not_the_one_is_told_what_was_expected(play):
    figure = play("book/live_model.html").page.locator('details[data-try="live-model"]')
    asked = figure.locator(".tl-to-do")
    figure.locator("tformer-live").evaluate("e => e.change({ text: e.state.text + 'x'.repeat(100) })")
    assert asked.inner_text().startswith("Each strip is a head")
    figure.get_by_role("button", name="Block 2, head 3").click()
    assert asked.inner_text().startswith("Head 2.3 stays near the cursor. Tap the one")
    assert figure.locator(".tl-steps [role=status]").inner_text() == asked.inner_text()
    assert figure.locator(".tl-done").count() == 1
    figure.get_by_role("button", name="Block 4, head 1").click()
    assert figure.locator(".tl-done").count() == 2
    assert figure.locator(".tl-steps [role=status]").inner_text().startswith("Reached.")


def test_the_tasks_of_the_live_model_are_ticked_one_after_the_other(play):
    figure = play("book/live_model.html").page.locator('details[data-try="live-model"]')
    done = figure.locator(".tl-done")
    figure.get_by_role("button", name="Block 4, head 1").click()
    assert done.count() == 0  # this is the second
    figure.get_by_role("button", name="Write").click()
    eventually(figure.page, lambda: done.count() == 2)
    for name in ("3.3", "2.1"):
        block, head = name.split(".")
        figure.get_by_role("button", name=f"Block {block}, head {head}").click()
        figure.get_by_role("button", name=f"Silence head {name}").click()
    assert done.count() == 2
    figure.get_by_role("button", name="Block 1, head 4").click()
    figure.get_by_role("button", name="Silence head 1.4").click()
    assert done.count() == 3
    assert "missed at once" in figure.locator(".tl-to-do").inner_text()


def test_every_drawing_that_a_figure_stands_behind_is_there():
    names = re.compile(r'"name": "(fig-[\w-]+)"')
    there = {name for path in notebooks() for name in names.findall(path.read_text("utf8"))}
    assert {label for figure in FIGURES.values() for label in figure["after"]} <= there


def exercises() -> dict[str, tuple[str, str]]:
    """Each exercise with a figure, by label: the page that it is on, and its text."""
    found = {}
    for path in notebooks():
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            text = "".join(cell["source"])
            for box in re.findall(r"^:::\{exercise\}.*?^:::$", text, re.DOTALL | re.MULTILINE):
                if " · figure · about " in box:
                    found[re.search(r":label: (\S+)", box)[1]] = (
                        f"book/{path.parent.name}/{path.stem}.html",
                        box,
                    )
    return found


BEGINS = [(name, label) for name, figure in FIGURES.items() for label in figure["exercise"]]


def test_every_figure_has_an_exercise_and_every_exercise_with_a_figure_names_it():
    labels = [label for _, label in BEGINS]
    assert len(labels) == len(set(labels))
    assert set(labels) == exercises().keys()
    assert all(figure["exercise"] for figure in FIGURES.values())


def test_an_exercise_begins_in_a_state_of_its_figure(play):
    pages = {path: play(path).page for path in set(PAGES.values())}
    kinds = {bool: "boolean", int: "number", float: "number", str: "string"}
    for name, label in BEGINS:
        ask = "name => TformerLive.figures.get(name).state"
        state = pages[PAGES[name]].evaluate(ask, name)
        given = FIGURES[name]["exercise"][label] or {}
        assert given.keys() <= state.keys(), label
        there = "value => typeof value"
        for key, value in given.items():
            assert pages[PAGES[name]].evaluate(there, state[key]) == kinds[type(value)], (label, key)


@pytest.mark.parametrize(("name", "label"), BEGINS)
def test_figures_and_exercises_name_each_other(site, name, label):
    place = site / exercises()[label][0]
    page = lxml.html.parse(place)
    box = page.xpath(f"//section[@id='{label}']")[0]
    number = re.search(r"\d+\.\d+", box.xpath("./h2")[0].text_content())[0]
    link = box.xpath("./p/a[@data-opens] | ./noscript/p/a[@data-opens]")[0]
    assert dict(parse_qsl(link.get("data-opens")))["try"] == name
    address, _, anchor = link.get("href").partition("#")
    there = lxml.html.parse((place.parent / address).resolve()) if address else page
    assert there.xpath(f"//*[@id='{anchor}']")
    assert there.xpath(f"//details[@data-try='{name}']")
    boxes = [lxml.html.parse(site / PAGES[name])] + [page] * (not address)
    far = posixpath.relpath(exercises()[label][0], posixpath.dirname(PAGES[name]))
    for where, back in zip(boxes, (f"{far}#{label}", f"#{label}"), strict=False):
        figure = where.xpath(f"//details[@data-try='{name}']")[0]
        found = [a for a in figure.xpath(".//p/a") if a.get("href") == back]
        assert [re.search(r"[\d.]+$", a.text_content())[0] for a in found] == [number]
        assert "this figure." in found[0].getparent().text_content()


def begun(visit, label: str, **options):
    """The figure of an exercise in a chapter, opened by the link of the exercise when the page is at rest."""
    page = visit(f"{exercises()[label][0]}#{label}", alone=True, **options).page
    link = page.locator(f"[id='{label}'] > p > a[data-opens]")
    link.click()
    name = next(name for name, one in BEGINS if one == label)
    figure = page.locator(f'details[data-try="{name}"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    return figure


def test_an_exercise_opens_its_figure_and_the_figure_its_exercise(visit):
    figure = begun(visit, "ex-attention-unread")
    page = figure.page
    said = figure.locator(".tl-said")
    eventually(page, lambda: said.inner_text().startswith("Width 256, without the root"))
    eventually(page, lambda: figure.evaluate("e => e.contains(document.activeElement)"))
    figure.get_by_label("Width of query and keys").fill("3")
    figure.get_by_role("link", name="Exercise 2.").click()
    page.wait_for_url("**/exercises.html#ex-attention-unread")
    exercise = page.locator("#ex-attention-unread")
    link = exercise.locator("a[data-opens]")
    link.wait_for()
    eventually(page, lambda: 0 <= exercise.bounding_box()["y"] < 900)  # in view
    link.press("Enter")  # by keyboard; and back in the state of the exercise
    page.wait_for_url("**/chapter.html#try=the-root*")
    eventually(page, lambda: said.inner_text().startswith("Width 256, without"))


def test_without_scripts_an_exercise_leads_to_the_drawing(visit):
    page = visit("book/attention/exercises.html", scripts=False).page
    link = page.locator("#ex-attention-unread a[data-opens]")
    assert link.get_attribute("href") == "chapter.html#fig-attention-first-weights"


def test_where_figures_cannot_move_a_sentence_leads_to_their_drawings(visit):
    page = visit("book/play.html", scripts=False).page
    for name, figure in FIGURES.items():
        if PAGES[name] != "book/play.html":
            continue
        place = page.locator(f'details[data-try="{name}"]')
        assert not place.is_visible()
        said = place.locator("xpath=following-sibling::noscript[1]")
        links = said.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
        assert said.is_visible()
        assert [link.partition("#")[2] for link in links] == figure["after"]
        assert re.search(r"Figure \d", said.inner_text())
    page = visit("book/play.html").page
    assert not page.locator(".tl-paper").first.is_visible()
    page.emulate_media(media="print")
    assert page.locator(".tl-paper").first.is_visible()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scaled", ["true", "false"])
def test_the_bars_of_the_root_are_weights_and_gradients_of_autograd(visit, seed, scaled):
    chance = random.Random(f"{seed}{scaled}")
    state = f"log={chance.randrange(11)}&scaled={scaled}&seed={chance.randrange(1, 9999)}"
    page = visit(f"book/play.html#try=the-root&{state}").page
    figure = page.locator('details[data-try="the-root"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    drawn = figure.locator("tformer-live").evaluate("e => e.drawn")
    query = exact(drawn["q"]).requires_grad_()
    scores = exact(drawn["keys"]) @ query / (math.sqrt(len(query)) if scaled == "true" else 1)
    scores.retain_grad()
    weights = scores.softmax(dim=0)
    (weights @ exact(drawn["values"]) @ exact(drawn["g"])).backward()
    close(drawn["weights"], weights.detach())
    close(drawn["atScores"], scores.grad)
    close(drawn["atQuery"], query.grad)
    gains = exact(drawn["values"]) @ exact(drawn["g"])
    a = weights.detach()  # what the exercise derives bounds the gradients
    assert (scores.grad.abs() <= a * (1 - a) * (gains.max() - gains.min()) + 1e-12).all()
    assert abs(scores.grad.sum()) < 1e-9
    said = figure.locator(".tl-said").inner_text()
    length = float(re.search(r"At the query it has the length (?:below )?([\d.]+)\.$", said)[1])
    assert abs(length - query.grad.norm().item()) < 1.1e-4
    bars = figure.locator(".tl-gradient").evaluate_all(
        "all => all.map(r => [Number(r.getAttribute('y')), Number(r.getAttribute('height'))])"
    )
    zero = float(figure.locator(".tl-zero").get_attribute("y1"))
    tall = torch.tensor([height if y < zero else -height for y, height in bars])
    largest = tall.abs().max()
    if largest > 1:  # else the other setting has the greater gradients
        torch.testing.assert_close(
            tall / largest, (scores.grad / scores.grad.abs().max()).float(), atol=1e-3, rtol=0
        )
    ticks = figure.locator(".tl-tick")
    below, none, above = (float(text.replace("−", "-")) for text in ticks.all_text_contents())
    assert none == 0
    assert above == -below > 0
    up = zero - (float(ticks.nth(2).get_attribute("y")) - 5)  # in the picture's units, of the upper mark
    if largest > 1:
        assert (largest / up).item() == pytest.approx(scores.grad.abs().max().item() / above, rel=0.02)


def test_a_part_of_the_machine_says_its_shapes(visit):
    page = visit("book/play.html#try=the-machine&model=This+book%27s+modern+one&heads=4&width=32&N=23").page
    figure = page.locator('details[data-try="the-machine"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    figure.get_by_label("Start from").select_option("This book's modern one")
    figure.get_by_label("Tokens read, N").fill("4.5")
    model, shapes = MODERN.build(80).eval(), {}
    for block in model.transformer.blocks:
        block.self_attention.backend = Attend()  # shows its weights
    block = model.transformer.blocks[0]
    for part in (block, block.self_attention, block.mlp):
        for name, layer in [("whole", part), *part.named_modules()]:
            layer.register_forward_hook(
                lambda _, __, out, key=(part, name): shapes.update({key: tuple(out.shape)})
            )
    tokens = torch.arange(23)[None]
    with torch.no_grad():
        logits = model(tokens)[0]
        weights = attention_weights(model, (tokens,))
    told = figure.locator(".tl-shapes")
    part = {
        name.split(":")[0]: name
        for name in figure.locator("g.tl-part").evaluate_all(
            "all => all.map(g => g.getAttribute('aria-label'))"
        )
    }
    size = lambda shape: " × ".join(f"{n:,}" for n in shape)  # noqa: E731
    assert size(logits.shape) + " logits out" in part["head"]
    assert size(shapes[block.self_attention, "whole"][1:]) + " out" in part["attention"]
    assert f"Weights: {size(weights.shape[2:])}" in part["attention"]
    inside = {shape[1:] for (where, _), shape in shapes.items() if where is block.mlp}
    hidden = next(shape for shape in inside if shape[-1] != 128)
    assert f"twice {size(hidden)} inside" in part["MLP"]
    count = sum(p.numel() for p in block.mlp.parameters())
    assert f"{count:,} parameters in each block" in part["MLP"]
    gains = 2 * 32  # of queries and keys, which the machine has not
    count = sum(p.numel() for p in block.self_attention.parameters()) - gains
    assert f"{count:,} parameters in each block" in part["attention"]
    assert size(model.embed.weight.shape) in part["embeddings"]
    for act in ("hover", "focus", "tap"):
        button = figure.get_by_role("button", name=re.compile("^MLP: "))
        page.mouse.move(0, 0)
        figure.get_by_role("button", name="norm before attention: ").hover()
        assert told.inner_text().startswith("Norm before attention: 23 × 128 in and out")
        {"hover": button.hover, "focus": button.focus, "tap": button.click}[act]()
        assert told.inner_text() == part["MLP"]
        layer = figure.locator('[data-key="MLP"]')
        assert layer.get_attribute("stroke") == "currentColor"  # marked in the square
    figure.get_by_role("button", name="head: ").focus()
    page.keyboard.press("Shift+Tab")
    assert told.inner_text().startswith("Last norm")


def test_what_is_read_says_its_weight_when_it_is_chosen(play):
    figure = play(name="attention-explorer").page.locator('details[data-try="attention-explorer"]')
    page, said = figure.page, figure.locator(".tl-said")
    maps = json.loads(
        (LIVE / "attention.js").read_text("utf8").removeprefix("window.TformerMaps = ").removesuffix(";\n")
    )
    one = maps["BERT"][0]
    row = one["weights"][1][0][one["asked"][0]]
    reads = figure.get_by_role("group", name="What is read")
    assert reads.locator('[tabindex="0"]').count() == 1  # one stop of the tab key
    reads.get_by_role("button").nth(2).click()
    assert f"“{one['reads'][2]}” gets {100 * row[2]:.0f}%." in said.inner_text()
    page.keyboard.press("ArrowRight")
    assert f"“{one['reads'][3]}” gets {100 * row[3]:.0f}%." in said.inner_text()
    assert reads.locator('[aria-pressed="true"]').count() == 1
    figure.get_by_role("button", name="Vision transformer").click()
    assert " gets " not in said.inner_text()
    row = maps["ViT"][0]["weights"][0][0][0]
    patch = figure.get_by_role("button", name="patch 6:")
    patch.click()
    assert f"Patch 6 of 16 gets {100 * row[6]:.0f}%." in said.inner_text()
    page.keyboard.press("ArrowDown")
    assert "Patch 10 of 16 gets " in said.inner_text()
    assert page.evaluate("() => document.activeElement.dataset.key") == "10"


@pytest.mark.parametrize("how", ["mouse", "finger"])
def test_hands_can_be_dragged(visit, how):
    page = visit("book/positions/chapter.html#try=rotary-clocks", alone=how == "finger").page
    figure = page.locator('details[data-try="rotary-clocks"]')
    figure.locator(".tl-said:not(:empty)").wait_for(timeout=20_000)
    eventually(page, lambda: 0 <= figure.bounding_box()["y"] <= 200)  # it comes into view
    slider = {key: figure.get_by_label(f"Place of the {key}") for key in ("query, n", "key, s")}
    if how == "finger":
        touch = page.context.new_cdp_session(page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def act(kind: str, x: float, y: float) -> None:
        if how == "mouse":
            page.mouse.move(x, y)
            {"down": page.mouse.down, "up": page.mouse.up, "move": lambda: None}[kind]()
            return
        name = {"down": "touchStart", "move": "touchMove", "up": "touchEnd"}[kind]
        touch.send(
            "Input.dispatchTouchEvent",
            {"type": name, "touchPoints": [] if kind == "up" else [{"x": x, "y": y}]},
        )

    def turn(grip: int, radians: float) -> None:
        """Drags the tip of a hand around the middle of its dial."""
        tip = figure.locator(".tl-grip").nth(grip).bounding_box()
        dial = figure.locator('svg circle[opacity="0.5"]').nth(grip // 2).bounding_box()
        x0, y0 = (box + size / 2 for box, size in ((dial["x"], dial["width"]), (dial["y"], dial["height"])))
        x, y = tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] / 2
        at, far = math.atan2(y0 - y, x - x0), math.hypot(x - x0, y - y0)
        act("down", x, y)
        for n in range(1, 21):
            angle = at + radians * n / 20
            act("move", x0 + far * math.cos(angle), y0 - far * math.sin(angle))
        act("up", x0 + far * math.cos(angle), y0 - far * math.sin(angle))

    turn(0, 7.0)  # the fast hand of the query, more than once around: a radian a place
    assert slider["query, n"].get_attribute("aria-valuetext") == "12"
    assert slider["key, s"].get_attribute("aria-valuetext") == "2"
    turn(3, 2.0)  # the second hand of the key: a tenth of a radian a place
    assert slider["key, s"].get_attribute("aria-valuetext") == "22"
    turn(1, -30.0)
    assert slider["key, s"].get_attribute("aria-valuetext") == "0"
    assert "offset n − s = 12" in figure.locator(".tl-said").inner_text()


def slide(label: str, value: float):
    return lambda figure: figure.get_by_label(label, exact=True).fill(str(value))


def check(label: str, wanted: bool = True):
    return lambda figure: figure.get_by_label(label, exact=True).set_checked(wanted)


def choose(label: str, value: str):
    return lambda figure: figure.get_by_label(label, exact=True).select_option(value)


def press(name: str):
    return lambda figure: figure.get_by_role("button", name=name, exact=True).click()


def weigh(**shares: int):
    """Sets weights of the two heads, named as in the state of the figure."""
    names = {key: f"Head {1 + n // 2}, weight on {'+−'[n % 2]}" for n, key in enumerate("abcd")}
    return [slide(names[key], share) for key, share in shares.items()]


def patch(place: str):
    return lambda figure: figure.get_by_role("button", name=f"{place}: effect").click()


def point(name: str):
    return lambda figure: figure.get_by_role("button", name=re.compile(f"^{name}: ")).hover()


# What a reader does for each task of a figure, one list for each task.
DEEDS = {
    "the-machine": [
        [point("attention")],
        [slide("Heads, H", math.log2(24))],
        [slide("Tokens read, N", 13.45)],
    ],
    "patching-board": [
        [patch("twenty / seventy, start")],
        [choose("Model and pair", "4"), patch("end, block 1")],
        [check("Show what the decoder reads"), patch("twenty / seventy, start")],
    ],
    "induction-explorer": [
        [slide("Step", 3)],
        [check("Head 1.0 compares with what head 0.0 has written", False)],
        [check("Head 1.0 compares with what head 0.0 has written"), slide("Score of a match", 2)],
    ],
    "the-cache": [
        [slide("Words written", 9)],
        [check("Keep keys and values")],
        [slide("Length of text", 16.9)],
    ],
    "calculator": [[choose("Shared out", "1")], [slide("GPUs", 8)], [slide("Link, one way", 4)]],
    "soft-dictionary": [[slide("Query q", 10)], [slide("Bandwidth h", -1.3)], [slide("Bandwidth h", 2.4)]],
    "the-root": [
        [slide("Width of query and keys", 8), check("Divide the scores by the root of the width", False)],
        [check("Divide the scores by the root of the width")],
        [slide("Width of query and keys", 0)],
    ],
    "attention-by-hand": [
        [slide("Step", 4)],
        [slide("dog, number 1", 4), slide("dog, number 2", -2)],
        [check("Causal mask: nobody reads what comes later"), choose("Who asks", "0")],
    ],
    "two-heads": [
        weigh(b=0, a=100),
        [check("A second head"), *weigh(c=0, d=100)],
        weigh(a=34, b=33, d=34, c=33),
    ],
    "rotary-clocks": [
        [press("Both ten places on")],
        [slide("Place of the query, n", 3), slide("Place of the key, s", 4)],
        [slide("Place of the key, s", 300)],
    ],
    "gradient-back": [
        [slide("Blocks", 13)],
        [press("skip"), slide("Blocks", 64)],
        [press("before f")],
    ],
    "hidden-word": [
        [press("united")],
        [press("states")],
        [choose("Sentence", "2"), slide("Hidden word", 7)],
    ],
    "moved-patch": [
        [slide("To the right", -1)],
        [slide("To the right", 7)],
        [slide("To the right", 2), slide("Patch", 4)],
    ],
    "sampler": [
        [slide("Top-k", 3)],
        [slide("Top-k", 0), slide("Min-p", 0.6)],
        [choose("After the text", "1")],
    ],
    "online-softmax": [
        [press("Next tile"), press("Next tile")],
        [slide("Keys in a tile", 8)],
        [slide("Keys in a tile", 1), choose("The scores come", "down"), slide("Tiles read", 8)],
    ],
    "attention-explorer": [
        [press("Block 1, head 4")],
        [press("Block 1, head 2")],
        [press("Block 1, head 4"), check("Silence this head")],
    ],
    "attention-explorer, Translator": [
        [press("Block 2, head 4")],
        [check("Silence this head"), lambda figure: figure.locator('[data-row="6"]').click()],
    ],
    "attention-explorer, Vision transformer": [
        [press("Block 3, head 2"), check("Silence this head")],
        [choose("Example", "3"), press("Block 1, head 3")],
    ],
}


@pytest.fixture(params=DEEDS)
def with_tasks(request, play):
    """Starts a figure with tasks at some width, and what a reader does for them."""
    name, _, model = request.param.partition(", ")

    def start(**options):
        figure = play(PAGES[name], name, **options).page.locator(f'details[data-try="{name}"]')
        if model:
            press(model)(figure)
        return figure, DEEDS[request.param]

    return start


def test_tasks_are_reached_one_after_the_other(with_tasks):
    figure, deeds = with_tasks()
    done, said = figure.locator(".tl-done"), figure.locator(".tl-to-do")
    assert figure.locator(".tl-dot").count() == len(deeds)
    assert figure.locator("> .tl-task").count() == 1  # the link to exercises: no other task beside this one
    told = [said.inner_text()]
    for n, acts in enumerate(deeds):
        assert done.count() == n
        for act in acts:
            act(figure)
        assert done.count() == n + 1
        told.append(said.inner_text())
        assert figure.locator(".tl-steps [role=status]").text_content() == f"Reached. {told[-1]}"
    assert len(set(told)) == len(deeds) + 1
    press("Start again")(figure)
    assert done.count() == 0


@pytest.mark.parametrize(("width", "most"), [(1440, 620), (360, 640)])
def test_a_figure_and_its_controls_fit_a_screen_at_every_task(with_tasks, width, most):
    figure, deeds = with_tasks(width=width)
    first, last = figure.locator(".tl-steps"), figure.locator(".tl-panel")

    def height() -> float:
        end = last.bounding_box()
        return end["y"] + end["height"] - first.bounding_box()["y"]

    for acts in deeds:
        assert height() <= most
        for act in acts:
            act(figure)


def test_what_an_exercise_begins_with_is_nobodys_doing(visit):
    figure = begun(visit, "ex-attention-unread")  # as the first task wants it
    page, done = figure.page, figure.locator(".tl-done")
    page.set_viewport_size({"width": 700, "height": 900})  # drawn again
    eventually(page, lambda: done.count() == 0)
    press("Another draw")(figure)
    assert done.count() == 1


@pytest.mark.parametrize("width", [1440, 360])
def test_a_letter_of_the_circuit_stands_above_its_note(play, width):
    figure = play(name="induction-explorer", width=width).page.locator('[figure="induction-explorer"]')
    letters = figure.locator(".tl-cells button").all()
    notes = figure.locator('rect[data-key^="note "]').all()
    middles = [
        [box["x"] + box["width"] / 2 for box in (e.bounding_box() for e in row)] for row in (letters, notes)
    ]
    assert len(letters) == 7
    assert middles[0] == pytest.approx(middles[1], abs=2)


@pytest.mark.parametrize("name", FIGURES)
def test_a_slider_is_long_enough_for_a_hand(play, name):
    figure = play(PAGES[name], name, width=1440).page.locator(f'[figure="{name}"]')
    sliders = figure.locator('input[type="range"]:visible').all()
    assert all(slider.bounding_box()["width"] >= 72 for slider in sliders)


# Something that a reader changes in one step, and sees.
STEPS = {
    "soft-dictionary": {"q": 12},
    "the-root": {"log": 9},
    "attention-by-hand": {"step": 4, "x": "1,0,2,1,0,1,1,1"},
    "two-heads": {"a": 60, "b": 10},
    "rotary-clocks": {"n": 15, "s": 12},
    "the-machine": {"M": 40},
    "the-cache": {"cache": True, "written": 5},
    "attention-explorer": {"head": 1},
    "sampler": {"topK": 3},
    "moved-patch": {"right": 2},
    "gradient-back": {"norm": "pre"},
    "hidden-word": {"place": 7},
    "online-softmax": {"seen": 4},
    "induction-explorer": {"step": 3},
    "patching-board": {"item": "1"},
    "calculator": {"stage": "2"},
    "live-model": {"head": 0},
}
LOOKS = """e => JSON.stringify([...e.querySelectorAll('.tl-stage *')].map((node) => {
  const [one, before] = [getComputedStyle(node), getComputedStyle(node, '::before')];
  const styles = ['d', 'x', 'y', 'width', 'height', 'cx', 'cy', 'fill', 'fillOpacity', 'strokeWidth',
    'opacity', 'backgroundColor', 'transform'].map((name) => one[name]);
  return [...styles, before.width, ...['d', 'x2', 'y2'].map((name) => node.getAttribute(name))];
}))"""
AT_REST = """e => new Promise((done) => {
  const first = e.querySelector('.tl-stage svg *');
  const rests = () => first.isConnected && !e.getAnimations({ subtree: true }).length;
  requestAnimationFrame(() => requestAnimationFrame(() => done(rests())));
})"""


@pytest.mark.parametrize("how", ["a press", "a press without motion", "a drag"])
@pytest.mark.parametrize("name", FIGURES)
def test_what_is_drawn_arrives_by_a_motion_and_what_is_said_at_once(play, name, how):
    page = play(PAGES[name], name).page
    page.emulate_media(reduced_motion="reduce" if "without" in how else "no-preference")
    figure = page.locator(f'details[data-try="{name}"] tformer-live')
    eventually(page, lambda: figure.evaluate(AT_REST))
    before = figure.evaluate(LOOKS)
    if how == "a drag":
        page.evaluate("() => dispatchEvent(new PointerEvent('pointermove', { buttons: 1 }))")
    change = f"(e, step) => {{ e.change(step); return [({LOOKS})(e), e.said.textContent]; }}"
    drawn, said = figure.evaluate(change, STEPS[name])
    eventually(page, lambda: figure.evaluate(AT_REST))
    rest = figure.evaluate(LOOKS)
    assert rest != before
    assert (drawn != rest) == (how == "a press")
    assert figure.locator(".tl-said").text_content() == said


def drag(page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()


def middle(thing) -> tuple[float, float]:
    box = thing.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize("width", [1440, 360])
def test_a_token_and_a_head_can_be_dragged(play, width):
    page = play(name="attention-by-hand", width=width).page
    hand = page.locator('details[data-try="attention-by-hand"]')
    hand.locator("svg").first.scroll_into_view_if_needed()
    the, dog = (middle(hand.locator(".tl-grip").nth(n)) for n in (0, 1))
    unit, origin = the[0] - dog[0], (dog[0], the[1])
    drag(page, dog, (origin[0] + 3.5 * unit, origin[1] + 2 * unit))
    assert hand.get_by_label("dog, number 1").input_value() == "3.5"
    assert hand.get_by_label("dog, number 2").input_value() == "-2"
    page = play(name="two-heads", width=width).page
    heads = page.locator('details[data-try="two-heads"]')
    picture = heads.locator("svg")
    picture.scroll_into_view_if_needed()
    plus = picture.locator("text", has_text=re.compile(r"^\+$")).bounding_box()
    drag(page, middle(picture.locator(".tl-grip")), (plus["x"], plus["y"] + plus["height"] + 9))
    assert heads.locator(".tl-said").inner_text().startswith("Head 1 gives 100% to +, 0% to")


def number_in(pattern: str, text: str) -> float:
    return float(re.search(pattern, text)[1])


def test_what_the_solution_says_of_keys_that_are_not_read(visit):
    figure = begun(visit, "ex-attention-unread")
    said = figure.locator(".tl-said")
    assert "reads as much as 1.0 keys" in said.inner_text()
    assert "scores is below 0.0001" in said.inner_text()
    figure.get_by_label("Divide the scores").check()
    assert "reads as much as 10.1 keys" in said.inner_text()
    assert "scores is 0.0736" in said.inner_text()
    figure.get_by_label("Width of query and keys").fill("10")
    assert said.inner_text().endswith("At the query it has the length 0.3670.")
    figure.get_by_label("Divide the scores").uncheck()
    assert said.inner_text().endswith("At the query it has the length 6.5520.")
    drawn = figure.locator("tformer-live").evaluate("e => e.drawn")
    assert [round(a, 2) for a in sorted(drawn["weights"])[-2:]] == [0.32, 0.68]
    at_scores = sorted(drawn["atScores"], key=abs)
    assert at_scores[-1] * at_scores[-2] < 0 < 0.14 < abs(at_scores[-2])
    assert abs(at_scores[-3]) < 0.001


def test_what_the_solution_says_of_one_vector_for_three_roles(visit):
    figure = begun(visit, "ex-attention-roles")
    said = figure.locator(".tl-said")
    assert said.inner_text().endswith("hungry 0.84.")
    figure.get_by_label("dog, number 1").fill("4")
    figure.get_by_label("dog, number 2").fill("-2")
    assert "dog 0.97" in said.inner_text()
    figure.get_by_role("button", name="Start again").click()
    figure.get_by_label("Step", exact=True).fill("3")
    for who, read in (("was", "dog 0.33"), ("dog", "was 0.18")):
        figure.get_by_label("Who asks").select_option(label=who)
        assert read in said.inner_text()


def test_what_the_solution_says_of_sharp_matches(visit):
    figure = begun(visit, "ex-inside-sharp")
    said, sharp = figure.locator(".tl-said"), figure.get_by_label("Score of a match")
    wins = {}
    for score in (20, 4, 3, 2, 1):
        sharp.fill(str(score))
        wins[score] = re.search(r"largest logit, ([\d.]+): “(\w)” \(", said.inner_text()).groups()
    assert wins[3] == ("1.45", "c")
    assert wins[2] == ("1.47", "b")
    assert [wins[n][1] for n in (20, 4, 1)] == ["c", "c", "b"]
    sharp.fill("3")
    assert "reads place 2 (“c”) with 72%" in said.inner_text()
    figure.get_by_label("Step", exact=True).fill("1")
    assert "scores highest (2.7) at place 2" in said.inner_text()
    even = [math.exp(3), *[1] * 5, math.exp(-3)]
    assert round(100 * even[0] / sum(even)) == 80
    assert math.exp(2.2) - math.exp(-2.2) < 9 < math.exp(2.21) - math.exp(-2.21)
    sharp.fill("20")
    figure.get_by_label("Head 0.0 is there").uncheck()
    figure.get_by_label("Step", exact=True).fill("3")
    assert "with 17%" in said.inner_text()
    assert "The largest logit, 1.67: “b” (" in said.inner_text()


def test_what_the_solutions_say_of_heads_of_the_translator_and_of_the_vit(visit):
    text = (LIVE / "attention.js").read_text("utf8")
    maps = json.loads(text.removeprefix("window.TformerMaps = ").removesuffix(";\n"))
    one = maps["translator"][0]
    assert one["asks"][3:8] == ["␣T", "ai", "p", "e", "h"]
    weights = torch.tensor(one["weights"])[:, :, 3:8]  # of the pieces of the name
    least = weights[..., one["reads"].index("␣Taiwan")].amin(dim=-1)
    assert least[1, 3] > 0.985
    assert least.flatten().sort().values[-2] < 0.9
    answers = one["answers"]
    turned = {n for n in range(11) for key in answers if answers[key][n][0][0] != answers[""][n][0][0]}
    assert turned == {6}
    assert all(answers[key][6][0][0] != "p" for key in answers if key)
    assert [(a, round(100 * p)) for a, p in answers[""][6]] == [("p", 23), (".", 23), ("e", 14)]
    assert [round(100 * p) for _, p in answers[""][3][:2]] == [82, 7]
    assert round(math.log(82 / 7), 1) == 2.5
    figure = begun(visit, "ex-translation-heads")
    assert figure.get_by_role("button", name="Translator").get_attribute("aria-pressed") == "true"
    figure.get_by_role("button", name="Block 2, head 4").click()
    assert "Head 4 of block 2 reads most from “Taiwan” (100%)" in figure.locator(".tl-said").inner_text()
    digits = maps["ViT"]
    first = digits[0]["answers"]
    sevens = {key: rows[0][0][1] for key, rows in first.items() if rows[0][0][0] == "7"}
    assert len(sevens) == 8
    assert max(sevens, key=sevens.get) == "1:3"
    assert round(100 * sevens["1:3"]) == 85
    assert [(a, round(100 * p)) for a, p in first[""][0][:2]] == [("2", 61), ("7", 38)]
    peak = torch.tensor(digits[0]["weights"])[:, :, 0]  # (blocks, heads, the class token and the patches)
    assert (peak[..., 1:].amax(dim=-1) > 0.85).nonzero().tolist() == [[0, 0], [2, 1]]
    assert [peak[0, 0].argmax(), peak[2, 1].argmax()] == [6, 10]
    assert [round(100 * peak[where].max().item()) for where in ((0, 0), (2, 1), (1, 3))] == [86, 96, 23]
    without = [first[key][0][0] for key in ("2:1", "0:0")]
    assert [(a, round(100 * p)) for a, p in without] == [("7", 66), ("2", 89)]
    assert {key for key, rows in digits[3]["answers"].items() if rows[0][0][0] != "1"} == {"0:2"}
    assert digits[3]["answers"]["0:2"][0][0][0] == "6"
    assert all(item["answers"][""][0][0][1] > 0.985 for item in digits[1:])
    figure = begun(visit, "ex-vit-silence")
    assert figure.get_by_label("Silence this head").is_checked()


def test_what_the_solution_says_of_columns_that_move(visit):
    figure = begun(visit, "ex-vit-columns")
    page, said = figure.page, figure.locator(".tl-said")
    digit, omega = page.evaluate(
        "() => { const { digit, omega } = TformerLive.figures.get('moved-patch'); return [digit, omega]; }"
    )
    test, labels = mnist("test")
    torch.testing.assert_close(exact(digit).view(28, 28), (9 * test[8, 0]).round().double())
    assert labels[8] == 3

    def columns(right: int, down: int) -> torch.Tensor:
        image = torch.nn.functional.pad(exact(digit).view(1, 1, 28, 28), (right, -right, down, -down))
        assert image.sum() == sum(digit)  # no ink is lost
        return to_patches(image, 7)[0]

    before = columns(0, 0)
    ink = before.sum(dim=1) > 0
    assert ink.sum() == 8
    for move in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        assert not (columns(*move) == before).all(dim=1)[ink].any()
    assert torch.equal(columns(-7, 0)[:-1], before[1:])
    assert torch.equal(columns(7, 0)[1:], before[:-1])
    assert "Moved by 1 to the right: of 8 columns with ink none stand in their place." in said.inner_text()
    figure.get_by_label("To the right").fill("-7")
    assert "all 8 stand again, one place back" in said.inner_text()
    made = [int(x) for x in (exact(omega) @ columns(-7, 0)[6]).tolist()]
    told = re.findall(r"(\N{MINUS SIGN}?\d+)(?=,| and |\.$)", said.inner_text().partition("makes of it")[2])
    assert [int(x.replace("\N{MINUS SIGN}", "-")) for x in told] == made
    assert set(exact(omega).flatten().tolist()) == {-1, 0, 1}


@pytest.mark.parametrize("width", [1440, 360])
def test_a_digit_can_be_dragged_over_its_patches(play, width):
    figure = play(name="moved-patch", width=width).page.locator('details[data-try="moved-patch"]')
    grip = figure.locator(".tl-grip")
    grip.scroll_into_view_if_needed()
    unit = figure.locator("svg rect").first.bounding_box()["width"] / 28
    x, y = middle(grip)
    drag(figure.page, (x, y), (x - 4 * unit, y + 9 * unit))
    assert figure.get_by_label("To the right").get_attribute("aria-valuetext") == "4 left"
    assert figure.get_by_label("Down").get_attribute("aria-valuetext") == "3 down"  # as far as it goes
    columns = figure.locator("svg rect").last.bounding_box()  # the numbers of the chosen one
    figure.page.mouse.click(columns["x"] + 1.5 * columns["width"], columns["y"] + 20)
    assert figure.get_by_label("Patch", exact=True).get_attribute("aria-valuetext") == "8"


def test_what_the_solution_says_of_what_arrives(visit, gradients):
    figure = begun(visit, "ex-skip-norm-arrives")
    said = figure.locator(".tl-said")
    assert "10¹⁷ times as long as that at the end" in said.inner_text()
    at_64 = {kind: (lengths[63], own[63]) for kind, (lengths, own) in gradients.items()}
    assert round(10 ** (at_64["skip none"][0] / 64), 1) == 1.8
    sized = {kind for kind, (length, _) in at_64.items() if abs(length) < math.log10(20)}
    assert sized == {kind for kind in KINDS if not kind.endswith("none")}
    assert all(own < -14.5 for kind, (_, own) in at_64.items() if kind.startswith("alone"))
    for skip, norm, times, own in (
        ("skip", "before f", "6.4", "25%"),
        ("skip", "after", "0.65", "10⁻⁹"),
        ("no skip", "before f", "0.44", "Nothing"),
        ("no skip", "after", "12", "Nothing"),
    ):
        press(skip)(figure)
        press(norm)(figure)
        assert f"is {times} times as long" in said.inner_text()
        assert f"{own} of the tokens is their own" in said.inner_text()


def test_who_drags_too_far_is_told_so(play):
    figure = play(name="gradient-back").page.locator('details[data-try="gradient-back"]')
    asked = figure.locator(".tl-to-do")
    dragged(figure, 0, 0.12, 0.5, 0.95)
    assert int(figure.get_by_label("Blocks", exact=True).get_attribute("aria-valuetext")) > 50
    assert "Where does it fall below a millionth" in asked.inner_text()
    assert figure.locator(".tl-done").count() == 0


def test_what_the_solution_says_of_the_left_alone(visit, fillings):
    figure = begun(visit, "ex-bert-left-alone")
    said = figure.locator(".tl-said")
    assert "“united”" in said.inner_text()
    assert (
        "gives it less than 1%, and most to “following” (4%); with both sides 85%, more than"
        in said.inner_text()
    )
    one, four = fillings[0], fillings[3]
    gains = {
        word: round(both["true"] - left["true"], 3)
        for word, left, both in zip(one["words"], one["left"], one["both"], strict=True)
    }
    assert max(gains, key=gains.get) == "united"
    assert min(gains, key=gains.get) == "states"
    press("states")(figure)
    assert "gives it 69%, more than any other; with both sides 50%" in said.inner_text()
    first = {
        side: [w for w, asked in zip(four["words"], four[side], strict=True) if asked["best"][0][0] == w]
        for side in ("left", "both")
    }
    assert first == {"left": ["the", "country", "."], "both": ["of", "the", "of", "the", "country", "."]}


@pytest.mark.parametrize("width", [1440, 360])
def test_a_word_is_hidden_by_a_tap_and_heard_as_hidden(play, width):
    figure = play(name="hidden-word", width=width).page.locator('details[data-try="hidden-word"]')
    words = figure.get_by_role("group", name="The sentence: choose the word to hide")
    words.get_by_role("button", name="united").click()
    assert words.get_by_role("button", name="united, hidden").get_attribute("aria-pressed") == "true"
    assert words.locator("button").nth(6).inner_text() == "▢"
    assert figure.get_by_label("Hidden word", exact=True).get_attribute("aria-valuetext") == "7"
    drawn = figure.locator("svg text").all_text_contents()
    assert drawn.count("united") == 2  # at both sides, also where it is not among the likeliest
    figure.get_by_label("Sentence", exact=True).select_option("3")
    assert words.locator("button").first.get_attribute("aria-label") == "most, hidden"


def test_what_the_solution_says_of_a_word_letter_by_letter(visit):
    figure = begun(visit, "ex-gpt-letter-bits")
    box, said, p = figure.get_by_label("Text that the model reads"), figure.locator(".tl-said"), []
    start = box.input_value()
    assert start.endswith("wherefore art ")
    for n, letter in enumerate("thou "):
        box.fill(start + "thou "[:n])
        name = "a space" if letter == " " else letter
        p.append(int(number_in(rf"(?:^Next it expects |, | and ){name} \((\d+)%\)", said.inner_text())))
    assert p == [71, 97, 97, 99, 64]
    whole = math.prod(p) / 100**5
    assert (round(whole, 2), round(-math.log2(whole), 1), round(-math.log2(whole) / 5, 2)) == (
        0.42,
        1.2,
        0.25,
    )
    assert 2.8 < -math.log2(0.14) < 2.9
    box.fill(start + "thou ")
    assert number_in(r"^Next it expects \w \((\d+)%\)", said.inner_text()) == 14
    box.fill(start + "thou Rom")
    assert "e (55%), a (44%)" in said.inner_text()
