"""The scaling law: what is recorded is not run again; the prediction is of the runs before it."""

import pytest

from tformer_book.kit.records import recorded
from tformer_book.scale.laws import fit_isoflop, fit_parametric


@pytest.fixture(scope="module")
def script():
    """The script."""
    from tformer_book.scale.experiments import scaling_law

    return scaling_law


@pytest.fixture(scope="module")
def record():
    return recorded("scaling_law")


def test_what_the_record_holds_is_not_run_again(script, record, tmp_path):
    runs, results = script.Runs(tmp_path), record["results"]
    assert script.keep_recorded(runs) == record["cpu_seconds"]
    tuned = {}
    for width, budget in script.TUNING.items():
        there = results["tuning"][str(width)]
        assert there["budget"] == budget
        losses = {float(lr): runs.get("rate", width, float(lr))["loss"] for lr in there["losses"]}
        tuned[width] = script.best_rate(losses)
    for each in results["runs"] + results["tested"] + results["largest"]:
        kept = runs.get("fit", each["budget"], each["width"], each["seed"])
        assert each.items() <= kept.items()
        assert kept["steps"] == script.steps_for(each["budget"], each["width"], results["text"]["vocab"])
        lr = script.learning_rate(each["width"], tuned, results["text"]["vocab"])
        assert kept["lr"] == pytest.approx(lr, rel=5e-3)  # recorded to five digits
    for budget, (widths, _) in script.BUDGETS.items():
        for width in widths:
            assert all(runs.done("fit", budget, width, seed) for seed in range(script.SEEDS))
    assert runs.get("prediction") == results["prediction"]
    assert runs.get("hindsight", len(results["runs"])) == results["hindsight"]
    assert sum(runs.seconds.values()) == 0


def test_the_prediction_is_of_the_runs_that_were_known_then(script, record):
    results = record["results"]
    runs = [each | results["sizes"][str(each["width"])] for each in results["runs"]]
    known = script.known_then(runs)
    assert len(known) == 66 < len(runs) == 90
    for name, used in (("prediction", known), ("hindsight", runs)):
        said, columns = results[name], script.means_over_seeds(used)
        assert fit_isoflop(*columns).size(script.BEYOND) == pytest.approx(said["size"], rel=1e-3)
        law = fit_parametric(*columns[1:])
        assert law.exponent == pytest.approx(
            said["law"]["beta"] / (said["law"]["alpha"] + said["law"]["beta"]), rel=1e-3
        )
