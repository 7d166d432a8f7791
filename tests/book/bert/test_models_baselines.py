"""Baselines: the linear one reads words and pairs of words, the tagger each word's most frequent tag."""

import pytest

from tformer_book.bert.models.baselines import MajorityTagger, tfidf_logistic_regression

SENTENCES = ["turn on the lamp", "switch on the lamp", "turn off the lamp", "switch off the light"]


def test_the_linear_baseline_learns_words():
    model = tfidf_logistic_regression().fit(SENTENCES, ["on", "on", "off", "off"])
    assert model.predict(["Lamp ON please", "off with it"]).tolist() == ["on", "off"]
    assert model.score(SENTENCES, ["on", "on", "off", "off"]) == 1.0


def test_the_linear_baseline_reads_pairs_and_single_letters():
    model = tfidf_logistic_regression()
    model.fit(["a b c", "b a c", "c a b", "c b a"], [0, 1, 0, 1])  # the order of a and b alone tells
    assert model.predict(["x a b", "b a x"]).tolist() == [0, 1]


def test_the_linear_baseline_is_deterministic():
    one, two = (tfidf_logistic_regression().fit(SENTENCES, [0, 0, 1, 1]) for _ in range(2))
    assert (one.predict_proba(SENTENCES) == two.predict_proba(SENTENCES)).all()


def test_a_smaller_c_holds_the_weights_smaller():
    loose, tight = (tfidf_logistic_regression(C).fit(SENTENCES, [0, 0, 1, 1]) for C in (100.0, 0.1))
    assert abs(loose[-1].coef_).sum() > 2 * abs(tight[-1].coef_).sum()


def test_the_tagger_takes_the_most_frequent_tag():
    words = [["the", "Kitchen"], ["the", "living", "room"], ["kitchen", "room"], ["room", "the"]]
    tags = [["O", "B-area"], ["O", "B-area", "I-area"], ["B-name", "I-name"], ["I-area", "O"]]
    tagger = MajorityTagger().fit(words, tags)
    # kitchen: B-area and B-name once each, the first seen; room: I-area twice, I-name once; attic: never seen
    assert tagger.predict([["The", "KITCHEN", "room"], ["attic"], []]) == [
        ["O", "B-area", "I-area"],
        ["O"],
        [],
    ]


def test_the_tagger_wants_a_tag_a_word():
    with pytest.raises(ValueError, match="shorter"):
        MajorityTagger().fit([["a", "b"]], [["O"]])
    with pytest.raises(ValueError, match="shorter"):
        MajorityTagger().fit([["a", "b"]], [])
