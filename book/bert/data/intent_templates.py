"""Sentences with their slots marked, drawn from the templates of the package home-assistant-intents.

A template is a small grammar that a person wrote: "turn on [the] {area} (light|lamp)[s]". The package
hassil parses it into a tree; here the tree is walked from left to right, each choice is drawn at random,
and every character that a {slot} brought is marked, so that the tags of the words are exact.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tformer_book.bert.data.intent_values import NAMES, OPEN
from tformer_book.kit.data.text import lacks, package_folder

PACKAGE, VERSION = "home_assistant_intents", "2026.10.27"
PARSER, PARSER_VERSION = "hassil", "3.12.1"

Segment = tuple[str, str | None]  # text, and the slot that brought it


@dataclass(frozen=True)
class Template:
    """A template, the intent that it expresses, and the kinds of device that its {name} may be.

    A text that the package gives twice for one intent, for different devices, is one template.
    """

    intent: str
    text: str
    kinds: tuple[str, ...] = ()


@cache
def package_data() -> dict[str, Any]:
    """The English templates, lists and rules as the package has them.

    Raises:
        ImportError: if home-assistant-intents or hassil is not installed.
        FileNotFoundError: if the package has no English data.
        ValueError: if the data lack intents, lists or rules.
    """
    package_folder(PARSER, PARSER_VERSION)
    file = package_folder(PACKAGE, VERSION) / "data" / "en.json"
    if not file.exists():
        raise FileNotFoundError(lacks(PACKAGE, VERSION, "the English intents (data/en.json)"))
    data = json.loads(file.read_text(encoding="utf-8"))
    missing = [key for key in ("intents", "lists", "expansion_rules") if key not in data]
    if missing:
        raise ValueError(lacks(PACKAGE, VERSION, f"{' and '.join(missing)} in data/en.json"))
    return data


@cache
def intent_templates() -> list[Template]:
    """Every template once, by intent and text in the package's order.

    Raises:
        ImportError, FileNotFoundError, ValueError: as `package_data`.
    """
    kinds: dict[tuple[str, str], set[str]] = {}
    for intent, entry in package_data()["intents"].items():
        for block in entry["data"]:
            asked = block.get("requires_context", {}).get("domain", ())
            for text in block["sentences"]:
                kinds.setdefault((intent, text), set()).update([asked] if isinstance(asked, str) else asked)
    return [Template(intent, text, tuple(sorted(found))) for (intent, text), found in kinds.items()]


def sentences(template: Template, most: int = 40) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Up to `most` different sentences of a template as (words, tags), the same on every call.

    A template may make millions of sentences. Ten times `most` are drawn at the most, each choice with
    equal chances, by a generator whose seed is the template itself.

    Raises:
        ValueError: if `most` < 1, or if a slot of the template has no values.
        ImportError: as `package_data`.
    """
    if most < 1:
        raise ValueError(f"most must be 1 or more, got {most}")
    generator = random.Random(f"{template.intent} {template.text}")
    tree = parsed(template.text)
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], None] = {}  # a set that keeps its order
    for _ in range(10 * most):
        found[tagged_words(draw(tree, template, generator))] = None
        if len(found) == most:
            break
    return list(found)


@cache
def parsed(text: str) -> Any:
    """The tree that hassil makes of a template, a rule or a value."""
    from hassil.parse_expression import parse_sentence

    return parse_sentence(text).expression


def draw(node: Any, template: Template, generator: random.Random) -> Iterator[Segment]:
    """One sentence of the tree below `node`, piece by piece, each with the slot that brought it."""
    from hassil import expression as tree

    match node:
        case tree.TextChunk():
            yield node.original_text, None
        case tree.Alternative():
            yield from draw(generator.choice(node.items), template, generator)
        case tree.Permutation():
            for item in generator.sample(node.items, len(node.items)):
                yield from draw(item, template, generator)
        case tree.Group():
            for item in node.items:
                yield from draw(item, template, generator)
        case tree.RuleReference():
            rules: Mapping[str, str] = package_data()["expansion_rules"]
            yield from draw(parsed(rules[node.rule_name]), template, generator)
        case tree.ListReference():
            value = parsed(generator.choice(slot_values(node.list_name, template)))
            yield "".join(text for text, _ in draw(value, template, generator)), node.slot_name
        case _:
            raise ValueError(f"a template holds a {type(node).__name__}, which is not known here: {template}")


def slot_values(name: str, template: Template) -> tuple[str, ...]:
    """What may stand in a slot: the package's own values if it lists them, otherwise ours.

    Raises:
        ValueError: if there are none.
    """
    if name == "name":
        lit = "{name} <light>" in template.text
        kinds = ("before light",) if lit else template.kinds
        values = tuple(value for kind in kinds for value in NAMES.get(kind, ()))
    else:
        listed = package_data()["lists"].get(name, {}).get("values", ())
        values = tuple(value["in"] for value in listed) or OPEN.get(name, ())
    if not values:
        raise ValueError(f"there are no values for {{{name}}} in {template.text!r} of {template.intent}")
    return values


def tagged_words(segments: Iterator[Segment]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a sentence, in small letters, and their tags: B-slot begins a slot, I-slot goes on, O.

    A word ends at a space and where a slot does ("50%" is two words); a hyphen counts as a space.
    """
    words: list[str] = []
    tags: list[str] = []
    literal = ""
    for text, slot in segments:
        if slot is None:
            literal += text
            continue
        add(literal, None, words, tags)
        add(text, slot, words, tags)
        literal = ""
    add(literal, None, words, tags)
    return tuple(words), tuple(tags)


def add(text: str, slot: str | None, words: list[str], tags: list[str]) -> None:
    """The words of one piece and their tags at the end of the lists."""
    new = text.lower().replace("-", " ").split()
    words += new
    tags += ["O" if slot is None else f"{'I' if i else 'B'}-{slot}" for i in range(len(new))]
