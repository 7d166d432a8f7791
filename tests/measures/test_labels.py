"""Accuracy, tags of words, and the F1 of entities, by hand."""

import pytest
import torch

from tformer_lib.measures.labels import accuracy, entity_f1, word_tags


def test_accuracy():
    assert accuracy(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 0, 4])) == 0.75


def test_tags_are_read_at_first_pieces():
    first = torch.tensor([[-1, 0, -1, 1, -1], [-1, 0, -1, -1, -1]])
    predicted = torch.tensor([[2, 1, 2, 2, 1], [1, 2, 1, 1, 1]])
    tags = word_tags(predicted, first, ["O", "B-x", "I-x"], [3, 1])  # the third word was cut off
    assert tags == [["B-x", "I-x", "O"], ["I-x"]]


TRUE = [["O", "B-area", "I-area", "O", "B-name"]]


@pytest.mark.parametrize(
    ("predicted", "f1"),
    [
        (["O", "B-area", "I-area", "O", "B-name"], 1.0),
        (["O", "B-area", "O", "O", "B-name"], 0.5),  # an end too early: 1 of 2 predicted, 1 of 2 true
        (["O", "B-area", "I-area", "I-area", "B-name"], 0.5),  # an end too late
        (["B-area", "I-area", "I-area", "O", "B-name"], 0.5),  # a start too early
        (["O", "B-name", "I-name", "O", "B-name"], 0.5),  # a wrong type
        (["O", "B-area", "I-name", "O", "B-name"], 0.5),  # a type that changes inside
        (["O", "O", "O", "O", "B-name"], 2 / 3),  # one missed: P = 1, R = 1/2
        (["B-name", "B-area", "I-area", "O", "B-name"], 0.8),  # one too many: P = 2/3, R = 1
        (["O", "B-area", "B-area", "O", "B-name"], 0.4),  # cut in two: P = 1/3, R = 1/2
        (["O", "I-area", "I-area", "O", "B-name"], 2 / 3),  # no beginning, no entity: P = 1, R = 1/2
        (["O", "B-area", "I-area", "O", "I-name"], 2 / 3),
        (["O", "O", "O", "O", "O"], 0.0),
    ],
)
def test_entity_f1_by_hand(predicted, f1):
    assert entity_f1(TRUE, [predicted]) == pytest.approx(f1)


def test_entities_do_not_run_on_into_the_next_sentence():
    true = [["B-a"], ["B-a"]]
    assert entity_f1(true, [["B-a"], ["I-a"]]) == pytest.approx(2 / 3)


def test_types_are_counted_together():
    """Three of four entities of a, none of one of b, each with one wrong in its place: P = R = 3/5."""
    true = [["B-a"], ["B-a"], ["B-a"], ["B-a"], ["B-b"]]
    predicted = [["B-a"], ["B-a"], ["B-a"], ["B-b"], ["B-a"]]
    assert entity_f1(true, predicted) == pytest.approx(0.6)


@pytest.mark.filterwarnings("error")
def test_no_entities_at_all():
    assert entity_f1([["O", "O"]], [["O", "O"]]) == 0.0
    assert entity_f1([["O"]], [["B-a"]]) == 0.0


@pytest.mark.parametrize("predicted", [[["O"]], [["O", "O"], ["O"]], []])
def test_a_tag_for_each_word(predicted):
    with pytest.raises(ValueError, match="one predicted tag for each"):
        entity_f1([["O", "O"]], predicted)
