"""Claims under other seeds: what is reseeded, and what is said of each claim."""

import json

import pytest
import seeds

from tests.notebooks.conftest import Cell, commit

CELLS = [
    Cell("import torch\n\nfrom tformer_book import claim\n\ntorch.manual_seed(0);"),
    Cell("x = torch.rand(1000)\nclaim('a.mean', x.mean(), (0.4, 0.6), 't')"),
    Cell("claim('a.first', x[0], (x[0] - 1e-4, x[0] + 1e-4), 't')"),
    Cell("first = float(x[0])\nprint(first)", tags=("nbval-ignore-output",)),
]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("seed_everything(0)", "seed_everything(3)"),
        ("torch.Generator().manual_seed(12)", "torch.Generator().manual_seed(15)"),
        ("fit(model, seed=1, steps=200)", "fit(model, seed=4, steps=200)"),
        ("np.random.default_rng(0)", "np.random.default_rng(3)"),
        ("LogisticRegression(random_state=0)", "LogisticRegression(random_state=3)"),
        ("for seed in (0, 1): seed_everything(seed)", "for seed in (0, 1): seed_everything(seed)"),
        ("n_seeds=2", "n_seeds=2"),
    ],
)
def test_seeds_in_a_source_move(source, expected):
    assert seeds.reseed(source, 3) == expected


@pytest.fixture(scope="module")
def path(workplace):
    path = workplace / "claims.ipynb"
    commit(path, CELLS)
    return path


def test_claims_are_collected_and_do_not_stop_the_run(path):
    found, errors = seeds.run(path, 0)
    assert not errors
    assert found["a.mean"]["low"] == 0.4
    assert abs(found["a.mean"]["value"] - 0.5) < 0.1
    other, errors = seeds.run(path, 1)
    assert not errors
    assert other["a.first"]["value"] != found["a.first"]["value"]


def test_the_book_is_lent_with_other_seeds_in_what_is_taken(tmp_path):
    book, lent = tmp_path / "book", tmp_path / "lent"
    for name in ("made", "kit"):
        (book / name).mkdir(parents=True)
        (book / name / "__init__.py").write_text("")
    cells = [{"cell_type": "code", "source": "seed_everything(0)", "metadata": {}, "outputs": [], "id": "a"}]
    text = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    for name in ("chapter", "laboratory"):
        (book / "made" / f"{name}.ipynb").write_text(json.dumps(text))
    lent.mkdir()
    package = seeds.lend(book, {book / "made" / "chapter.ipynb"}, 3, lent) / "tformer_book"
    assert "seed_everything(3)" in (package / "made" / "chapter.ipynb").read_text()
    assert "seed_everything(0)" in (package / "made" / "laboratory.ipynb").read_text()
    assert "seed_everything(0)" in (book / "made" / "chapter.ipynb").read_text()
    assert (package / "kit" / "__init__.py").exists()
    assert (package / "made" / "__init__.py").exists()


def test_a_value_outside_its_band_and_a_missing_one_are_marked():
    page = {name: {"value": 1.0, "low": 0.5, "high": 1.5} for name in ("kept", "left", "gone")}
    run = {"kept": {"value": 0.9}, "left": {"value": 2.0}}
    lines = seeds.table(page, {1: run})
    assert [line.split()[0] for line in lines] == ["kept", "OUTSIDE", "missing"]
    assert lines[1].endswith("[0.5, 1.5]  1 | 2")


def test_a_failing_cell_is_told_and_ends_with_1(workplace, capsys):
    path = workplace / "failing.ipynb"
    commit(path, [Cell("1", "assert False, 'not with this seed'")])
    assert seeds.main([str(path), "--seeds", "1"]) == 1
    assert "seeds + 1, cell 0: AssertionError: not with this seed" in capsys.readouterr().out
