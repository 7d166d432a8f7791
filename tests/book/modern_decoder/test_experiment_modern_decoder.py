"""Chapter 8b's experiments: what is compared differs by what it is named for, and all parts run."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from tformer_book.kit import runs as runs_module
from tformer_book.kit.models.recipes import BASELINE, MODERN
from tformer_book.kit.records import recorded
from tformer_lib.core.positions import Rotary
from tformer_lib.data.windows import consecutive_windows
from tformer_lib.efficient.mixture import active_parameters, mixtures
from tformer_lib.training import count_parameters

VOCAB = 7
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The script, with its runs kept elsewhere and only two steps and two seeds."""
    from tformer_book.modern_decoder.experiments import modern_decoder

    monkeypatch.setattr(modern_decoder, "RUNS", runs_module.Runs(tmp_path))
    monkeypatch.setattr(modern_decoder, "SEEDS", [0, 1])
    monkeypatch.setattr(modern_decoder, "STEPS", 2)
    monkeypatch.setattr(modern_decoder, "MIXTURE_STEPS", 2)
    monkeypatch.setattr(modern_decoder, "LOOKS", (1,))
    monkeypatch.setattr(modern_decoder, "costs", lambda trial, text, rival: 1.5)
    return modern_decoder


@pytest.fixture
def text(script):
    ids = torch.arange(4000) % VOCAB
    windows = consecutive_windows(ids, script.CONTEXT)
    return script.Text(ids, windows[:6], windows[:8], VOCAB)


@pytest.fixture
def tiny(script, monkeypatch):
    """The modern recipe with one narrow block."""
    config = replace(MODERN.config, d_model=16, n_heads=2, n_blocks=1)
    monkeypatch.setattr(script, "MODERN", replace(MODERN, config=config))
    monkeypatch.setattr(script, "HIDDEN", 16)
    return script


def test_mixtures(tiny, text):
    rows = {row["name"]: row for row in tiny.mixture(text)}
    dense, sparse = rows["dense"], rows["mixture"]
    router = 8 * 16
    assert sparse["active"] == dense["parameters"] + router
    wide = rows["dense, as many parameters"]["parameters"]
    assert sparse["parameters"] == wide + router
    for run in sparse["loads"]:
        assert set(run) == {"1", "2"}
        assert [sum(block) for block in run["2"]] == [pytest.approx(1, abs=1e-3)]
    assert len({row["rate"] for row in rows.values()}) == 1
    assert {row["optimizer"] for row in rows.values()} == {"muon"}
    assert all(len(row["held_out"]["scores"]) == 2 for row in rows.values())


def test_a_fixed_router_stays_as_it_was_drawn(script, text):
    config = replace(MODERN.config, d_model=16, n_heads=2, n_blocks=1, d_hidden=16)
    small = replace(MODERN, config=config)
    kept = {}
    for frozen in (False, True):
        trial = script.Trial(small, block=script.Sparse, first=script.small_weights, frozen=frozen)
        torch.manual_seed(0)
        model = trial.build(VOCAB)
        before = mixtures(model)[0].router.W.weight.clone()
        script.fit(
            model,
            trial.loss,
            script.RandomWindows(text.train, batch=2, length=8, steps=3),
            **trial.options(3),
        )
        kept[frozen] = torch.equal(mixtures(model)[0].router.W.weight, before)
    assert kept == {False: False, True: True}


@pytest.fixture
def unrun(script, monkeypatch):
    """No model is trained: its loss is how far its learning rate is from 0.002, in doublings."""

    def run(trial, text, steps, seed):
        loss = abs(math.log2(trial.options(steps)["lr"] / 0.002))
        return {"steps": steps, "first_loss": 0.0, "held_out": loss, "seconds": 0.0, "parameters": 1}

    monkeypatch.setattr(script, "run", run)


def test_first_weights(script, text, unrun):
    rows = script.weights(text)
    assert {(row["first"], row["optimizer"]) for row in rows} == {
        (name, optimizer) for name in script.FIRST for optimizer in ("adamw", "muon")
    }
    for row in rows:  # the least loss, and beyond what is tried for the two that are compared
        least = 0.0025 if row["optimizer"] == "muon" and row["first"] in script.COMPARED else None
        assert row["rate"] == (least or min(script.RATES[row["optimizer"]]))
    torch.manual_seed(0)
    small = script.Trial(MODERN, first=script.FIRST["GPT-2's"]).build(VOCAB)
    loud = script.Trial(MODERN, first=script.FIRST["GPT-2's, embeddings 0.05"]).build(VOCAB)
    silent = script.Trial(MODERN, first=script.FIRST["GPT-2's, outputs 0"]).build(VOCAB)
    assert small.embed.weight.std() < 0.025 < 0.045 < loud.embed.weight.std()
    block = silent.transformer.blocks[0]
    assert not block.mlp.W_out.weight.any()
    assert not block.self_attention.W_o.weight.any()
    assert block.mlp.W_in.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_the_ladder_changes_one_thing_at_a_time(script, text, unrun):
    names, recipes = zip(*script.ladder(), strict=True)
    assert recipes[0] == BASELINE
    for before, after in pairwise(recipes):
        changed = [
            key
            for one, two in ((vars(before), vars(after)), (vars(before.config), vars(after.config)))
            for key in one
            if key not in ("config", "d_hidden") and one[key] != two[key]
        ]
        assert len(changed) == 1, changed
    sizes = [count_parameters(recipe.build(VOCAB)) for recipe in recipes]
    assert sizes[0] - sizes[1] == 64 * 128
    assert max(sizes[1:]) / min(sizes[1:]) < 1.01
    rows = script.climb(text)
    assert [row["name"] for row in rows] == [name for name in names for _ in range(2)]
    assert [row["steps"] for row in rows] == [2, 2] + [2, 1] * (len(names) - 1)  # a step costs 1.5


def test_one_change_is_taken_back_from_the_top(script, text, unrun, monkeypatch):
    tried = {}
    best = script.best

    def noted(part, name, trial, *about, **options):
        tried[name] = trial
        return best(part, name, trial, *about, **options)

    monkeypatch.setattr(script, "best", noted)
    rows = script.without(text)
    assert [row["name"] for row in rows] == list(tried)
    assert {row["rate"] for row in rows} == {0.0025}
    top = script.ladder()[-1][1]
    for trial in tried.values():
        one, two = vars(top) | vars(top.config), vars(trial.recipe) | vars(trial.recipe.config)
        assert len({key for key in one if key not in ("config", "d_hidden") and one[key] != two[key]}) == 1


def test_one_change_is_taken_back_under_adamw_too(script, text, unrun):
    rows = script.without(text, part="without_adamw", optimizer="adamw")
    assert [row["name"] for row in rows] == ["nothing", *(row["name"] for row in script.without(text))]
    assert {(row["optimizer"], row["rate"]) for row in rows} == {("adamw", 0.002)}


def test_averages_differ_in_their_length_alone(script, text, monkeypatch):
    ran = {}

    def run(trial, text, steps, seed):
        options = trial.options(steps)
        kept = options["momentum"] if options.get("optimizer") == "muon" else options["betas"][0]
        ran.setdefault((options.get("optimizer", "adamw"), kept), []).append(trial.recipe)
        assert options["betas"][1] == 0.99
        return {"steps": steps, "first_loss": 0.0, "held_out": options["lr"], "seconds": 0.0, "parameters": 1}

    monkeypatch.setattr(script, "run", run)
    rows = script.averages(text)
    assert [(row["optimizer"], row["kept"]) for row in rows] == list(ran) == list(script.AVERAGES)
    rung = dict(script.ladder())["SwiGLU"]
    recipes = [recipe for each in ran.values() for recipe in each]
    assert all((r.config, r.rotary_base) == (rung.config, rung.rotary_base) for r in recipes)
    left_out = {("adamw", 0.9), ("muon", 0.95), ("muon", 0.8)}  # the ladder's own
    assert not left_out & set(ran)


def test_rates_are_chosen_again_with_other_windows_and_another_seed(script, text, monkeypatch):
    places = torch.arange(100)
    reported, seen = set(places[::3].tolist()), set()

    def run(trial, text, steps, seed):
        loss = abs(math.log2(trial.options(steps)["lr"] / 0.002))
        if seed not in script.SEEDS:
            seen.update(text.held[::3].tolist())  # as `run` takes them
        return {"steps": steps, "first_loss": 0.0, "held_out": loss, "seconds": 0.0, "parameters": 1}

    monkeypatch.setattr(script, "run", run)
    rows = script.choices(text._replace(held=places))
    assert seen
    assert not seen & reported
    for row in rows:
        assert row["seed"] not in script.SEEDS
        low, own, high = map(float, row["tried"])
        assert (2 * low, own, high / 2) == (row["rate"],) * 3


def test_the_ladder_ends_at_the_modern_recipe(script):
    last = script.ladder()[-1][1]
    assert last.config == MODERN.config
    assert last.rotary_base == MODERN.rotary_base
    differs = {key for key in MODERN.fit if last.fit[key] != MODERN.fit[key]}
    assert differs == {"steps", "lr", "warmup"}
    assert last.initialise is BASELINE.initialise is not MODERN.initialise


@pytest.mark.parametrize(
    ("beyond", "best", "tried"), [(True, 0.002, [0.001, 0.002, 0.004, 0.008]), (False, 0.004, [0.004, 0.008])]
)
def test_a_best_rate_at_the_edge_is_followed(script, text, unrun, beyond, best, tried):
    trial = script.Trial(MODERN)
    found, losses = script.best("ladder", "x", trial, (0.004, 0.008), text, 2, beyond=beyond)
    assert found.fit["lr"] == best
    assert list(losses) == [str(rate) for rate in tried]


def test_what_is_recorded_is_not_run_again(script, monkeypatch):
    content = recorded("modern_decoder")
    monkeypatch.setattr(script, "SEEDS", content["seeds"])
    monkeypatch.setattr(script, "STEPS", 150)
    monkeypatch.setattr(script, "run", lambda *about: pytest.fail("it is run again"))
    script.restore()
    kept = script.RUNS.kept()
    for part, rows in content["results"].items():
        assert kept["part", part] == rows
    for row in content["results"]["ladder"]:
        rate = row["rate"]
        found = script.runs("ladder", f"{row['name']}, rate {rate}", None, None, row["steps"])
        assert [run["held_out"] for run in found] == row["held_out"]["scores"]
        assert kept["choice", "ladder", row["name"], *script.RUNG_RATES[row["optimizer"]]] == {"rate": rate}
        assert kept["step", row["name"]] == row["cost"]
    assert kept["recorded before",] == {"seconds": content["cpu_seconds"]}


def test_what_came_since_stands_alone_on_the_ladders_top(script, text, unrun):
    rows = script.since(text)
    assert [row["name"] for row in rows] == list(script.SINCE)
    assert {(row["optimizer"], row["rate"]) for row in rows} == {("muon", script.RUNG_RATES["muon"][1])}
    top = dict(script.ladder())["rotary base 100"]
    for changes in script.SINCE.values():
        model = script.Trial(top, **changes).build(VOCAB)
        assert model.config == top.config
        assert 0 < count_parameters(model) - count_parameters(top.build(VOCAB)) < 0.01 * 8e5


def test_what_the_cache_holds(script, text, unrun):
    rows = {row["name"]: row for row in script.cache(text)}
    assert rows["latents"]["cached"] == rows["1 heads of keys and values"]["cached"] == 256
    layer = script.Latent(MODERN.config, rotary=Rotary(32, 100.0)).self_attention
    assert 4 * (layer.d_latent + layer.d_rotary) == 256


def test_an_active_model_counts_what_a_token_uses(script):
    trial = script.Trial(MODERN, block=script.Sparse, first=script.small_weights)
    model = trial.build(VOCAB)
    half = 3 * 128 * (MODERN.config.d_hidden // 2)
    assert count_parameters(model) - active_parameters(model) == 4 * 6 * half
