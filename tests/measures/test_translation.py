"""Scores of translations: exact, BLEU and chrF, by hand."""

import re

import pytest
import torch

from tformer_lib.measures.translation import translation_scores


def test_perfect_and_hopeless():
    right = ["The cat sits on the mat today.", "There is a house in the garden."]
    best = translation_scores(right, right)
    assert (best["exact"], best["bleu"], best["chrf"]) == pytest.approx((1.0, 100.0, 100.0))
    worst = translation_scores(["x y z w v", "q r s t u"], right)
    assert worst["exact"] == 0
    assert worst["bleu"] < 5
    assert worst["chrf"] < 10
    assert re.search(r"nrefs:1\|case:mixed.*tok:13a", best["bleu signature"])


def test_bleu_by_hand():
    """Precisions 4/5, 3/4, 2/3, 1/2 of five words against five: no penalty for length."""
    scores = translation_scores(["a b c d x"], ["a b c d e"])
    assert scores["bleu"] == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert scores["exact"] == 0


def test_the_whole_set_counts_at_once():
    """BLEU adds counts over sentences, which is not the mean of sentences' scores."""
    translations, references = ["a b c d", "a b c d x y z"], ["a b c d", "a b c d e f g"]
    together = translation_scores(translations, references)["bleu"]
    alone = [translation_scores([t], [r])["bleu"] for t, r in zip(translations, references, strict=True)]
    precisions = [(4 + 4) / (4 + 7), (3 + 3) / (3 + 6), (2 + 2) / (2 + 5), (1 + 1) / (1 + 4)]
    assert together == pytest.approx(100 * torch.tensor(precisions).log().mean().exp().item(), rel=1e-4)
    assert together != pytest.approx(sum(alone) / 2)


@pytest.mark.parametrize(("translations", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_a_reference_each(translations, references):
    with pytest.raises(ValueError, match="a reference for each translation"):
        translation_scores(translations, references)
