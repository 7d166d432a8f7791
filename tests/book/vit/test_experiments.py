"""The scripts of the chapter on images: alike networks, soft answers, few labels, and what is tuned."""

import json

import pytest
import torch

from tformer_book.kit import runs as runs_module
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters


@pytest.fixture(scope="module")
def scripts():
    """Both scripts."""
    from tformer_book.vit.experiments import moved_digits, without_labels

    return moved_digits, without_labels


def test_networks_have_as_many_parameters(scripts):
    sizes = [count_parameters(scripts[0].network(name)) for name in ("CNN", "ViT")]
    assert abs(sizes[0] / sizes[1] - 1) < 0.02


def test_the_convolutional_network_of_few_labels_is_as_large(scripts):
    script = scripts[1]
    assert abs(count_parameters(script.cnn()) / count_parameters(script.vit(10)) - 1) < 0.02


@pytest.mark.parametrize("name", ["moved_digits", "without_labels"])
def test_what_is_recorded_is_not_run_again(scripts, name, monkeypatch, tmp_path):
    script = next(script for script in scripts if script.__name__.endswith(f".{name}"))
    before, found = script.recorded(name), {}
    monkeypatch.setattr(script, "RUNS", runs_module.Runs(tmp_path))
    monkeypatch.setattr(script, "record", lambda name, results, **more: found.update(results, **more))
    for maker in ("fit", "classical") if name == "moved_digits" else ("fit",):
        monkeypatch.setattr(script, maker, lambda *_, **__: pytest.fail("something was run"))
    monkeypatch.setattr("sys.argv", [f"{name}.py", "--add"])
    script.main()
    assert found.pop("seeds") == before["seeds"]
    assert found.pop("cpu_seconds") == before["cpu_seconds"]
    assert json.loads(json.dumps(found)) == before["results"]


def test_longer_is_the_same_training_with_more_steps(scripts, monkeypatch):
    script, caught = scripts[0], []

    def fit(model, loss, batches, **options):
        caught.append((model, sum(1 for _ in batches), options))

    monkeypatch.setattr(script, "fit", fit)
    for name in script.NETWORKS:
        script.longer(name, 1e-3, 0)
        script.judged(name, 1e-3, False, 0)
    for (long, more, options), (short, fewer, same) in zip(caught[::2], caught[1::2], strict=True):
        assert (more, fewer) == (script.LONGER, script.STEPS)
        assert options == same
        torch.testing.assert_close(long.state_dict(), short.state_dict())  # the same first weights


def test_longest_is_the_same_training_with_more_steps(scripts, monkeypatch):
    """That of 3,000 steps begins as that of 1,500, with its optimiser, and says which digits are wrong."""
    from tformer_book.vit.experiments import long_training

    script, caught = scripts[0], []

    def fit(model, loss, batches, **options):
        caught.append(({name: x.clone() for name, x in model.state_dict().items()}, batches, options))

    for module in (script, long_training):
        monkeypatch.setattr(module, "fit", fit)
    expected = script.longer_muon(True, 0)
    found = long_training.judged("ViT", 0)
    (weights, batches, options), (same, more, like) = caught
    assert (batches.steps, more.steps) == (script.LONGER, 3000)
    assert (batches.batch, batches.most, options) == (more.batch, more.most, like)
    torch.testing.assert_close(weights, same)
    assert 1 - len(found["wrong"]) / 1000 == pytest.approx(expected["as they are"])
    assert 1 - len(found["wrong, moved"]) / 1000 == pytest.approx(expected["moved"])
    assert found["nine places"] > 0.7  # it has learned nothing here


def test_painted_patches_are_black_and_the_same_number_for_each_order(scripts, monkeypatch):
    script, seen = scripts[0], []
    model = script.network("ViT")
    monkeypatch.setattr(script, "accuracy", lambda model, images, labels: seen.append(images) or 0.5)
    found = script.painted(model)
    assert {len(shares) for shares in found.values()} == {1 + script.PAINTED}
    patches = script.to_patches(seen[0], 7)
    ink = [image.sum().item() for image in seen[5:10]]  # the inkiest go first
    assert ink == sorted(ink, reverse=True)
    for k, images in enumerate(seen[:5]):
        changed = (script.to_patches(images, 7) != patches).any(dim=2).sum(dim=1)
        assert changed.max() <= k
    assert torch.equal(seen[0], script.mnist("test")[0])


def test_a_teacher_that_is_sure_gives_labels(scripts):
    torch.manual_seed(0)
    model, images = scripts[0].network("CNN"), torch.rand(6, 1, 28, 28)
    labels = torch.tensor([3, 1, 4, 1, 5, 9])
    soft = scripts[0].soft_loss(model, (images, torch.nn.functional.one_hot(labels, 10).float()))
    torch.testing.assert_close(soft, image_loss(model, (images, labels)))


def test_moved_images_are_moved_to_the_right(scripts):
    seen = []
    scripts[0].tested(lambda images, labels: seen.append(images) or 0.5)
    plain, moved = seen
    assert torch.equal(moved[..., 2:], plain[..., :-2])
    assert not moved[..., :2].any()


def test_few_labels_are_as_many_of_each_and_none_that_is_held_back(scripts):
    script = scripts[1]
    images, labels = script.few(0)
    assert labels.bincount().tolist() == [10] * 10
    held = script.mnist("train")[0][: script.HELD_BACK].flatten(1)
    assert torch.cdist(images.flatten(1), held).min() > 0


def test_tuning_begins_with_the_encoder_and_a_new_head(scripts, monkeypatch):
    script, caught = scripts[1], []
    monkeypatch.setattr(script, "fit", lambda model, *_, **__: caught.append(model))
    torch.manual_seed(0)
    start = script.vit()
    script.tuned(start, 1e-3, 0)
    (model,) = caught
    assert isinstance(model, ViT)
    for name, value in start.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)
    assert not model.head.weight.any()


def test_what_is_shown_differs_from_the_digits_at_hidden_patches_only(scripts):
    script = scripts[1]
    shown = script.recorded("without_labels")["results"]["shown"]["patches"]
    test, answers = script.mnist("test")
    images = torch.stack([test[answers == digit][0] for digit in script.FILLED])
    ink, hidden = torch.tensor(shown["ink"])[:, None] / 100, torch.tensor(shown["hidden"]).bool()
    apart = (script.to_patches(ink, 4) - script.to_patches(images, 4)).abs()
    assert apart[~hidden].max() < 0.006  # whole per cent
    assert apart[hidden].mean() > 0.02
    assert hidden.sum(dim=1).tolist() == [37] * 3


def test_a_line_reads_what_it_is_given(scripts):
    script = scripts[1]
    wise = dict(
        zip(map(bytes, script.mnist("test")[0].numpy()), script.mnist("test")[1].tolist(), strict=True)
    )
    train = script.mnist("train")
    wise |= dict(zip(map(bytes, train[0].numpy()), train[1].tolist(), strict=True))

    def told(images):
        labels = torch.tensor([wise[bytes(image)] for image in images.numpy()])
        return torch.nn.functional.one_hot(labels, 10).float()

    assert script.line(told, 0) == 1.0
