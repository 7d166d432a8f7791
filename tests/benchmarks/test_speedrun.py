"""The speedrun: its rules are kept, and its loss is that of a plain loop."""

import math
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from torch import nn

from benchmarks import runs as runs_module
from tformer_lib.book.models.speedrun import (
    CHANGES,
    JORDAN,
    PLAIN,
    POLAR_EXPRESS,
    FastDecoder,
    Settings,
    counts,
    fast,
    orthogonalise_all,
    schedule,
)
from tformer_lib.book.models.speedrun_tried import TRIED
from tformer_lib.book.recorded import recorded
from tformer_lib.data.windows import consecutive_windows

VOCAB, CONTEXT = 7, 64
TINY = Settings(width=16, heads=2, blocks=2, hidden=32, rows=17, steps=3, batch=2, warmup=1)


@pytest.fixture(scope="module")
def speedrun():
    """The script, which imports its neighbours as `python benchmarks/speedrun.py` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(runs_module.BUILD.parent / "benchmarks"))
        import speedrun

        yield speedrun


@pytest.fixture(scope="module")
def ids():
    """A text that counts upwards, with mistakes."""
    generator = torch.Generator().manual_seed(0)
    slips = torch.rand(4000, generator=generator) < 0.1
    return (torch.arange(4000) + slips.cumsum(0)) % VOCAB


pytestmark = pytest.mark.usefixtures("one_thread")
ENTRIES = {
    "fast": partial(fast, settings=TINY),
    "plain": partial(fast, settings=replace(TINY, earlier=0, grams=0)),
    "counts": partial(counts, least=20, depth=3),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_small_run_of_each_entry_keeps_the_rules(speedrun, ids, name):
    assert set(ENTRIES) == set(speedrun.ENTRIES)
    done = speedrun.drive(ENTRIES[name], ids, VOCAB, 0, lambda steps: None)
    held = consecutive_windows(ids[-700:], CONTEXT)
    assert done.seconds > 0
    assert done.steps == {"fast": 3, "plain": 3, "counts": 1}[name]
    assert 0 < speedrun.size(done.model) <= speedrun.LIMIT
    speedrun.check_reading(done.model, held)
    loss = speedrun.held_out(done.model, held)
    assert loss < 1.2 if name == "counts" else math.isfinite(loss)


@pytest.mark.parametrize("settings", [Settings(), PLAIN], ids=["fast", "plain"])
def test_an_entry_as_it_runs_is_small_enough(speedrun, settings):
    assert speedrun.size(FastDecoder(80, settings)) <= speedrun.LIMIT


@pytest.mark.parametrize(("settings", "reach"), [(Settings(), 4), (PLAIN, 1)], ids=["fast", "plain"])
def test_in_the_plain_entry_attention_alone_reads_what_came_before(settings, reach):
    embed = FastDecoder(VOCAB, replace(settings, width=16, rows=17)).embed
    tokens = torch.arange(12)[None] % VOCAB
    other = tokens.clone()
    other[0, 5] += 1
    changed = (embed(tokens) != embed(other)).any(-1)[0]
    assert changed.nonzero().flatten().tolist() == list(range(5, 5 + reach))


@pytest.mark.parametrize("name", CHANGES)
def test_an_entry_without_a_change_is_one_too(speedrun, ids, name):
    settings = Settings(**CHANGES[name])
    assert settings != Settings()
    assert speedrun.size(FastDecoder(80, settings)) <= speedrun.LIMIT
    few = {"width": 16, "hidden": 32, "steps": 2, "batch": 2, "rows": 17}
    done = speedrun.drive(
        partial(fast, settings=Settings(**CHANGES[name] | few)), ids, VOCAB, 0, lambda steps: None
    )
    assert done.steps == 2


def test_too_many_numbers_are_refused(speedrun):
    model = nn.Embedding(speedrun.LIMIT // 80 + 1, 80)
    with pytest.raises(ValueError, match=r"the model holds 804,160 numbers, and 804,096 are allowed"):
        speedrun.size(model)
    model = nn.Module()
    model.register_buffer("hidden", torch.zeros(speedrun.LIMIT + 1))  # no parameter, and counted
    with pytest.raises(ValueError, match="804,097"):
        speedrun.size(model)


def test_an_entry_sees_the_text_to_train_on_and_cannot_change_it(speedrun, ids):
    seen = []

    def entry(text, vocab, seed):
        seen.append((text.clone(), vocab, seed))
        text.zero_()
        yield 0.0
        return nn.Embedding(vocab, vocab)

    held = torch.full((5, CONTEXT + 1), 3)
    text = speedrun.Text(ids, held, held, VOCAB)
    result = speedrun.measure(entry, text, 5)
    ((got, vocab, seed),) = seen
    assert torch.equal(got, ids)
    assert (vocab, seed) == (VOCAB, 5)
    assert ids.any()
    assert (result["steps"], result["numbers"]) == (1, VOCAB * VOCAB)
    assert 0 <= result["ratio"] < 0.1


def test_the_loss_is_that_of_a_plain_loop(speedrun, ids):
    torch.manual_seed(0)
    model = FastDecoder(VOCAB, TINY)
    nn.init.normal_(model.readout)
    held = ids[:700]
    total, n = 0.0, 0
    for start in range(0, len(held) - CONTEXT, CONTEXT):
        window = held[start : start + CONTEXT + 1]
        for i in range(CONTEXT):
            p = model(window[None, : i + 1])[0, -1].softmax(0)[window[i + 1]]
            total, n = total - math.log(p.item()), n + 1
    assert n == 640
    assert speedrun.held_out(model, consecutive_windows(held, CONTEXT)) == pytest.approx(total / n, abs=1e-5)


class Reader(nn.Module):
    """A model that reads what it must not."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def forward(self, tokens):
        onehot = nn.functional.one_hot(tokens, VOCAB).float()
        if self.what == "later":
            return onehot.roll(-1, 1)
        if self.what == "beside":
            return onehot + onehot.mean(0)
        return onehot[:, :-1]


@pytest.mark.parametrize(
    ("what", "message"), [("later", "comes after"), ("beside", "beside it"), ("less", "the logits are")]
)
def test_a_model_that_reads_too_much_is_refused(speedrun, ids, what, message):
    with pytest.raises(ValueError, match=message):
        speedrun.check_reading(Reader(what), consecutive_windows(ids, CONTEXT))


def test_an_entry_keeps_to_one_thread_and_returns_a_model(speedrun, ids):
    def two(text, vocab, seed):
        torch.set_num_threads(2)
        yield 0.0

    def nothing(text, vocab, seed):
        yield 0.0

    with pytest.raises(ValueError, match="in one thread, and this one in 2"):
        speedrun.drive(two, ids, VOCAB, 0, lambda steps: None)
    torch.set_num_threads(1)
    with pytest.raises(ValueError, match="returns its model"):
        speedrun.drive(nothing, ids, VOCAB, 0, lambda steps: None)


def test_the_clock_stands_still_between_steps(speedrun, ids, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(speedrun, "clock", lambda: now[0])

    def between(steps):
        now[0] += 100

    def entry(text, vocab, seed):
        for _ in range(3):
            now[0] += 2
            yield 0.0
        now[0] += 1
        return nn.Embedding(vocab, vocab)

    assert speedrun.drive(entry, ids, VOCAB, 0, between).seconds == 7


@pytest.mark.parametrize("polynomials", [JORDAN, POLAR_EXPRESS], ids=["Jordan", "Polar Express"])
@pytest.mark.parametrize("square", [False, True])
def test_many_matrices_at_once_have_their_singular_values_mapped(square, polynomials):
    torch.manual_seed(0)
    gradients = torch.randn(2, 3, 24, 8)
    u, sigma, vt = torch.linalg.svd(gradients.double(), full_matrices=False)
    sigma = sigma / (1.01 * sigma.norm(dim=-1, keepdim=True))
    for a, b, c in polynomials:
        sigma = a * sigma + b * sigma**3 + c * sigma**5
    expected = (u * sigma[..., None, :] @ vt).float()
    torch.testing.assert_close(orthogonalise_all(gradients, polynomials, square), expected, atol=1e-4, rtol=0)
    low, high = (0.6, 1.3) if polynomials is JORDAN else (0.15, 2.0)
    assert low < sigma.min() <= sigma.max() < high


def test_the_rate_climbs_and_falls_to_zero():
    settings = Settings(steps=100, warmup=10)
    shares = [schedule(step, settings) for step in range(100)]
    assert shares[0] == pytest.approx(0.1)
    assert max(shares) == shares[9]
    assert shares[-1] == pytest.approx(0.01)


def test_counts_are_frequencies(ids):
    run = counts(ids, VOCAB, 0, least=30, depth=2)
    next(run)
    with pytest.raises(StopIteration) as end:
        next(run)
    p = end.value.value(torch.tensor([[2, 3]])).softmax(-1)
    assert p.sum(-1).allclose(torch.ones(()))
    after = ids[1:][ids[:-1] == 2]  # at the first place only one character is known
    assert p[0, 0, 3].item() == pytest.approx((after == 3).float().mean().item(), abs=0.02)


def test_our_entry_needs_at_most_a_tenth_as_recorded(speedrun):
    record = recorded("speedrun")
    lines = record["results"]["entries"]
    assert {(line["name"], line["instructions"], line["seed"]) for line in lines} == {
        (name, instructions, seed)
        for name in speedrun.ENTRIES
        for instructions in ("AVX512", "AVX2")
        for seed in record["seeds"]
    }
    goals = {line["seed"]: line["loss"] for line in record["results"]["baseline"]}
    for line in lines:
        assert line["loss"] <= line["target"] == goals[line["seed"]]
        assert line["numbers"] <= speedrun.LIMIT
        assert line["ratio"] <= 0.1
        assert line["table"] == speedrun.ENTRIES[line["name"]][0]


def test_a_run_says_on_what_it_ran(speedrun, monkeypatch, tmp_path):
    monkeypatch.setenv("MKL_ENABLE_INSTRUCTIONS", "AVX2")
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    about = tmp_path / "cpuinfo"
    about.write_text("processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu avx2 amx_tile\n\nprocessor\t: 1\n")
    found = speedrun.machine(about)
    assert set(found["held"]) == set(speedrun.HELD)
    assert found["held"]["MKL_ENABLE_INSTRUCTIONS"] == "AVX2"
    assert found["held"]["ONEDNN_MAX_CPU_ISA"] is None
    assert (found["processor"], found["has"]) == ("A: B", ["avx2", "amx_tile"])
    elsewhere = speedrun.machine(tmp_path / "none")
    assert (elsewhere["processor"], elsewhere["has"]) == (None, None)


def test_each_change_was_taken_away():
    shares = recorded("speedrun")["results"]["shares"]
    assert {line["name"] for line in shares} == set(CHANGES)


def test_each_trial_was_made_from_three_seeds():
    tried = recorded("speedrun")["results"]["tried"]
    assert sorted((line["name"], line["seed"]) for line in tried) == sorted(product(TRIED, range(3)))


def test_a_record_is_restored_as_it_was(speedrun, tmp_path, monkeypatch):
    kept, found = runs_module.Runs(tmp_path), {}
    kept.put("share", "GELU", "AVX512", 0, result={"cpu_seconds": 1.0, "loss": 9.0}, seconds=1.0)
    speedrun.restore(kept)
    monkeypatch.setattr(speedrun, "record", lambda name, results, **more: found.update(results))
    speedrun.gather(kept)
    before = recorded("speedrun")["results"]
    changed = [line for line in before["shares"] if (line["name"], line["seed"]) == ("GELU", 0)]
    assert len(changed) == 1
    for name in ("baseline", "entries", "shares", "tried"):
        assert [line for line in found[name] if line.get("loss") != 9.0] == [
            line for line in before[name] if line not in changed
        ]
    assert sum(line["loss"] == 9.0 for line in found["shares"]) == 1  # what is kept already stays
