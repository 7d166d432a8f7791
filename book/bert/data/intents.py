"""Commands to a voice assistant: what each wants (its intent), and which words say what (its slots).

"turn on the desk lamp in the kitchen" is of the intent HassTurnOn, *desk lamp* is its name and *kitchen* its
area. The sentences are drawn from the templates of home-assistant-intents, and held out are whole
templates: a model is measured on ways of saying that it has never met.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from tformer_book.bert.data.intent_templates import Template, intent_templates, sentences

HELD_OUT = 0.25  # of an intent's templates
PER_INTENT = 150  # sentences of the validation part at most


@dataclass(frozen=True)
class Utterance:
    """A sentence as words, a tag for each word, its intent, and the template that made it.

    Tags: "B-area" on the first word of an area, "I-area" on its further words, "O" on words of no slot.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    intent: str
    template: str

    @property
    def pattern(self) -> tuple[str, ...]:
        """The words with each slot's value replaced by its name, as in "turn on the {name}"."""
        pairs = zip(self.words, self.tags, strict=True)
        return tuple(w if t == "O" else f"{{{t[2:]}}}" for w, t in pairs if not t.startswith("I-"))


def intent_utterances(split: str = "train") -> list[Utterance]:
    """The sentences of one part, "train" or "validation", in a fixed order.

    A quarter of each intent's templates, and one at least, is held out. Validation has at most 150
    sentences an intent, spread over its templates. A sentence that can be read in two ways is in neither
    part; from training is taken what has the pattern of a held-out sentence (the same words but for the
    slots' values). An intent with a single template is left out.

    Raises:
        ValueError: if there is no such part.
        ImportError, FileNotFoundError: as `intent_templates`.
    """
    if split not in ("train", "validation"):
        raise ValueError(f'split is "train" or "validation", got {split!r}')
    return list(parts()[split == "validation"])


@cache
def parts() -> tuple[list[Utterance], list[Utterance]]:
    """(train, validation)."""
    train, held_out = split_templates(intent_templates())
    readings = [utterance(t, *s) for t in (*train, *held_out) for s in sentences(t)]
    clear = one_reading(readings)
    held = {(t.intent, t.text) for t in held_out}
    validation = [u for u in clear if (u.intent, u.template) in held]
    patterns = {u.pattern for u in validation}
    training = [u for u in clear if (u.intent, u.template) not in held and u.pattern not in patterns]
    both = {u.intent for u in training} & {u.intent for u in validation}
    known = {tag for u in training if u.intent in both for tag in u.tags}
    validation = [u for u in validation if u.intent in both and known.issuperset(u.tags)]
    return [u for u in training if u.intent in both], few_per_intent(validation, PER_INTENT, seed=0)


def utterance(template: Template, words: tuple[str, ...], tags: tuple[str, ...]) -> Utterance:
    """A sentence of a template."""
    return Utterance(words, tags, template.intent, template.text)


def split_templates(templates: Iterable[Template]) -> tuple[list[Template], list[Template]]:
    """(train, held out): whole templates, a quarter of each intent's, without intents of a single one."""
    train: list[Template] = []
    held_out: list[Template] = []
    by_intent = defaultdict(list)
    for template in templates:
        by_intent[template.intent].append(template)
    for intent, mine in by_intent.items():
        if len(mine) > 1:
            order = sorted(mine, key=lambda template: template.text)
            random.Random(intent).shuffle(order)
            n = max(1, round(HELD_OUT * len(order)))
            held_out += order[:n]
            train += order[n:]
    return train, held_out


def one_reading(utterances: Iterable[Utterance]) -> list[Utterance]:
    """Each sentence once, and none that has two intents or two ways to be tagged."""
    first: dict[tuple[str, ...], Utterance] = {}
    ambiguous = set()
    for u in utterances:
        other = first.setdefault(u.words, u)
        if (other.intent, other.tags) != (u.intent, u.tags):
            ambiguous.add(u.words)
    return [u for words, u in first.items() if words not in ambiguous]


def few_per_intent(utterances: Iterable[Utterance], n: int, *, seed: int) -> list[Utterance]:
    """`n` sentences of each intent, spread over its templates; all of an intent that has fewer.

    The templates take turns in a random order; with n up to their number each sentence is of another one.
    In the training part 2 of the 39 intents have fewer than 5 sentences, 5 fewer than 20, 14 fewer than 100.

    Raises:
        ValueError: if n < 1.
    """
    if n < 1:
        raise ValueError(f"n must be 1 or more, got {n}")
    by_intent: dict[str, dict[str, list[Utterance]]] = defaultdict(lambda: defaultdict(list))
    for u in utterances:
        by_intent[u.intent][u.template].append(u)
    chosen = []
    for intent, by_template in sorted(by_intent.items()):
        generator = random.Random(f"{seed} {intent}")
        queues = [generator.sample(mine, len(mine)) for _, mine in sorted(by_template.items())]
        generator.shuffle(queues)
        turns = [u for i in range(max(map(len, queues))) for queue in queues for u in queue[i : i + 1]]
        chosen += turns[:n]
    return chosen


def intent_names() -> list[str]:
    """The intents in alphabetical order; both parts have sentences of each."""
    return sorted({u.intent for u in parts()[0]})


def slot_tags() -> list[str]:
    """The tags: "O", then "B-x", "I-x" for each slot x in alphabetical order; training has all of them."""
    used = {tag for u in parts()[0] for tag in u.tags} - {"O"}
    return ["O", *sorted(used, key=lambda tag: (tag[2:], tag[:1]))]


def majority_intent_share(utterances: Iterable[Utterance]) -> float:
    """The accuracy of always naming the most frequent intent.

    Raises:
        ValueError: if there are no sentences.
    """
    counts = Counter(u.intent for u in utterances)
    if not counts:
        raise ValueError("there are no sentences")
    return max(counts.values()) / counts.total()
