"""Labels of letters against what one reads off a small play."""

import torch

from tformer_book.inside.data.letters import OTHER, alphabet, letter_labels, string_labels, trigrams

PLAY = "ROSE:\nOh, to be\n"


def test_labels_are_what_one_reads():
    labels = letter_labels(PLAY)
    assert {len(y) for y in labels.values()} == {len(PLAY)}
    assert labels["place in word"].tolist() == [1, 2, 3, 4, 0, 0, 1, 2, 0, 0, 1, 2, 0, 1, 2, 0]
    assert labels["word with a capital"].tolist() == [1] * 4 + [0, 0, 1, 1] + [0] * 8
    assert labels["speaker's line"].tolist() == [1] * 6 + [0] * 10
    assert labels["letter two back"][:5].tolist() == [OTHER, OTHER, 17, 14, 18]
    assert labels["letters in the line"].tolist() == [0] * 16
    assert letter_labels("a" * 80)["letters in the line"].tolist()[::10] == [0, 1, 2, 3, 4, 5, 5, 5]


def test_trigrams_are_one_number_for_the_same_three_letters():
    found = trigrams("abcABC ab")
    assert found[2] == found[5]
    assert found[2] == (0 * 27 + 1) * 27 + 2
    assert found[0] == (26 * 27 + 26) * 27
    assert alphabet("aZ!").tolist() == [0, 25, 26]


def test_strings_end_with_a_letter_and_the_next_one_follows():
    ids = torch.tensor([[3, 0, 1, 0, 1, 0, 2]])
    labels, names = string_labels(ids, common=(2, 2), after=1)
    assert [n for n in names if n[0] == 1] == [(1, (0,)), (1, (1,))]
    assert {n for n in names if n[0] == 2} == {(2, (0, 1)), (2, (1, 0))}
    found = {name: column.int().tolist() for name, column in zip(names, labels.T, strict=True)}
    assert found[1, (0,)] == [
        1,
        0,
        1,
        0,
        1,
    ]  # of the tokens 0 1 0 1 0, without the first and the last of the row
    assert found[2, (1, 0)] == [0, 0, 1, 0, 1]
    assert found[2, (0, 1)] == [0, 1, 0, 1, 0]
    assert sum(length == 0 for length, _ in names) == 1
    first = torch.tensor([[5, 5, 7, 6]])
    labels, names = string_labels(first, common=(1, 1), after=2)
    assert {name for name in names if name[0] == 0} == {(0, (7,)), (0, (6,))}
