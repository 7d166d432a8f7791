"""Scores of translations: exact, BLEU and chrF, by hand."""

import re

import pytest
import torch

from tformer_lib.measures.translation import paired_bootstrap, translation_scores


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


SENTENCES = [f"the {i} dogs bit the {i + 1} men on day {i + 2}" for i in range(30)]


def worse(share):
    """The sentences, with a word exchanged in a share of them."""
    return [text.replace("bit", "saw") if i < share * 30 else text for i, text in enumerate(SENTENCES)]


def test_a_drawn_difference_is_that_of_bleu():
    """Each draw is what sacrebleu says of the drawn sentences."""
    one, other = worse(0.2), worse(0.6)
    differences = paired_bootstrap(one, other, SENTENCES, draws=5, seed=3)
    chosen = torch.randint(30, (5, 30), generator=torch.Generator().manual_seed(3))
    for row, difference in zip(chosen.tolist(), differences.tolist(), strict=True):
        texts = [[side[i] for i in row] for side in (one, other, SENTENCES)]
        expected = [translation_scores(texts[k], texts[2])["bleu"] for k in (0, 1)]
        assert difference == pytest.approx(expected[0] - expected[1])


def test_the_mean_is_near_the_difference_and_the_same_again():
    one, other = worse(0.2), worse(0.6)
    differences = paired_bootstrap(one, other, SENTENCES)
    whole = [translation_scores(side, SENTENCES)["bleu"] for side in (one, other)]
    assert differences.shape == (1000,)
    assert differences.mean().item() == pytest.approx(whole[0] - whole[1], abs=0.5)
    assert 0 < differences.std().item() < 5
    assert torch.equal(differences, paired_bootstrap(one, other, SENTENCES))


def test_a_system_does_not_differ_from_itself():
    assert not paired_bootstrap(SENTENCES, SENTENCES, SENTENCES, draws=10).any()


def test_the_shorter_pays_for_brevity():
    short = [text.rsplit(" ", 2)[0] for text in SENTENCES]
    assert (paired_bootstrap(short, SENTENCES, SENTENCES, draws=10) < -10).all()


def test_a_bootstrap_says_what_is_wrong():
    with pytest.raises(ValueError, match="a reference for each translation, got 30 for 1"):
        paired_bootstrap(["a"], SENTENCES, SENTENCES)
    with pytest.raises(ValueError, match="draws"):
        paired_bootstrap(SENTENCES, SENTENCES, SENTENCES, draws=0)


def test_a_draw_without_four_words_in_a_row_has_no_bleu():
    true = ["one two three four five six"]
    assert paired_bootstrap(["one"], true, true, draws=3).tolist() == pytest.approx([-100.0] * 3)
    assert paired_bootstrap([""], ["one"], true, draws=3).tolist() == [0.0] * 3
