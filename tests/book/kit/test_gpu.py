"""The script for GPUs: it runs in a small form anywhere, and writes no record where there is no CUDA."""

import pytest
import torch


@pytest.fixture(scope="module")
def gpu():
    from tformer_book.kit.experiments import gpu

    return gpu


def test_it_runs_small_and_records_nothing(gpu, tmp_path, monkeypatch):
    recorded = []
    monkeypatch.setattr(gpu, "record", lambda *given, **options: recorded.append(given))
    text = tmp_path / "text.txt"
    text.write_text("All that glisters is not gold;\nOften have you heard that told. " * 60, "utf8")
    found = gpu.main(["--tiny", "--text", str(text), "--folder", str(tmp_path / "runs")])
    assert not recorded
    assert found["kernels"]["tiny, math"]["tokens_per_second"] > 0
    assert found["memory"]["tiny, again"]["predicted"] < found["memory"]["tiny, kept"]["predicted"]
    for runs in found["race"].values():
        assert [len(run["curve"]) for run in runs] == [2, 2, 2]
        assert all(run["curve"][0][2] > 0 for run in runs)
    assert found["time_to_mark"].keys() == {"nanoGPT", "ours"}


def test_without_cuda_it_says_what_to_do(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="--tiny"):
        gpu.main([])


def test_the_time_to_a_loss_is_that_of_the_first_point_below(gpu):
    curve = [[10, 1.0, 3.0], [20, 2.5, 2.0], [30, 4.0, 2.2]]
    assert gpu.time_to(curve, 2.5) == 2.5
    assert gpu.time_to(curve, 1.0) is None


def test_the_models_of_the_race_are_about_as_large(gpu):
    size = gpu.SIZES["nanoGPT, characters"]
    counts = [
        sum(p.numel() for p in gpu.recipe_model(name, size, 65, torch.device("cpu")).parameters())
        for name in gpu.RECIPES
    ]
    assert counts[0] == pytest.approx(10.7e6, rel=0.02)
    assert counts[1] == pytest.approx(counts[0], rel=0.02)
