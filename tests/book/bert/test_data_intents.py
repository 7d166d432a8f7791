"""The drawn sentences are what hassil reads in them, and nothing of what is held out is trained on."""

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
from hassil import Intents, recognize_all
from hassil.intents import TextSlotList
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.bert.data import intent_templates as templates_module
from tformer_book.bert.data.intent_templates import (
    Template,
    draw,
    intent_templates,
    package_data,
    sentences,
    slot_values,
    tagged_words,
)
from tformer_book.bert.data.intent_values import AREAS, FLOORS, NAMES, OPEN
from tformer_book.bert.data.intents import (
    PER_INTENT,
    Utterance,
    few_per_intent,
    intent_names,
    intent_utterances,
    majority_intent_share,
    one_reading,
    slot_tags,
    split_templates,
)
from tformer_lib.tokenizers.pretokenise import bert_words


@cache  # drawn when a test asks for it, and not in every process that collects the tests
def part(name):
    return intent_utterances(name)


def both():
    return [*part("train"), *part("validation")]


def slots(utterance):
    """The slots as hassil would give them: pairs of a name and the words."""
    found = []
    for word, tag in zip(utterance.words, utterance.tags, strict=True):
        if tag.startswith("B-"):
            found.append([tag[2:], word])
        elif tag != "O":
            found[-1][1] += f" {word}"
    return sorted(map(tuple, found))


@pytest.fixture(scope="module")
def recogniser():
    """(intents, lists): the package's grammar with our rooms, floors and names."""
    kinds = [("light" if kind == "before light" else kind, names) for kind, names in NAMES.items()]
    lists = {
        "area": TextSlotList.from_strings(AREAS, name="area"),
        "floor": TextSlotList.from_strings(FLOORS, name="floor"),
        "name": TextSlotList.from_tuples([(n, n, {"domain": k}) for k, ns in kinds for n in ns], name="name"),
    }
    return Intents.from_dict(package_data()), lists


@pytest.mark.parametrize("name", ["train", "validation"])
def test_hassil_reads_the_same_intent_and_the_same_slots(name, recogniser):
    grammar, lists = recogniser
    for u in random.Random(0).sample(part(name), 200):
        text = " ".join(u.words).replace(" %", "%")
        readings = recognize_all(
            text, grammar, slot_lists=lists, intent_context={"area": "kitchen"}, language="en"
        )
        assert any(
            r.intent.name == u.intent
            and sorted((e.name, e.text.strip().lower()) for e in r.entities_list if e.text) == slots(u)
            for r in readings
        ), (text, u)


def test_tags_are_well_formed_and_words_are_words():
    known = set(slot_tags())
    for u in both():
        assert len(u.words) == len(u.tags) > 0
        assert known.issuperset(u.tags)
        for before, tag in pairwise(("O", *u.tags)):
            assert not tag.startswith("I-") or before[2:] == tag[2:], u
        assert all(word == word.lower() and word.split() == [word] for word in u.words), u


def test_words_are_those_of_bert_but_for_apostrophes_and_a_half():
    odd = {word for word in {w for u in both() for w in u.words} if list(bert_words(word)) != [word]}
    assert odd <= {"1/2", "what's", "how's", "where's", "today's"}


def test_nothing_of_the_held_out_templates_is_trained_on():
    """In three senses: no template, no sentence, and no sentence with other values in its slots."""
    for sense in (lambda u: (u.intent, u.template), lambda u: u.words, lambda u: u.pattern):
        assert not {sense(u) for u in part("train")} & {sense(u) for u in part("validation")}


def test_no_sentence_stands_there_twice():
    assert len({u.words for u in both()}) == len(both())


def test_both_parts_have_every_intent_and_training_every_tag():
    for name in ("train", "validation"):
        assert sorted({u.intent for u in part(name)}) == intent_names()
    tags = slot_tags()
    assert tags[0] == "O"
    assert tags[1:] == sorted(tags[1:], key=lambda tag: (tag[2:], tag[0]))
    assert (
        set(tags)
        == {t for u in part("train") for t in u.tags}
        == {t for u in part("validation") for t in u.tags}
    )


def test_how_many_there_are():
    templates = intent_templates()
    assert (len(templates), len({t.intent for t in templates})) == (856, 42)
    train, held_out = split_templates(templates)
    assert (len(train), len(held_out)) == (634, 219)
    gone = {t.intent for t in templates} - {t.intent for t in train}
    assert gone == {"HassBroadcast", "HassListRemoveItem", "HassVacuumReturnToBase"}
    assert len(intent_names()) == 39
    assert (len(slot_tags()), sum(tag.startswith("B-") for tag in slot_tags())) == (33, 23)
    assert 23_000 < len(part("train")) < 25_000
    assert 2_700 < len(part("validation")) < 3_000
    assert len({(u.intent, u.template) for u in part("validation")}) == 219
    assert max(Counter(u.intent for u in part("validation")).values()) == PER_INTENT
    assert majority_intent_share(part("validation")) == PER_INTENT / len(part("validation")) < 0.06


def test_sentences_tagged_by_hand():
    def read(*segments):
        return list(zip(*tagged_words(iter(segments)), strict=True))

    lamp = [("Turn on the ", None), ("desk lamp", "name"), (" in the ", None), ("kitchen", "area")]
    assert read(*lamp) == [
        *(("turn", "O"), ("on", "O"), ("the", "O"), ("desk", "B-name"), ("lamp", "I-name")),
        *(("in", "O"), ("the", "O"), ("kitchen", "B-area")),
    ]
    timer = [("", None), ("5", "minutes"), ("-", None), ("minute", None), ("s", None), (" timer", None)]
    assert read(*timer) == [("5", "B-minutes"), ("minutes", "O"), ("timer", "O")]
    percent = [("volume to ", None), ("50", "volume_level"), ("%", None)]
    assert read(*percent) == [("volume", "O"), ("to", "O"), ("50", "B-volume_level"), ("%", "O")]
    rooms = [("living room", "area"), (" ", None), ("tv", "name")]
    assert read(*rooms) == [("living", "B-area"), ("room", "I-area"), ("tv", "B-name")]


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        ("(hello|hi) [there]", (), {("hello",), ("hi",), ("hello", "there"), ("hi", "there")}),
        ("(up;down)", (), {("up", "down"), ("down", "up")}),
        ("<temp>", (), {("temp",), ("temperature",)}),
        ("{timer_half:minutes} hour", (), {("half", "hour"), ("1/2", "hour")}),
        ("lock {name}", ("person",), {("lock", name) for name in NAMES["person"]}),
    ],
)
def test_small_templates_are_expanded_completely(text, kinds, expected):
    assert {words for words, _ in sentences(Template("x", text, kinds))} == expected


def test_the_sample_is_bounded_varied_and_the_same_each_time():
    (template,) = {t for t in intent_templates() if t.text.startswith("<turn> off [<the>] {name} <in>") and
                   "climate" in t.kinds and "floor" not in t.text}  # fmt: skip
    drawn = sentences(template)
    assert drawn == sentences(template)
    assert len(set(drawn)) == len(drawn) == 40
    assert len({words[0] for words, _ in drawn}) == 4  # turn, switch, change, bring
    assert len(sentences(template, 3)) == 3
    assert sentences(template, 3) == drawn[:3]


def test_the_parts_do_not_depend_on_the_hash_seed():
    script = (
        "import hashlib; from tformer_book.bert.data.intents import *;"
        "both = intent_utterances('train') + intent_utterances('validation');"
        "few = few_per_intent(both, 5, seed=3);"
        "print(hashlib.sha256(repr([both, few, intent_names(), slot_tags()]).encode()).hexdigest())"
    )
    few = few_per_intent(both(), 5, seed=3)
    here = hashlib.sha256(repr([both(), few, intent_names(), slot_tags()]).encode()).hexdigest()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == here


@pytest.mark.parametrize(("n", "total", "short"), [(5, 189, 2), (20, 718, 5), (100, 3_042, 14)])
def test_few_per_intent_counts(n, total, short):
    few = few_per_intent(part("train"), n, seed=0)
    have, took = Counter(u.intent for u in part("train")), Counter(u.intent for u in few)
    assert took == {intent: min(n, count) for intent, count in have.items()}
    assert len(few) == len(set(few)) == total
    assert sum(count < n for count in took.values()) == short
    assert set(few) <= set(part("train"))


@given(n=st.integers(1, 30), seed=st.integers(0, 10))
def test_few_per_intent_takes_templates_in_turn(n, seed):
    few = few_per_intent(part("validation"), n, seed=seed)
    assert few == few_per_intent(iter(part("validation")), n, seed=seed)
    have, took = Counter((u.intent, u.template) for u in part("validation")), Counter()
    for u in few:
        took[u.intent, u.template] += 1
    for intent in intent_names():
        most = max(count for (i, _), count in took.items() if i == intent)
        for key in have:
            if key[0] == intent:  # a template lags by two only if it has no more
                assert took[key] >= min(have[key], most - 1)


def test_other_seeds_take_others():
    assert few_per_intent(part("train"), 5, seed=0) != few_per_intent(part("train"), 5, seed=1)


def test_ambiguous_sentences_go_and_repeated_ones_stay_once():
    a = Utterance(("all", "off"), ("O", "O"), "TurnOff", "1")
    again = Utterance(("all", "off"), ("O", "O"), "TurnOff", "2")
    other_intent = Utterance(("all", "off"), ("O", "O"), "GetState", "3")
    other_tags = Utterance(("all", "off"), ("O", "B-state"), "TurnOff", "4")
    clear = Utterance(("all", "on"), ("O", "O"), "TurnOn", "5")
    assert one_reading([a, again, clear]) == [a, clear]
    assert one_reading([a, other_intent, clear]) == [clear]
    assert one_reading([a, clear, other_tags, a]) == [clear]


def test_values_are_plain_and_their_places_are_not_shared():
    values = [*AREAS, *FLOORS, *(v for vs in (*NAMES.values(), *OPEN.values()) for v in vs)]
    assert all(value == " ".join(value.lower().replace("-", " ").split()) for value in values)
    assert not set(AREAS) & set(FLOORS)
    assert not {n for names in NAMES.values() for n in names if n.startswith(AREAS)}
    for name, entry in package_data()["lists"].items():
        if numbers := entry.get("range"):
            assert all(numbers["from"] <= int(value) <= numbers["to"] for value in OPEN[name]), name


def test_what_is_not_there_is_an_error():
    with pytest.raises(ValueError, match='"train" or "validation", got \'test\''):
        intent_utterances("test")
    with pytest.raises(ValueError, match="n must be 1 or more, got 0"):
        few_per_intent(part("train"), 0, seed=0)
    with pytest.raises(ValueError, match="most must be 1 or more, got 0"):
        sentences(intent_templates()[0], 0)
    with pytest.raises(ValueError, match="there are no sentences"):
        majority_intent_share([])
    with pytest.raises(ValueError, match=r"no values for \{message\} in 'say \{message\}' of x"):
        slot_values("message", Template("x", "say {message}"))
    with pytest.raises(ValueError, match="holds a float, which is not known here"):
        list(draw(0.5, Template("x", "say"), random.Random(0)))


@pytest.fixture
def fresh_data():
    package_data.cache_clear()
    yield
    package_data.cache_clear()


@pytest.mark.usefixtures("fresh_data")
@pytest.mark.parametrize("package", ["home_assistant_intents", "hassil"])
def test_a_missing_package_is_named_with_version_and_command(monkeypatch, package):
    monkeypatch.setattr(templates_module, "PACKAGE", "not_installed_here")
    version = "2026.10.27"
    if package == "hassil":
        monkeypatch.setattr(templates_module, "PARSER", "not_installed_here")
        version = "3.12.1"
    with pytest.raises(ImportError, match=f"{version}: pip install not_installed_here=={version}"):
        package_data()


@pytest.mark.usefixtures("fresh_data")
def test_data_that_lack_something_say_what(monkeypatch, tmp_path):
    monkeypatch.setattr(templates_module, "package_folder", lambda package, version: tmp_path)
    with pytest.raises(FileNotFoundError, match="has not the English intents"):
        package_data()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "en.json").write_text('{"intents": {}}', encoding="utf-8")
    with pytest.raises(ValueError, match="has not lists and expansion_rules in data"):
        package_data()
