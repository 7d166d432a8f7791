"""Figures to touch: what they compute is the library's, and they work by mouse, keyboard, link and file."""

import base64
import gzip
import json
import math
import random
import re
from itertools import chain

import pytest
import torch
import yaml

from tests.site.pages import ROOT
from tformer_lib.analysis.ablation import mask_heads
from tformer_lib.analysis.weights import attention_weights
from tformer_lib.book.exercises.attention import nadaraya_watson
from tformer_lib.book.live import from_script
from tformer_lib.book.models.recipes import MODERN
from tformer_lib.book.published import PUBLISHED, forward_flops_per_token
from tformer_lib.book.recorded import recorded
from tformer_lib.core.attention import Attend
from tformer_lib.core.positions import Rotary
from tformer_lib.efficient.latent import MultiHeadLatentAttention
from tformer_lib.efficient.tiled import TiledAttend
from tformer_lib.generation.sampling import next_token_probabilities

LIVE = ROOT / "book" / "_static" / "live"
FIGURES = yaml.safe_load((ROOT / "book" / "live.yml").read_text("utf8"))
DATA = ("model_weights.js", "logits.js", "attention.js")  # numbers, not programs
PAGES = {name: f"book/{'live_model' if name == 'live-model' else 'play'}.html" for name in FIGURES}
GREATEST = 60_000  # bytes of all programs and the style sheet, compressed


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
    counted = maths("parameters", models["This book's (8b)"])
    heads = 2 * MODERN.config.n_blocks * 32  # the gains of queries and keys, which the machine has not
    assert sum(counted.values()) == count - heads


def test_the_caches_sizes_are_those_of_the_layers(maths, play):
    models = play(name="the-cache").page.evaluate("() => TformerLive.figures.get('the-cache').models")
    m = models["DeepSeek-V3"]
    with torch.device("meta"):
        layer = MultiHeadLatentAttention(
            7168, m["H"], d_latent=m["latent"], d_head=m["Dh"], d_rotary=m["rope"]
        )
    assert maths("cacheNumbers", m) == m["M"] * layer.cached_per_token
    for name in ("GPT-3 175B", "Llama 3 8B"):
        c = PUBLISHED[name].config
        kv = c.n_kv_heads or c.n_heads
        assert maths("cacheNumbers", models[name]) == 2 * c.n_blocks * kv * c.d_model // c.n_heads


def test_programs_are_small():
    programs = [path for path in LIVE.iterdir() if path.name not in DATA]
    assert len(gzip.compress(b"".join(path.read_bytes() for path in programs))) < GREATEST
    for name in DATA:
        assert (LIVE / name).stat().st_size < 1_600_000


def test_every_program_is_used():
    used = {script for figure in FIGURES.values() for script in figure["scripts"]}
    there = {path.name for path in LIVE.glob("*.js")}
    assert used | {"load.js", "core.js", "maths.js"} == there


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
      const name = svg.getAttribute('aria-label').slice(0, 30);
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
    page = visit("book/02_attention.html").page
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
    page = visit("book/02_attention.html", scripts=False).page
    assert not page.locator('details[data-try="soft-dictionary"]').is_visible()
    assert page.locator("#fig-attention-lookup").is_visible()
    page = visit("book/02_attention.html").page
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
    content = from_script((LIVE / "model_weights.js").read_text("utf8"))
    model = MODERN.build(len(content["letters"]))
    model.load_state_dict(content["weights"])
    for block in model.transformer.blocks:
        block.self_attention.backend = Attend()  # which shows its weights
    return content, model.eval()


def stepped(browser, tokens: list[int], silent: list[str]) -> dict:
    """What model.js says at the last of these tokens, and the logits at all of them."""
    context = browser.new_context()
    page = context.new_page()
    for file in ("model.js", "model_weights.js"):
        page.add_script_tag(path=LIVE / file)
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
    assert [f"{x:.1f}" for x in rounded] == ["2.1", "4.0", "0.3"]
    assert f"{looks['silent'][3][3]:.2f}" == "2.13"
    assert round(100 * looks["changed"]) == 42
    assert results["held_out_eight_bits"] - results["held_out"] < 0.02
    assert results["bytes"] == (LIVE / "model_weights.js").stat().st_size


def test_one_can_write_with_the_model_in_the_page(play):
    seen = play("book/live_model.html")
    figure = seen.page.locator('details[data-try="live-model"]')
    said = figure.locator(".tl-said")
    box = figure.get_by_label("Text that the model reads")
    box.fill("HAMLET.\nTo be, or not to b")
    seen.page.wait_for_function("e => /expects e/.test(e.textContent)", arg=said.element_handle())
    box.fill("a \N{SNOWMAN} b")
    assert "never met \N{SNOWMAN}" in figure.inner_text()
    box.fill("")
    assert re.search(r"expects .* \(\d+%\)", said.inner_text())
    box.fill("x" * 300 + "JULIET.\nO Romeo, Rom")
    before = box.input_value()
    figure.get_by_role("button", name="Write").click()
    figure.get_by_role("button", name="Stop").wait_for()
    figure.get_by_role("button", name="Write").wait_for(timeout=60_000)
    written = box.input_value()
    assert written.startswith(before)
    assert len(written) == len(before) + 200
    plain = said.inner_text()
    figure.get_by_role("button", name="Block 1, head 2").click()
    figure.get_by_role("button", name="Silence this head").click()
    assert figure.get_by_role("button", name="Block 1, head 2, silenced").is_visible()
    assert said.inner_text() != plain
    assert not seen.problems


def test_the_script_of_the_weights_is_base_64_of_as_many_bytes(exported):
    content, _ = exported
    text = (LIVE / "model_weights.js").read_text("utf8")
    data = json.loads(text.removeprefix("window.TformerModel = ").removesuffix(";\n"))["data"]
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
    for model, heads in (("BERT", 8), ("translator", 8), ("ViT", 18)):
        figure.get_by_label("Model").select_option(model)
        assert figure.locator(".tl-heads button").count() == heads
        figure.get_by_role("button", name="Block 2, head 3").click()
        assert "Head 3 of block 2 reads most from" in said.inner_text()
        figure.get_by_label("Silence this head").check()
        assert "without head 2.3" in figure.locator("table").inner_text()
        figure.get_by_label("Show the mean of all heads of the block").check()
        assert "On average the heads of block 2" in said.inner_text()
        figure.get_by_label("Show the mean of all heads of the block").uncheck()
    figure.get_by_label("Example").select_option("3")
    assert figure.locator("svg").is_visible()
    figure.get_by_label("Model").select_option("translator")
    assert not figure.locator("svg").is_visible()
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
        for offset, head in ((-1, 3), (1, 1)):  # the token before, the token after
            shares = weights.diagonal(offset=offset, dim1=-2, dim2=-1).mean(dim=-1)
            assert shares.argmax() == head
            assert shares.max() > 0.55
