"""Tasks that a language model is given by examples alone: nothing is trained, the prompt says it all.

A prompt is a line that says what to do, then n examples "question -> answer", one a line, and a last line
that stops after the arrow; what the model writes there, up to the end of the line, is its answer (Brown et
al. 2020, section 1). The examples are other items of the same task, drawn at random for each question.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tformer_book.modern_decoder.data.few_shot_items import (
    BLAME,
    CAPITALS,
    FRENCH,
    OPPOSITES,
    PLURALS,
    PRAISE,
    WORDS,
)
from tformer_lib.generation import generate
from tformer_lib.models.gpt import GPT
from tformer_lib.tokenizers import BPETokenizer

LONGEST = 8  # tokens of an answer


@dataclass(frozen=True)
class FewShotTask:
    """A line that says what to do, and questions with their accepted answers, the first of which is shown."""

    name: str
    instruction: str
    items: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def baseline(self) -> float:
        """The accuracy of always giving the most frequent answer."""
        return Counter(answers[0] for _, answers in self.items).most_common(1)[0][1] / len(self.items)

    def accepts(self, number: int, answer: str) -> bool:
        """Whether this is an accepted answer to a question, capital letters and a full stop aside."""
        return answer.strip().rstrip(".").lower() in {a.lower() for a in self.items[number][1]}


@dataclass(frozen=True)
class FewShotAnswer:
    """A question as it was asked, and what came back."""

    prompt: str
    answer: str
    accepted: tuple[str, ...]
    right: bool


@cache
def few_shot_tasks() -> dict[str, FewShotTask]:
    """Eight tasks of 32 items each, by name."""
    draw = random.Random(0)
    small = draw.sample([(a, b) for a in range(1, 10) for b in range(1, 10)], 32)
    large = draw.sample([(a, b) for a in range(10, 50) for b in range(10, 50)], 32)
    praise, blame = (text.strip().replace("\n", "|").split("|") for text in (PRAISE, BLAME))
    tasks = [
        FewShotTask("opposites", "Words and their opposites.", _pairs(OPPOSITES)),
        FewShotTask("capitals", "Countries and their capitals.", _pairs(CAPITALS)),
        FewShotTask("French", "English words and what they are in French.", _pairs(FRENCH)),
        FewShotTask("plurals", "Nouns and their plurals.", _pairs(PLURALS)),
        FewShotTask("sums of one digit", "Sums.", _sums(small)),
        FewShotTask("sums of two digits", "Sums.", _sums(large)),
        FewShotTask(
            "sentiment",
            "What people said, and whether it is positive or negative.",
            tuple((said, ("positive",)) for said in praise) + tuple((said, ("negative",)) for said in blame),
        ),
        FewShotTask(
            "reversed words",
            "Words, and the same words spelt backwards.",
            tuple((word, (word[::-1],)) for word in WORDS.split()),
        ),
    ]
    return {task.name: task for task in tasks}


def _pairs(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """ "hot cold;chilly|..." -> (("hot", ("cold", "chilly")), ...)."""
    entries = [entry.split(" ", 1) for entry in text.strip().replace("\n", "|").split("|")]
    return tuple((question, tuple(answers.split(";"))) for question, answers in entries)


def _sums(pairs: list[tuple[int, int]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((f"{a} + {b}", (str(a + b),)) for a, b in pairs)


def few_shot_prompt(task: FewShotTask, n_examples: int, query: int, seed: int = 0) -> str:
    """The prompt for question number `query` with this many examples, which are never the question itself.

    With one seed, the examples of a shorter prompt are the last ones of a longer.

    Raises:
        ValueError: if there are not so many other items.
    """
    others = [item for number, item in enumerate(task.items) if number != query]
    if not 0 <= n_examples <= len(others):
        raise ValueError(f"{task.name} has {len(others)} items to draw examples from, got {n_examples}")
    random.Random(f"{seed} {task.name} {query}").shuffle(others)
    shown = others[len(others) - n_examples :]
    lines = [f"{question} -> {answers[0]}" for question, answers in shown]
    return "\n".join([task.instruction, "", *lines, f"{task.items[query][0]} ->"])


def few_shot_answers(
    model: GPT,
    tokenizer: BPETokenizer,
    task: FewShotTask,
    n_examples: int,
    *,
    queries: Sequence[int] | None = None,
    seed: int = 0,
) -> list[FewShotAnswer]:
    """The model's answers, the most probable token at each step; to all questions if `queries` is None."""
    queries = range(len(task.items)) if queries is None else queries
    prompts = [few_shot_prompt(task, n_examples, query, seed) for query in queries]
    newlines = [i for i in range(tokenizer.vocab_size) if b"\n" in tokenizer.token_bytes(i)]
    stop = [*newlines, *tokenizer.special_tokens.values()]
    encoded = [tokenizer.encode(prompt) for prompt in prompts]
    answers = []
    written: list[Any] = generate(model, encoded, LONGEST, temperature=0.0, stop=stop)
    for query, prompt, ids, row in zip(queries, prompts, encoded, written, strict=True):
        new = [i for i in row[len(ids) :] if i not in tokenizer.special_tokens.values()]
        answer = tokenizer.decode(new).split("\n")[0].strip()
        answers.append(FewShotAnswer(prompt, answer, task.items[query][1], task.accepts(query, answer)))
    return answers


def few_shot_accuracy(
    model: GPT,
    tokenizer: BPETokenizer,
    task: FewShotTask,
    n_examples: int,
    *,
    queries: Sequence[int] | None = None,
    seed: int = 0,
) -> tuple[int, int]:
    """How many answers were right, and of how many."""
    answers = few_shot_answers(model, tokenizer, task, n_examples, queries=queries, seed=seed)
    return sum(answer.right for answer in answers), len(answers)
