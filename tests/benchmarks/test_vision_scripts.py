"""The scripts of the chapter on images: alike networks, soft answers, few labels, and what is tuned."""

import pytest
import torch

from benchmarks import runs as runs_module
from tformer_lib.models.vit import ViT, image_loss
from tformer_lib.training import count_parameters


@pytest.fixture(scope="module")
def scripts():
    """Both scripts, which import their neighbours as `python benchmarks/NAME.py` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(runs_module.BUILD.parent / "benchmarks"))
        import moved_digits
        import without_labels

        yield moved_digits, without_labels


def test_networks_have_as_many_parameters(scripts):
    sizes = [count_parameters(scripts[0].network(name)) for name in ("CNN", "ViT")]
    assert abs(sizes[0] / sizes[1] - 1) < 0.02


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
