"""How exercises are checked, on toy exercises: what passes, what is said, what is recognised."""

import math
import random

import numpy as np
import pytest
import torch

from tformer_book.kit.exercises import Verdict, checker, exercise, exercise_names, registry
from tformer_book.kit.exercises import check as real_check


@pytest.fixture(autouse=True)
def no_chapters(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "BOOK", tmp_path)
    monkeypatch.setattr(registry, "_EXERCISES", {})


def softmax_columns(scores):
    return scores.softmax(dim=0)


def inputs(generator):
    return [
        (torch.randn(3, 4, generator=generator),),
        (torch.randn(2, 2, generator=generator),),
        (torch.full((2, 3), 1000.0),),
    ]


def rows(scores):
    return scores.softmax(dim=1)


def unstable(scores):
    exponentials = scores.exp()
    return exponentials / exponentials.sum(0)


@pytest.fixture
def check():
    toy = exercise("toy.softmax", inputs=inputs)(softmax_columns)
    toy.mistake("wrong axis", "Your rows sum to one.", rows)
    toy.mistake("unstable", "Large scores overflow.", unstable)
    return lambda candidate: real_check("toy.softmax", candidate)


def single(reference, *cases, mistakes=(), **options):
    """Makes an exercise of these inputs and returns its check."""
    made = exercise("toy.single", inputs=lambda _: list(cases), **options)(reference)
    for mistake in mistakes:
        made.mistake(*mistake)
    return lambda candidate: real_check("toy.single", candidate)


def test_the_reference_passes(check):
    verdict = check(softmax_columns)
    assert verdict
    assert verdict.passed
    assert (verdict.mistake, verdict.inputs, verdict.answer, verdict.expected) == (None, None, None, None)
    assert repr(verdict) == verdict.message == "toy.softmax: passed on 3 inputs."


def test_an_exercise_is_called_as_its_reference_is():
    @exercise("toy.sum", inputs=lambda g: [(torch.ones(2), 1)])
    def total(x, start):
        return x.sum() + start

    assert total(torch.ones(3), 2) == 5
    assert total.parameters == ["x", "start"]
    assert real_check("toy.sum", total)


def test_another_way_to_the_same_numbers_passes(check):
    def by_hand(scores):
        exponentials = (scores - scores.amax(0, keepdim=True)).exp()
        return exponentials / exponentials.sum(0, keepdim=True)

    assert check(by_hand)


def test_a_wrong_shape_is_said(check):
    verdict = check(lambda s: s.softmax(0)[:1])
    assert not verdict
    assert "it returned the shape (1, 2); the shape (2, 2) was expected." in verdict.message


def test_a_wrong_type_is_said(check):
    assert "returned a list of 2; a tensor" in check(lambda s: s.softmax(0).tolist()).message


def test_a_missing_return_is_said(check):
    def forgetful(scores):
        if scores.shape == (2, 3):
            return scores.softmax(0)

    assert "returned nothing, as a function without a `return`" in check(forgetful).message


@pytest.mark.parametrize("blank", [lambda s: None, lambda s: print(end="")])
def test_a_stub_is_the_reader_s_turn(check, blank):
    verdict = check(blank)
    assert not verdict
    assert verdict.message == "toy.softmax: your turn. The function returns nothing yet."


def test_an_exception_is_said(check):
    verdict = check(lambda s: s.no_such_method())
    assert "it raised AttributeError: 'Tensor' object has no attribute 'no_such_method'" in verdict.message
    assert "it raised TypeError" in check(lambda: None).message


def test_nan_is_said(check):
    assert "There is NaN in it." in check(lambda s: s.softmax(0) * float("nan")).message


def test_the_smallest_input_that_fails_is_shown_with_its_first_wrong_number(check):
    verdict = check(lambda s: s.softmax(0) + torch.tensor([[0.0], [0.5]]) * (len(s) == 2))
    numbers = verdict.inputs[0].double().round(decimals=4).tolist()
    assert f"On scores = {numbers} it returned" in verdict.message
    assert " at [1, 0]; " in verdict.message
    assert "(2 of 4 numbers differ)" in verdict.message
    assert verdict.inputs[0].shape == (2, 2)
    torch.testing.assert_close(verdict.expected, verdict.inputs[0].softmax(0))
    torch.testing.assert_close(verdict.answer[0], verdict.expected[0])


def test_a_large_input_is_described_by_its_shape():
    check = single(lambda x: x, (torch.zeros(5, 6),))
    assert "On x of shape (5, 6) it returned 1 at [0, 0]; 0 was expected" in check(lambda x: x + 1).message


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda x: -x, "Every number has the wrong sign."),
        (lambda x: 2 * x, "Every number is twice the expected one."),
        (lambda x: x * math.log(2), "Every number is 0.693147 times the expected one."),
        (lambda x: x + 0.25, "Every number is 0.25 too large."),
        (lambda x: x - 3, "Every number is 3 too small."),
        (lambda x: x.T.contiguous(), "It is the transpose of what was expected."),
        (lambda x: x * 0, "Everything is zero."),
        (lambda x: x.flip(0), "The numbers are right, in reverse order."),
        (lambda x: x.flatten().roll(1).view(3, 3), "The numbers are right, in another order."),
        (lambda x: torch.cat((x[:1], x[1:] + x[:1])), "Only the first row is right."),
        (lambda x: torch.cat((x[:-1], x[:1])), "Only the last row is wrong."),
        (lambda x: torch.cat((x[1:2], x[1:])), "Only the first row is wrong."),
        (lambda x: x / 0, ""),
    ],
)
def test_well_known_ways_to_be_wrong_are_named(wrong, said):
    check = single(lambda x: x, (torch.tensor([[1.0, 2.0, 4.0], [7.0, 11.0, 16.0], [22.0, 29.0, 37.0]]),))
    message = check(wrong).message
    assert said in message
    assert message.count(".") >= 2


def test_transposed_and_reshaped_numbers_are_named():
    check = single(lambda x: x, (torch.arange(6.0).view(2, 3),))
    assert "It is the transpose of what was expected." in check(lambda x: x.T).message
    assert "The numbers are right, in another shape." in check(lambda x: x.flatten()).message


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (torch.tensor([1.00002]), torch.tensor([1.0])),
        (1.00002, 1.0),
        ([1.0] * 50 + [2.0], [1.0] * 50 + [3.0]),
        (["token"] * 99 + ["one"], ["token"] * 99 + ["two"]),
        ("x" * 500 + "a", "x" * 500 + "b"),
        ("x" * 500, "x" * 501),
        (torch.cat((torch.zeros(300), torch.ones(1))), torch.zeros(301)),
        (torch.zeros(300, dtype=torch.int64), torch.cat((torch.zeros(299), torch.ones(1))).long()),
        ({"a": [1, 2, 3]}, {"a": [1, 2, 4]}),
        ((1, (2, (3, 4))), (1, (2, (3, 5)))),
        (frozenset({1}), frozenset({2})),
        (1 + 2j, 1 + 3j),
        (True, 1),
        (1.0, 1),
        (2, True),
    ],
)
def test_two_different_answers_never_look_alike(answer, expected):
    message = single(lambda: expected, ())(lambda: answer).message
    assert message.startswith("toy.single: not yet. On no arguments it returned ")
    got, wanted = message.split(" it returned ")[1].split(" was expected")[0].split("; ")
    assert got.split(" at [")[0] != wanted
    assert len(message) < 400


def test_places_inside_lists_are_said():
    check = single(lambda: [[1, 2], [3, 4]], ())
    message = check(lambda: [[1, 2], [3, 5]]).message
    assert "it returned 5 as item 1, as item 1; 4 was expected" in message
    assert "it returned a list of 3 items; one of 2 was expected" in check(lambda: [[1, 2]] * 3).message


def test_a_mistake_is_recognised_by_what_it_does(check):
    def mine(scores):
        return torch.stack([row.exp() / row.exp().sum() for row in scores - scores.max()])

    verdict = check(mine)
    assert not verdict
    assert verdict.mistake == "wrong axis"
    assert verdict.message == "toy.softmax: not yet. Your rows sum to one."
    assert verdict.inputs[0].shape == (2, 2)


def test_a_mistake_in_an_edge_case_only(check):
    verdict = check(lambda s: s.exp() / s.exp().sum(0, keepdim=True))
    assert verdict.mistake == "unstable"


def test_every_mistake_is_recognised_as_itself(check):
    for variant, name in ((rows, "wrong axis"), (unstable, "unstable")):
        assert check(variant).mistake == name


def test_a_mistake_that_raises_needs_the_same_error():
    def raises(x):
        return x @ torch.ones(7)

    check = single(lambda x: x.sum(), (torch.ones(3),), mistakes=[("shape", "Mind the 7.", raises)])
    assert check(lambda x: torch.ones(3) @ torch.ones(7)).mistake == "shape"
    other = check(lambda x: x.view(2, 2))
    assert other.mistake is None
    assert "raised RuntimeError" in other.message


def test_the_more_specific_mistake_comes_first():
    same = [(name, name, lambda x: x + 1) for name in ("first", "second")]
    assert single(lambda x: x, (torch.ones(2),), mistakes=same)(lambda x: 1 + x).mistake == "first"


def test_a_mistake_has_a_name_of_its_own():
    made = exercise("toy.twice", inputs=inputs)(softmax_columns)
    made.mistake("one", "A hint.", rows)
    with pytest.raises(ValueError, match="'one' already"):
        made.mistake("one", "Another.", unstable)


def centre(x):
    """The norm of x comes last."""
    mean = x.mean()
    y = x - mean
    return y / y.norm()


class TestMistakesThatAreChangesOfTheReference:
    def made(self, text):
        made = exercise("toy.centre", inputs=lambda g: [(torch.tensor([1.0, 2.0, 6.0]),)])(centre)
        made.add_mistakes(text)
        return made

    def test_a_piece_is_replaced_wherever_it_stands(self):
        made = self.made("""
            not centred | x - mean => x
                The mean is still there:
                subtract it.
            twice | y / y.norm() => 2 * y / y.norm()
                You double it.
            with the variance
                | .norm() => .var()
                | y / => 3 * y /
                Not the variance.
        """)
        names = ["not centred", "twice", "with the variance"]
        assert [mistake.name for mistake in made.mistakes] == names
        assert made.mistakes[0].hint == "The mean is still there: subtract it."
        x = torch.tensor([1.0, 2.0, 6.0])
        for mistake, wanted in zip(
            made.mistakes, (x / x.norm(), 2 * centre(x), 3 * (x - 3) / (x - 3).var()), strict=True
        ):
            torch.testing.assert_close(mistake.variant(x), wanted)
        assert real_check("toy.centre", lambda x: x / x.norm()).mistake == "not centred"

    def test_what_is_removed_and_what_is_another_function(self):
        made = self.made("""
            not normed | / y.norm() =>
                Divide.
            the input itself | => lambda x: centre(x) + x
                Not the input.
        """)
        x = torch.tensor([1.0, 2.0, 6.0])
        assert made.mistakes[0].variant(x).tolist() == [-2.0, -1.0, 3.0]
        torch.testing.assert_close(made.mistakes[1].variant(x), centre(x) + x)

    def test_a_piece_that_is_not_there_is_an_error_and_not_an_answer(self):
        made = self.made("nothing of the kind | sigmoid => tanh\n    A hint.")
        with pytest.raises(ValueError, match="'sigmoid' does not stand in centre"):
            real_check("toy.centre", lambda x: x)
        with pytest.raises(ValueError, match="'norm of x comes last' does not stand in centre"):
            registry.changed(made.reference, ["norm of x comes last => x"])  # the docstring is not searched

    @pytest.mark.parametrize(
        "text", ["no change\n    A hint.", "no hint | x => y", "no arrow | x\n    A hint."]
    )
    def test_change_and_hint_are_needed(self, text):
        with pytest.raises(ValueError, match="needs a change, before => after, and a hint"):
            self.made(text)

    def test_a_name_stands_once(self):
        with pytest.raises(ValueError, match="'one' already"):
            self.made("one | x => y\n    A hint.\none | y => x\n    Another.")


def test_inputs_and_answers_are_made_once_and_stay_what_they_are():
    calls = []

    def reference(x):
        calls.append(x)
        return x + 1

    made = exercise("toy.once", inputs=lambda g: calls.append("inputs") or [(torch.ones(2),)])(reference)
    verdict = real_check("toy.once", lambda x: x)
    verdict.inputs[0].zero_()
    verdict.expected.zero_()
    assert real_check("toy.once", lambda x: x + 1)
    assert real_check("toy.once", lambda x: x).inputs[0].tolist() == [1.0, 1.0]
    assert calls.count("inputs") == 1
    assert checker.rejects(made, lambda x: x, 1.0)
    assert not checker.rejects(made, lambda x: 1 + x, 1.0)


def test_a_candidate_that_never_returns_is_rejected():
    def forever(x):
        while True:
            pass

    made = exercise("toy.rejects", inputs=lambda g: [(1,)])(lambda x: x)
    assert checker.rejects(made, forever, 0.1)


def test_a_candidate_that_changes_its_arguments_is_told_so(check):
    def destroys(scores):
        answer = scores.softmax(0)
        scores.zero_()
        return answer

    def wrong_and_destroys(scores):
        answer = scores.softmax(1)
        scores.fill_(float("nan"))
        return answer

    verdict = check(destroys)
    assert not verdict
    assert "it changed its argument `scores`: work on a copy of it." in verdict.message
    assert check(wrong_and_destroys).mistake == "wrong axis"


@pytest.mark.parametrize(
    ("case", "change"),
    [
        (([1, 2],), lambda x: x.append(3)),
        (([1, 2],), lambda x: x.reverse()),
        (({"a": 1},), lambda x: x.update(a=2)),
        (({"a": 1},), lambda x: x.update(b=2)),
        (([torch.zeros(2)],), lambda x: x[0].add_(1)),
        ((np.zeros(2),), lambda x: x.fill(1)),
    ],
)
def test_changes_inside_containers_are_seen(case, change):
    verdict = single(lambda x: 0, case)(lambda x: (change(x), 0)[1])
    assert "it changed its argument" in verdict.message


def test_a_reference_may_change_its_arguments_where_that_is_the_task():
    check = single(lambda x: x.add_(1), (torch.ones(2),))
    assert check(lambda x: x.add_(1))


def test_randomness_is_held_fixed():
    check = single(lambda x: x + torch.randn(3), (torch.zeros(3),), (torch.ones(3),))
    before = torch.random.get_rng_state()
    assert check(lambda x: torch.randn(3) + x)
    assert not check(lambda x: torch.randn(4)[1:] + x)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_randomness_of_python_and_numpy_is_left_alone(check):
    random.seed(3)
    expected = random.random()
    random.seed(3)
    check(softmax_columns)
    assert random.random() == expected


def test_the_same_inputs_every_time(check):
    assert check(lambda s: 2 * s).message == check(lambda s: 2 * s).message


def test_the_candidate_may_be_called_with_several_arguments():
    check = single(lambda x, n: x[:n], (torch.arange(5.0), 2))
    assert check(lambda x, n: x[:n])
    message = check(lambda x, n: x[: n + 1]).message
    assert "On x = [0.0, 1.0, 2.0, 3.0, 4.0], n = 2 it returned the shape (3,); the shape (2,) was" in message


def test_several_answers():
    check = single(lambda x: (x.sum(), x * 2), (torch.ones(2),))
    assert check(lambda x: (x.sum(), x + x))
    assert check(lambda x: [x.sum(), x + x])
    assert "a tensor; a tuple of 2 was expected" in check(lambda x: x).message
    assert "a tuple of 3 items; one of 2 was expected" in check(lambda x: (x, x, x)).message
    message = check(lambda x: (x.sum(), x.sum())).message
    assert "the shape () as item 1; the shape (2,) was expected" in message


@pytest.mark.parametrize(
    "answer", [0.5, np.float32(0.5), np.float64(0.5), torch.tensor(0.5), 0.5 + 1e-7], ids=repr
)
def test_any_kind_of_real_number_is_one(answer):
    assert single(lambda: 0.5, ())(lambda: answer)


@pytest.mark.parametrize("answer", [3, np.int32(3), torch.tensor(3)], ids=repr)
def test_whole_numbers_are_told_from_real_ones(answer):
    check = single(lambda: 3, ())
    assert check(lambda: answer)
    for wrong in (3.0, np.float64(3), torch.tensor(3.0), True):
        assert "a whole number was expected" in check(lambda wrong=wrong: wrong).message


def test_a_whole_number_may_stand_for_a_real_one():
    assert single(lambda: 3.0, ())(lambda: 3)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0, True])
def test_special_numbers(value):
    check = single(lambda: value, ())
    assert check(lambda: value)
    assert not check(lambda: 7)
    assert not check(lambda: None)


def test_words_are_compared_as_they_are():
    check = single(lambda: "query", ())
    assert check(lambda: "query")
    assert "returned 'key'; 'query' was expected" in check(lambda: "key").message


def test_booleans_and_integers():
    check = single(lambda: torch.tensor([True, False]), ())
    assert check(lambda: torch.tensor([True, False]))
    assert "False at [0]; True was expected" in check(lambda: torch.tensor([False, False])).message
    assert "torch.int64; one of torch.bool was expected" in check(lambda: torch.tensor([1, 0])).message
    whole = single2(lambda: torch.tensor([1, 0]))
    assert "torch.float32; one of torch.int64 was expected" in whole(lambda: torch.tensor([1.0, 0.0])).message


def single2(reference):
    exercise("toy.whole", inputs=lambda _: [()])(reference)
    return lambda candidate: real_check("toy.whole", candidate)


def test_half_precision_and_gradients_can_be_shown():
    check = single(lambda: torch.ones(2), ())
    assert "2 at [0]" in check(lambda: torch.full((2,), 2.0, dtype=torch.bfloat16)).message
    assert "2 at [0]" in check(lambda: torch.full((2,), 2.0, requires_grad=True)).message


def test_tolerance():
    check = single(lambda: torch.ones(2), (), tolerance=0.1)
    assert check(lambda: torch.ones(2) + 0.15)
    assert not check(lambda: torch.ones(2) + 0.25)


def test_an_unknown_name_is_put_right_or_leads_to_the_known(check):
    with pytest.raises(KeyError, match=r"no exercise 'toy\.sotfmax': did you mean 'toy\.softmax'\?"):
        real_check("toy.sotfmax", softmax_columns)
    with pytest.raises(KeyError, match=r"no exercise 'toy\.q'; of this chapter there are toy\.softmax"):
        real_check("toy.q", softmax_columns)
    with pytest.raises(KeyError, match=r"a name is chapter\.task, and the chapters are toy"):
        real_check("none at all", softmax_columns)
    assert exercise_names() == ["toy.softmax"]


def test_what_cannot_be_called_is_refused(check):
    with pytest.raises(TypeError, match="check needs a function to call, got Tensor"):
        check(torch.ones(3).softmax(0))


def test_a_name_is_taken_once(check):
    with pytest.raises(ValueError, match=r"'toy\.softmax' already"):
        exercise("toy.softmax", inputs=inputs)(softmax_columns)


def test_an_interrupt_is_not_an_answer(check):
    def stopped(scores):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(stopped)


def test_a_verdict_shows_its_message():
    assert repr(Verdict(True, "fine")) == "fine"
    long = Verdict(False, "toy.softmax: not yet. " + "The shape is right and the contents are not. " * 4)
    assert max(map(len, repr(long).splitlines())) <= 80
    assert repr(long).split() == long.message.split()
    assert repr(Verdict(False, "two\nlines")) == "two\nlines"
    assert not Verdict(False, "no")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_numpy_array_may_stand_for_a_tensor(check, dtype):
    assert check(lambda s: s.softmax(0).numpy().astype(dtype))
    assert "numbers differ" in check(lambda s: s.numpy()).message
    assert "the shape (2,) was expected" not in check(lambda s: s.softmax(0).numpy().astype(str)).message
    assert not check(lambda s: s.softmax(0).numpy().astype(str))


def test_a_pattern_is_named_only_where_every_input_shows_it():
    """On two numbers in a row any error looks like a factor; and one input's factor is not the next one's."""
    cases = [(torch.tensor([[3.0, 4.0]]),), (torch.eye(3) + 2 * torch.ones(3, 3),)]
    unit = single(lambda x: x / x.norm(), *cases)
    steps = unit(lambda x: x / (x.norm() * (1 + 0.01 * torch.arange(x.numel()).view_as(x))))
    assert "times" not in steps.message
    assert "is 1.4 times the expected" not in unit(lambda x: x / x.sum()).message
    assert "Every number is twice the expected one." in unit(lambda x: 2 * x / x.norm()).message


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda total, gpus: 2 * total / gpus, "It is twice the expected one."),
        (lambda total, gpus: total, "It is the expected one times `gpus`."),
        (lambda total, gpus: total / gpus**2, "It is the expected one divided by `gpus`."),
        (lambda total, gpus: total / gpus**0.5, "It is the expected one times the square root of `gpus`."),
        (lambda total, gpus: -total / gpus, "The sign is wrong."),
        (lambda total, gpus: total / gpus + 3, "It is 3 too large."),
        (lambda total, gpus: total / gpus + gpus, "times"),
    ],
)
def test_factors_of_single_numbers_are_read_off_several_inputs(wrong, said):
    check = single(lambda total, gpus: total / gpus, (12.0, 2), (30.0, 5), (70.0, 7))
    message = check(wrong).message
    assert (said in message) == (said != "times")


class TestArguments:
    """What is said where no mistake is known and the numbers alone tell nothing."""

    def check(self, candidate):
        def reference(x, gain, shift, places):
            return gain * x.cumsum(0) + shift * places

        def case(n, places):
            return (*torch.randn(3, n), places)

        torch.manual_seed(1)
        return single(reference, case(4, 2), case(3, 3), case(5, 2))(candidate).message

    @pytest.mark.parametrize(
        ("wrong", "name"),
        [
            (lambda x, gain, shift, places: x.cumsum(0) + shift * places, "gain"),
            (lambda x, gain, shift, places: gain * x.cumsum(0) + shift * 2, "places"),
        ],
    )
    def test_one_that_is_not_looked_at_is_named(self, wrong, name):
        assert self.check(wrong).endswith(f"On these inputs your answer does not depend on `{name}`.")

    def test_two_that_are_exchanged_are_named(self):
        message = self.check(lambda x, gain, shift, places: shift * x.cumsum(0) + gain * places)
        assert message.endswith("It is what comes out if `gain` and `shift` are exchanged.")

    def test_nothing_is_said_where_all_are_looked_at_and_in_their_places(self):
        message = self.check(lambda x, gain, shift, places: gain + x.cumsum(0) + shift * places)
        assert message.endswith("numbers differ).")

    def test_a_candidate_that_does_not_return_on_other_numbers_is_left_alone(self):
        single(lambda x, y: x.cumsum(0) + y, (torch.ones(3), torch.arange(3.0)))

        def picky(x, y):
            while not (x == 1).all():
                pass
            return x + x * y

        assert real_check("toy.single", picky, seconds=0.1).message.endswith("numbers differ).")


def test_overflow_is_explained_where_the_numbers_are_large(check):
    toy = single(lambda x: x.softmax(0), (torch.tensor([1.0, 2.0]),), (torch.tensor([260.0, 1.0]),))
    message = toy(lambda x: x.exp() / x.exp().sum()).message
    assert "There is NaN in it. A number that goes in is 260," in message
    assert "88" not in toy(lambda x: x * torch.nan).message.split("260")[0]


def test_an_argument_that_changes_while_it_is_read_is_named():
    def turned(x):
        a, b = x[::2], x[1::2]
        a += b  # x has changed, and a is not the old one
        b -= a
        return x

    message = single(
        lambda x: torch.stack([x[::2] + x[1::2], x[1::2] - x[::2]], 1).flatten(), (torch.arange(4.0),)
    )(turned).message
    assert "It also changed its argument `x` on the way" in message


def test_one_tensor_kept_several_times_is_named():
    def kept(x):
        state, states = torch.zeros(2), []
        for row in x:
            state += row
            states.append(state)
        return states

    check = single(lambda x: list(x.cumsum(0)), (torch.arange(1.0, 7).view(3, 2),))
    assert "was one object changed in place" in check(kept).message
    table = single2(lambda: torch.arange(6.0).view(3, 2))
    assert "was one tensor changed in place" in table(lambda: torch.tensor([[4.0, 5.0]] * 3)).message


def test_shapes_that_do_not_meet_are_explained():
    check = single(lambda x: x - x.mean(1, keepdim=True), (torch.arange(6.0).view(2, 3),))
    assert "keepdim=True" in check(lambda x: x - x.mean(1)).message
    assert "keepdim" not in check(lambda x: x.no_such).message


class TestModels:
    """A model's state is looked at, whatever the candidate says of it."""

    def model(self, training):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)).train(training)

    def check(self, candidate):
        def reference(model, x):
            was = model.training
            model.eval()
            with torch.no_grad():
                y = model(x)
            model.train(was)
            return y, model.training

        cases = [(self.model(mode), torch.ones(2, 3)) for mode in (True, False)]
        return single(reference, *cases)(candidate)

    @staticmethod
    def predict(model, x):
        with torch.no_grad():
            return model(x)

    def test_a_flag_is_not_believed(self):
        def leaves_it(model, x):
            was = model.training
            return self.predict(model.eval(), x), was

        verdict = self.check(leaves_it)
        assert "the answer is right, and the model `model` is left in evaluation mode" in verdict.message
        assert verdict.inputs[0].training

    def test_one_module_in_another_mode_is_seen(self):
        def half(model, x):
            was = model.training
            y = self.predict(model.eval(), x)
            model.training = was
            return y, was

        assert "some of its modules in another mode" in self.check(half).message

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda model: model[0].weight.data.add_(1), "with other numbers in 0.weight"),
            (lambda model: model[0].register_forward_hook(lambda *_: None), "with 1 hooks instead of 0"),
            (lambda model: model[0].weight.requires_grad_(False), "ask for gradients"),
            (lambda model: model.append(torch.nn.Linear(3, 3)), "mode"),
        ],
    )
    def test_what_else_is_left_behind(self, change, said):
        def leaving(model, x):
            was = model.training
            y = self.predict(model.eval(), x)
            model.train(was)
            change(model)
            return y, was

        assert said in self.check(leaving).message

    def test_a_model_as_it_was_passes(self):
        def restores(model, x):
            modes = {module: module.training for module in model.modules()}
            y = self.predict(model.eval(), x)
            for module, mode in modes.items():
                module.training = mode
            return y, model.training

        assert self.check(restores)
