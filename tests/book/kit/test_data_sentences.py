"""Where sentences end: examples of each rule, and what holds for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.kit.data.sentences import join_fragments, split_sentences

CUT = [  # a bar where a sentence ends
    "It rained. | Did it stop? | It did not! | We stayed.",
    'He said "no." | Then he left. | "Why?" she asked.',
    "It was late (very late). | (So was he.) | [Or so they say.] | Nobody came.",
    "“It is,” he said. | “Is it?” | ‘It is.’ | And so on.",
    "It ended in 1990. | 3 years later it began anew.",
    "He called it so. | Ελλάδα was its name. | Österreich followed.",
    "Really?! | Yes... | No. | Well… | Perhaps.",
    "It cost 3.14 million (2.5% of all). | Then 1,000.50 more.",
    "The answer was no. | Number 5 was right.",
    "He went to the U.S. | The trip was long. | He lived in the U.K. | It was cold.",
    "It began at 8 p.m. | The hall was full by 9 p.m. on Sunday.",
    "It eats ants, termites, etc. | It sleeps by day.",
    "He founded Acme Inc. | In 1990 he sold it.",
    "The answer is B. | The others are wrong.",
    "It is so (see (a) above. And below). | It is.",
    "It is so (see above. | And so on. | The end.",  # the bracket never closes
    "The space was forgotten.| The next sentence came.",
]
WHOLE = [
    "Dr. Smith met Mr. Jones, Mrs. Brown and Prof. Li at St. Paul's.",
    "Brig. Gen. Gideon J. Pillow and U.S. Grant met Lt. Col. Lee on Mt. Olympus.",
    "Some animals, e.g. Aardvarks, i.e. Orycteropus, or cf. Latin names, eat ants.",
    "J. R. R. Tolkien, W. E. B. Du Bois and George H. W. Bush had initials.",
    "The U.S. Congress and the U.K. Parliament met in Washington D.C. Friday.",
    "Ranked no. 1 in 1990 (vol. 3, p. 12, pp. 13-14, fig. 2), he was born c. 1950, on Jan. 5.",
    "Gottschalk v. Benson was decided by the court.",
    "Smith et al. Found nothing.",
    "He said that ... The rest is left out.",
    "At amazon.com one finds version 2.0.1 of it.",
    "He asked why? and left! at once.",
    "One sentence without an end",
]


@pytest.mark.parametrize("marked", CUT)
def test_sentences_end(marked):
    expected = [sentence.strip() for sentence in marked.split("|")]
    text = marked.replace(".| ", ".").replace(" | ", " ")
    assert split_sentences(text) == expected


@pytest.mark.parametrize("text", WHOLE)
def test_sentences_go_on(text):
    assert split_sentences(text) == [text]


def test_quotations_are_not_followed():
    assert split_sentences('"I came. I saw," he said.') == ['"I came.', 'I saw," he said.']


def test_nothing_makes_no_sentence():
    assert split_sentences("") == split_sentences(" \n ") == []


PIECES = st.lists(
    st.sampled_from(
        [*"AbI1.!?…()'\" \n", ". ", "Dr. ", "U.S. ", "c. ", "The ", "word ", ".Then", "... ", "J. ", "é"]
    )
)


@given(st.one_of(PIECES.map("".join), st.text()))
def test_nothing_is_lost_but_space(text):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


def test_fragments_join_the_sentence_before_and_the_first_the_one_after():
    sentences = ["No.", "It was not so at all.", "Why?", "He did.", "Because it rained all day."]
    assert join_fragments(sentences) == [
        "No. It was not so at all. Why? He did.",
        "Because it rained all day.",
    ]
    assert join_fragments(sentences, min_words=1) == sentences
    assert join_fragments(["No."]) == ["No."]
    assert join_fragments([]) == []


@given(st.lists(st.integers(1, 8)), st.integers(1, 6))
def test_no_fragment_is_left_alone(lengths, min_words):
    sentences = [" ".join(["w"] * n) for n in lengths]
    joined = join_fragments(sentences, min_words)
    assert " ".join(joined) == " ".join(sentences)
    if sum(lengths) >= min_words:
        assert all(len(sentence.split()) >= min_words for sentence in joined)
