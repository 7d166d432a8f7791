"""A photograph and a folder of a published model: the numbers are those of `transformers`, pixels and all."""

import json

import pytest
import torch
from sklearn.datasets import load_sample_image
from torch.testing import assert_close

from tests.pretrained.reference import transformers
from tformer_book.vit.published import NAME, Published, cropped

FLOWER = load_sample_image("flower.jpg")  # 427 x 640
SQUEEZED = {"size": {"height": 48, "width": 48}, "resample": 2}
CUT = {"size": {"shortest_edge": 60}, "resample": 3, "do_center_crop": True}
CUT |= {"crop_size": {"height": 48, "width": 48}}
PREPARED = {
    "squeezed": SQUEEZED,
    "cut": CUT,
    "as it was written once": {"size": 48, "resample": 2},
}
PLAIN = {"image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28]}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """A folder and the random model of transformers in it, of 48 x 48 pixels and seven classes."""
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, image_size=48,
        patch_size=16, initializer_range=0.3, id2label={n: f"flower {n}" for n in range(7)},
        label2id={f"flower {n}": n for n in range(7)}, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config).eval()
    folder = tmp_path_factory.mktemp("published")
    model.save_pretrained(folder)
    return folder, model


def prepared(folder, settings):
    """The reader of a folder with these settings, and the pixels that transformers makes with them."""
    processor = transformers.ViTImageProcessor(**(PLAIN | settings))
    (folder / NAME).write_text(json.dumps({**PLAIN, **settings}))
    return Published(folder), processor(FLOWER, return_tensors="pt")["pixel_values"]


@pytest.mark.parametrize("kind", PREPARED)
def test_pixels_and_logits_are_those_of_transformers(theirs, kind):
    folder, model = theirs
    reader, pixels = prepared(folder, PREPARED[kind])
    assert_close(reader.prepare(FLOWER), pixels, atol=1e-5, rtol=0)
    with torch.no_grad():
        expected = model(pixels).logits
        assert expected.std() > 0.1
        assert_close(reader.model(reader.prepare(FLOWER)), expected, atol=1e-4, rtol=0)


def test_the_five_likeliest_have_their_names_and_the_maps_are_those_of_transformers(theirs):
    folder, model = theirs
    reader, pixels = prepared(folder, SQUEEZED)
    with torch.no_grad():
        found = model(pixels, output_attentions=True)
    p = found.logits[0].softmax(dim=0)
    seen = Published(folder).look(FLOWER)
    assert [name for name, _ in seen.names] == [f"flower {n}" for n in p.argsort(descending=True)[:5]]
    assert [q for _, q in seen.names] == pytest.approx(p.sort(descending=True).values[:5].tolist(), abs=1e-4)
    last = found.attentions[-1][0].mean(dim=0)
    assert_close(seen.last, last[0, 1:].reshape(3, 3), atol=1e-5, rtol=0)
    mixed = [(torch.eye(10) + a[0].mean(dim=0)) / 2 for a in found.attentions]
    assert_close(seen.rollout, (mixed[1] @ mixed[0])[0, 1:].reshape(3, 3), atol=1e-5, rtol=0)
    assert seen.picture.shape == (48, 48, 3)
    assert 0 <= seen.picture.min() < seen.picture.max() <= 1
    assert len(reader.look(FLOWER, most=2).names) == 2


def test_what_is_no_classifier_is_refused(theirs, tmp_path):
    theirs[1].vit.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no vision transformer with a classifier"):
        Published(tmp_path)


def test_a_photograph_can_be_squeezed_or_cut_or_left_alone():
    assert cropped(FLOWER, SQUEEZED).shape == cropped(FLOWER, CUT).shape == (48, 48, 3)
    assert cropped(FLOWER, {"do_resize": False}).shape == (427, 640, 3)
