"""The script of the chapter on long sequences: each kind of model is built as its name says."""

import pytest

from tformer_book.kit import runs as runs_module
from tformer_lib.core.attention import Attend
from tformer_lib.efficient.delta import DeltaAttend
from tformer_lib.efficient.linear import LinearAttend
from tformer_lib.efficient.sliding import SlidingWindow


@pytest.fixture(scope="module")
def script():
    """The script."""
    from tformer_book.long_sequences.experiments import long_sequences

    return long_sequences


EXPECTED = {
    ("recall", "linear"): (2, [LinearAttend]),
    ("recall", "delta"): (2, [DeltaAttend]),
    ("recall", "linear, one wide head"): (1, [LinearAttend]),
    ("recall", "two windows"): (2, [SlidingWindow, SlidingWindow]),
    ("recall", "a window, then full"): (2, [SlidingWindow, Attend]),
    ("recall", "full, then a window"): (2, [Attend, SlidingWindow]),
    ("recall", "a window, then linear"): (2, [SlidingWindow, LinearAttend]),
    ("recall", "linear, then a window"): (2, [LinearAttend, SlidingWindow]),
    ("recall", "linear, then linear"): (2, [LinearAttend, LinearAttend]),
    ("recall", "delta without correction"): (2, [DeltaAttend]),
    ("recall", "gated delta"): (2, [DeltaAttend]),
    ("recall", "linear, then full"): (2, [LinearAttend, Attend]),
    ("recall", "full, then linear"): (2, [Attend, LinearAttend]),
    ("recall", "delta, then full"): (2, [DeltaAttend, Attend]),
    ("recall", "full, then delta"): (2, [Attend, DeltaAttend]),
    ("rewriting", "gated"): (2, [DeltaAttend]),
}
PARTS = {  # of a delta rule that is not the usual one: whether it corrects, whether it has a gate
    ("recall", "delta without correction"): {(False, False)},
    ("recall", "gated delta"): {(True, True)},
    ("rewriting", "gated"): {(False, True)},
}


@pytest.mark.parametrize("key", EXPECTED, ids=" ".join)
def test_models(script, key, monkeypatch):
    caught = []
    monkeypatch.setattr(script, "fit", lambda model, *_, **__: caught.append(model))
    found = script.run(*key, 1e-2, 0)
    heads, layers = EXPECTED[key]
    attentions = [block.self_attention for block in caught[0].transformer.blocks]
    assert [type(attention.backend) for attention in attentions] == layers
    assert {attention.n_heads for attention in attentions} == {heads}
    assert len({id(attention.backend) for attention in attentions}) == len(layers)
    rules = [attention.backend for attention in attentions if isinstance(attention.backend, DeltaAttend)]
    parts = {(rule.correct, rule.gate is not None) for rule in rules}
    assert parts == PARTS.get(key, {(True, False)} if "delta" in key[1] else set())
    assert 0 <= found["chosen_by"] < 0.2  # not trained here
    assert set(found["right"]) == {str(n) for n in script.TASKS[key[0]]["pairs"]}


def test_all_have_the_same_sweep(script):
    assert set(EXPECTED) <= set(script.MODELS)
    assert len(script.RATES) == 4


def test_longer_runs_are_of_the_same_models(script, monkeypatch, tmp_path):
    caught = []
    monkeypatch.setattr(script, "fit", lambda model, loss, batches, lr: caught.append((len(batches), lr)))
    monkeypatch.setattr(script, "RUNS", runs_module.Runs(tmp_path))
    assert {("recall", name) for name in script.LONGER} <= set(script.MODELS)
    found = script.judged("recall", "delta", (1e-3, 3e-3), 2)
    assert set(found["chosen_by"]) == {"0.001", "0.003"}
    assert caught[:2] == [(2, 1e-3), (2, 3e-3)]
    assert caught[2:] == [(2, found["rate"])] * 2  # seed 0 is kept
    assert len(found["seeds"]) == 3


def test_what_is_recorded_is_not_run_again(script, monkeypatch):
    before, found = script.recorded("long_sequences"), {}
    monkeypatch.setattr(script, "record", lambda name, results, **more: found.update(results))
    monkeypatch.setattr(script, "run", lambda *key: pytest.fail(f"{key} was run"))
    monkeypatch.setattr("sys.argv", ["long_sequences.py", "--add"])
    script.main()
    assert found == before["results"]
    assert set(before["results"]["longer"]) == {"steps", *script.LONGER}
    assert set(before["results"]["recall"]) == {name for task, name in script.MODELS if task == "recall"}
