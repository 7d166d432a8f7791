import pytest
import torch

from tformer_book.modern_decoder.few_shot import (
    few_shot_accuracy,
    few_shot_answers,
    few_shot_prompt,
    few_shot_tasks,
)
from tformer_lib.core.transformer import TransformerConfig
from tformer_lib.models.gpt import GPT
from tformer_lib.tokenizers import BPETokenizer

TASKS = few_shot_tasks()


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_items_are_sound(task):
    assert len(task.items) == len({question for question, _ in task.items}) == 32
    for number, (question, answers) in enumerate(task.items):
        assert question == question.strip() != ""
        assert all(answer == answer.strip() != "" for answer in answers)
        assert all(task.accepts(number, f" {answer.upper()}.") for answer in answers)
        assert not task.accepts(number, "")
    assert 0 < task.baseline <= 0.5


def test_sums_and_reversals_are_right():
    for name in ("sums of one digit", "sums of two digits"):
        for question, (answer,) in TASKS[name].items:
            assert sum(map(int, question.split(" + "))) == int(answer)
    for question, (answer,) in TASKS["reversed words"].items:
        assert question == answer[::-1]


def test_a_prompt():
    assert few_shot_prompt(TASKS["capitals"], 0, 0) == "Countries and their capitals.\n\nFrance ->"
    lines = few_shot_prompt(TASKS["capitals"], 4, 0).splitlines()
    assert len(lines) == 7
    assert all(" -> " in line for line in lines[2:6])
    assert lines[-1] == "France ->"


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_question_is_never_among_its_examples(task):
    for query, (question, _) in enumerate(task.items):
        lines = few_shot_prompt(task, 31, query).splitlines()[2:-1]
        assert len(set(lines)) == 31
        assert not any(line.startswith(f"{question} ->") for line in lines)


def test_a_longer_prompt_has_the_examples_of_the_shorter():
    task = TASKS["plurals"]
    short, long = (few_shot_prompt(task, n, 5, seed=1).splitlines()[2:] for n in (3, 8))
    assert long[-4:] == short
    assert few_shot_prompt(task, 3, 5, seed=2).splitlines()[2:] != short


@pytest.mark.parametrize("n", [-1, 32])
def test_there_are_only_so_many_examples(n):
    with pytest.raises(ValueError, match=rf"31 items to draw examples from, got {n}"):
        few_shot_prompt(TASKS["plurals"], n, 0)


def build(tokenizer):
    torch.manual_seed(0)
    return GPT(TransformerConfig(d_model=16, n_heads=2, n_blocks=1), tokenizer.vocab_size)


def test_what_is_answered_is_judged(monkeypatch):
    tokenizer = BPETokenizer.train("the other brother", 270, ("<end>",))
    asked = []

    def answer(model, prompts, most, *, temperature, stop):
        assert temperature == 0
        assert {tokenizer.encode("\n")[0], tokenizer.special_tokens["<end>"]} <= set(stop)
        asked.extend(tokenizer.decode(prompt) for prompt in prompts)
        ends = [" Paris\n", " Rome", " Berlin<end>"]
        return [
            [*prompt, *tokenizer.encode(end, ("<end>",))] for prompt, end in zip(prompts, ends, strict=True)
        ]

    monkeypatch.setattr("tformer_book.modern_decoder.few_shot.generate", answer)
    model, task = build(tokenizer), TASKS["capitals"]
    answers = few_shot_answers(model, tokenizer, task, 2, queries=[0, 1, 2])
    assert [(a.answer, a.right) for a in answers] == [("Paris", True), ("Rome", False), ("Berlin", False)]
    assert [a.prompt for a in answers] == asked == [few_shot_prompt(task, 2, q) for q in range(3)]
    assert few_shot_accuracy(model, tokenizer, task, 2, queries=[0, 1, 2]) == (1, 3)


def test_an_untrained_model_answers_and_is_wrong():
    tokenizer = BPETokenizer.train("the other brother", 270)
    assert few_shot_accuracy(build(tokenizer), tokenizer, TASKS["capitals"], 1) == (0, 32)
