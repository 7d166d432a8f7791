"""The scripts of the chapter on ImageGPT: what is judged, by whom, and that the rivals are alike."""

import numpy as np
import pytest
import torch

from tformer_book.kit import runs as runs_module
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.dit import DiT
from tformer_lib.training import count_parameters


@pytest.fixture(scope="module")
def scripts():
    """The scripts."""
    from tformer_book.image_gpt.experiments import diffusion, pixel_cnn, pixel_places

    return diffusion, pixel_cnn, pixel_places


def test_images_and_tokens_say_the_same(scripts):
    tokens = torch.randint(4, (3, 196))
    images = scripts[0].pictures(tokens)
    assert images.shape == (3, 1, 14, 14)
    assert (images.min(), images.max()) == (-1, 1)
    assert torch.equal(scripts[0].levels(images + 0.3 * torch.rand_like(images)), tokens)
    assert torch.equal(scripts[0].levels(5 * images - 0.1).unique(), torch.tensor([0, 3]))


def test_the_distance_is_that_of_two_normal_distributions(scripts):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(4000, 3))
    assert scripts[0].frechet(x, x) == pytest.approx(0, abs=1e-6)
    assert scripts[0].frechet(x, x + np.array([3, 0, 4])) == pytest.approx(25, rel=1e-6)
    assert scripts[0].frechet(x, 2 * x) == pytest.approx(3 * (2 - 1) ** 2, rel=0.1)  # sum of (s - s')^2
    dead = np.concatenate([x, np.zeros((4000, 1))], axis=1)  # a feature that never fires
    assert scripts[0].frechet(dead, dead + np.array([3, 0, 4, 0])) == pytest.approx(25, rel=1e-6)


def test_both_ways_to_draw_have_about_as_many_parameters(scripts):
    config = TransformerConfig(d_model=64, n_heads=4, n_blocks=3)
    sizes = [
        count_parameters(m) for m in (scripts[0].build("page", 0), DiT(config, image_size=14, patch_size=2))
    ]
    assert sizes == [212_928, 236_228]


def test_every_way_is_judged_alike(scripts, monkeypatch):
    """Both are trained on the same batches, and asked for the same halves."""
    script, batches = scripts[0], []
    monkeypatch.setattr(script, "fit", lambda model, loss, seen, **options: batches.append((seen, options)))
    monkeypatch.setattr(script, "DRAWN", 70)
    monkeypatch.setattr(script, "COMPLETED", 20)
    monkeypatch.setattr(script, "EULER", 2)
    monkeypatch.setattr(
        script, "generate", lambda model, prompts, n, generator: [[*p, *[0] * n] for p in prompts]
    )
    monkeypatch.setattr(script, "bits_per_pixel", lambda *_: 0.5)
    cnn = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(196, 8), torch.nn.Linear(8, 10))
    found = [script.image_gpt(cnn, 3, 0), script.dit(cnn, 3, 0)]
    (gpt_batches, gpt_options), (dit_batches, dit_options) = batches
    assert gpt_options == dit_options
    for (tokens, labels), (images, others) in zip(gpt_batches, dit_batches, strict=True):
        assert torch.equal(script.levels(images), tokens[:, 1:])
        assert torch.equal(labels, others)
    assert found[0]["named lower"] is None
    assert found[1]["named lower"] is not None
    for result in found:
        assert {"named upper", "sure", "distance", "nearest"} <= result.keys()
        assert len(result["pictures"]) == 24


def test_what_is_told_is_what_is_known(scripts):
    script = scripts[0]
    config = TransformerConfig(d_model=16, n_heads=2, n_blocks=1)
    model = script.Told(DiT(config, image_size=14, patch_size=2, channels=3))
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)  # so that nothing is zero
    x, t, given = torch.randn(3, 1, 14, 14), torch.rand(3), torch.randn(3, 1, 14, 14)
    for known in script.KNOWN.values():
        out = model(x, t, given, known)
        assert out.shape == x.shape
        torch.testing.assert_close(model(x, t, given + (~known).float(), known), out)
        changes = not torch.allclose(model(x, t, given + known.float(), known), out)
        assert changes == known.any()
    assert script.KNOWN["upper"][0, 0, :7].all()
    assert not (script.KNOWN["upper"] & script.KNOWN["lower"]).any()


def test_a_model_that_is_told_learns_what_is_not_known(scripts):
    seen = []

    def wrong_where_known(x, t, given, known):
        seen.extend(known.flatten(1).sum(dim=1).tolist())
        t = t[:, None, None, None]
        return (x - given) / t + 100 * known  # (1 - t) x + t e - x = t (e - x)

    loss = scripts[0].told_loss(
        wrong_where_known, torch.randn(60, 1, 14, 14).clamp(-1, 1), torch.Generator().manual_seed(0)
    )
    assert loss < 1e-4
    assert set(seen) == {0, 98}
    assert 10 < seen.count(0) < 30  # a third


def test_averages_follow_the_weights(scripts, monkeypatch):
    script = scripts[0]

    def steps_to(model, loss, batches, **options):
        for k, batch in enumerate(batches, start=1):
            loss(model, batch)
            with torch.no_grad():
                model.pixels.bias.fill_(k)

    monkeypatch.setattr(script, "fit", steps_to)
    found = script.train_dit(4, 0, script.UNTUNED, shares=(0.5,))  # a <- a + (w - a) / 2
    assert {share: model.pixels.bias[0].item() for share, model in found.items()} == {None: 4, 0.5: 3.0625}


def test_the_least_is_chosen(scripts):
    script = scripts[0]
    tries = [
        {"name": "A", "rate": 0.1, "last": 0.0, "held out": {"weights": 3.0, "0.02": 2.0}},
        {"name": "A", "rate": 0.2, "last": 1.0, "held out": {"weights": 4.0, "0.02": 2.5}},
        {"name": "B", "rate": 0.2, "last": 0.0, "held out": {"weights": 1.0}},
    ]
    assert script.chosen(tries, "A") == script.Setting(0.1, 0.0, 0.02)
    assert script.chosen(tries, "B") == script.Setting(0.2)


def test_no_setting_is_chosen_by_a_test_digit(scripts, monkeypatch):
    script, asked = scripts[0], []
    rows = script.data
    monkeypatch.setattr(script, "data", lambda split: asked.append(split) or rows(split))
    trained, told = [], []
    monkeypatch.setattr(
        script, "fit", lambda model, loss, batches, **options: trained.append(batches.images.flatten(1))
    )
    monkeypatch.setattr(script, "bits_per_pixel", lambda model, rows: told.append(rows[:, 1:]) or 0.5)
    monkeypatch.setattr(script, "flow_loss", lambda model, x, draw: told.append(x) or torch.ones(()))
    found = [script.tried(way, script.UNTUNED) for way in script.TRIES]
    assert [set(by) for by in found] == [{"weights"}, {"weights", *map(str, script.SHARES)}]
    assert set(asked) == {"train"}
    assert {len(images) for images in told} == {500}
    assert {len(images) for images in trained} == {3500}
    known = {tuple(row.tolist()) for row in trained[0][:, 1:]}
    judged = [tuple(row.tolist()) for row in told[0]]
    assert sum(row in known for row in judged) < 10  # twins among the digits


def test_recorded_drawings_are_not_drawn_again(scripts, monkeypatch, tmp_path):
    script, found = scripts[0], {}
    before = script.recorded("diffusion")
    monkeypatch.setattr(script, "RUNS", runs_module.Runs(tmp_path))
    monkeypatch.setattr(script, "record", lambda name, results, **more: found.update(results))
    monkeypatch.setattr(script, "judge", lambda: None)
    monkeypatch.setattr(script, "rivals", lambda cnn: before["results"]["others"])
    for name in ("tried", "image_gpt", "dit"):
        monkeypatch.setattr(script, name, lambda *key, **more: pytest.fail(f"{key} was run"))
    monkeypatch.setattr("sys.argv", ["diffusion.py", "--add"])
    script.main()
    assert found == before["results"]


def test_a_copy_of_the_training_images_is_found_out(scripts):
    script = scripts[0]
    cnn = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(196, 8), torch.nn.Linear(8, 10))
    known, new = script.data("train")[0][:, 1:], script.data("test")[0][:, 1:]
    assert script.quality(cnn, known[:100])["nearest"] == 0
    assert script.quality(cnn, new)["nearest"] == 1
    assert script.quality(cnn, new)["distance"] == pytest.approx(0, abs=1e-4)


def test_the_convolutions_are_asked_for_the_pixels_alone(scripts):
    script = scripts[1]
    seen = []

    def guess(pixels):
        seen.append(pixels)
        return torch.zeros(len(pixels), 4, 196)

    rows = script.data("test")[0][:5]
    loss = script.loss(guess, (rows, None))
    assert torch.equal(seen[0], rows[:, 1:])
    assert loss.item() == pytest.approx(np.log(4))


def test_pixels_of_a_row_or_a_column_share_a_vector(scripts):
    places = scripts[2].RowsAndColumns(3, 4)
    added = places(torch.zeros(1, 9, 4))[0]
    for n in range(9):
        torch.testing.assert_close(added[n], places.rows[n // 3] + places.columns[n % 3])
    torch.testing.assert_close(places(torch.zeros(1, 2, 4), offset=5)[0], added[5:7])  # as with a cache


def test_what_is_recorded_is_not_run_again(scripts, monkeypatch, tmp_path):
    script, found = scripts[2], {}
    before = script.recorded("pixel_places")
    monkeypatch.setattr(script, "RUNS", runs_module.Runs(tmp_path))
    monkeypatch.setattr(script, "record", lambda name, results, **more: found.update(results))
    monkeypatch.setattr(script, "run", lambda *key: pytest.fail(f"{key} was run"))
    monkeypatch.setattr("sys.argv", ["pixel_places.py", "--add"])
    script.main()
    assert found == before["results"]


def test_on_the_shuffled_plane_every_pixel_has_a_place_of_its_own(scripts):
    places = scripts[2].RowsAndColumns(14, 4, shuffled=True)
    assert sorted(places.order.tolist()) == list(range(196))
    assert (places.order.diff() == 1).sum() < 20
    added = places(torch.zeros(1, 196, 4))[0]
    assert len(added.unique(dim=0)) == 196
    torch.testing.assert_close(places(torch.zeros(1, 2, 4), offset=5)[0], added[5:7])


def test_each_way_says_where_a_pixel_stands_or_does_not(scripts):
    ways = {name: make() for name, make in scripts[2].WAYS.items()}
    assert ways.pop("none") is None
    sizes = {name: sum(p.numel() for p in places.parameters()) for name, places in ways.items()}
    assert sizes == {"places": 196 * 64, "rows and columns": 28 * 64, "shuffled": 28 * 64}
