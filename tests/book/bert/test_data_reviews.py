"""Reviews: balanced, divided for good, and no text on both sides, nor nearly."""

import re
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from tformer_book.bert.data import reviews as module
from tformer_book.bert.data.reviews import (
    distinct,
    few_per_label,
    long_sentences,
    movie_reviews,
    read,
    review_sentences,
    split_evenly,
    three_words,
)


def test_snippets():
    train, validation = review_sentences("train"), review_sentences("validation")
    assert Counter(label for _, label in validation) == {0: 750, 1: 750}
    assert (len(train), sum(label for _, label in train)) == (7_027, 3_513)
    assert ("effective but too-tepid biopic", 1) in [*train, *validation]
    assert sum(text != text.lower() for text, _ in train) == 1  # it is Portuguese


def test_reviews():
    train, validation = movie_reviews("train"), movie_reviews("validation")
    assert Counter(label for _, label in validation) == {0: 1_250, 1: 1_250}
    assert (len(train), sum(label for _, label in train)) == (22_385, 11_210)
    assert not any(re.search(r"<br", text) for text, _ in [*train, *validation])
    assert sum("\n" in text for text, _ in validation) > 1_000


@pytest.mark.parametrize("texts", [review_sentences, movie_reviews])
def test_the_parts_share_no_text_whatever_its_marks_and_capitals(texts):
    def words(text):
        return re.sub(r"\W+", " ", text.lower()).strip() or text

    train, validation = ([words(text) for text, _ in texts(split)] for split in ("train", "validation"))
    assert len({*train, *validation}) == len(train) + len(validation)


def test_no_snippet_shares_more_than_half_of_its_three_words_with_one_of_the_other_part():
    holders = defaultdict(list)
    held_out = [set(three_words(text)) for text, _ in review_sentences("validation")]
    for i, mine in enumerate(held_out):
        for part in mine:
            holders[part].append(i)
    worst = 0.0
    for text, _ in review_sentences("train"):
        mine = set(three_words(text))
        for i, n in Counter(i for part in mine for i in holders.get(part, ())).items():
            worst = max(worst, n / len(mine | held_out[i]))
    assert 0.2 < worst <= 0.5


@pytest.mark.parametrize("texts", [review_sentences, movie_reviews])
def test_the_order_is_mixed_and_a_caller_cannot_change_it(texts):
    train = texts("train")
    assert 400 < sum(label for _, label in train[:1000]) < 600
    first = train[0]
    train.clear()
    assert texts("train")[0] == first
    with pytest.raises(ValueError, match='"train" or "validation", got \'test\''):
        texts("test")


def test_the_division_is_the_same_in_another_process_and_imports_no_pandas():
    script = (
        "import sys; from tformer_book.bert.data.reviews import *;"
        "print(review_sentences('validation')[7]);"
        "print(movie_reviews('validation')[7][0][:40].encode()); print('pandas' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    snippet, review, pandas = run.stdout.splitlines()
    assert snippet == str(review_sentences("validation")[7])
    assert review == str(movie_reviews("validation")[7][0][:40].encode())
    assert pandas == "False"


def test_what_nearly_repeats_is_kept_once():
    texts = [
        ("a pretentious mess .", 0),
        (". . . A pretentious mess . . .", 0),
        ("a pretentious , dull , endless mess", 0),
        ("good", 1),
        ("Good", 0),
    ]
    assert distinct(texts, three_words) == [texts[0], texts[2], texts[3]]
    one, two, three = (f"{word} is a sentence of more than forty characters." for word in ("a", "b", "c"))
    long = [(f"{one} {two} Short.", 1), (f"{two} {one}", 1), (f"{one} {three} Other.", 0)]
    assert distinct(long, long_sentences) == [long[0], long[2]]


def test_few_of_each_label():
    train = review_sentences("train")
    few = few_per_label(train, 5, seed=0)
    assert Counter(label for _, label in few) == {0: 5, 1: 5}
    assert set(few) <= set(train)
    assert len(set(few)) == 10
    assert few == few_per_label(iter(train), 5, seed=0)
    assert few != few_per_label(train, 5, seed=1)
    assert len(few_per_label([("a", 0), ("b", 0), ("c", 1)], 2, seed=0)) == 3
    with pytest.raises(ValueError, match="n must be 1 or more, got 0"):
        few_per_label(train, 0, seed=0)


def test_too_few_texts():
    with pytest.raises(ValueError, match="3 texts cannot spare 1 of each label"):
        split_evenly([("a", 0), ("b", 0), ("c", 1)], 2)


def test_a_missing_package_is_named_with_version_and_command(monkeypatch):
    monkeypatch.setattr(module, "PACKAGE", "not_installed_here")
    with pytest.raises(ImportError, match=r"0\.0\.2: pip install not_installed_here==0\.0\.2"):
        read("imdb")


def test_a_file_that_lacks_something_says_what(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "package_folder", lambda package, version: tmp_path)
    with pytest.raises(FileNotFoundError, match="has not the reviews"):
        read("imdb")
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "combined_movie_reviews.csv"
    file.write_text("text,stars\ngood,5\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has not the column label and source"):
        read("imdb")
    file.write_text("text,label,source\ngood,5,imdb\n", encoding="utf-8")
    with pytest.raises(ValueError, match="texts from imdb with labels 0 and 1"):
        read("imdb")
    with pytest.raises(ValueError, match="texts from rotten_tomatoes"):
        read("rotten_tomatoes")
    file.write_text('text,label,source\n"good, very",1,imdb\nbad,0,other\n', encoding="utf-8")
    assert read("imdb") == [("good, very", 1)]
