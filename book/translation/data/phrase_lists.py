"""Measures, rates and lists, written by Babel: "3 meters or 5 feet", "9 grams per liter", "Chad and Mali"."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import product

from tformer_book.translation.data.phrase_names import both, leaves, locale_data
from tformer_lib.data.pairs import Pair

MEASURED = {
    "length": "kilometer meter centimeter millimeter mile foot inch yard",
    "mass": "kilogram gram milligram pound ounce",
    "volume": "liter milliliter cubic-meter gallon",
    "energy": "kilowatt-hour joule kilocalorie",
    "digital": "megabyte gigabyte",
    "area": "hectare square-kilometer acre",
    "angle": "degree",
}
PER = {
    "duration": "second minute hour day week month year",
    "length": "kilometer",
    "area": "square-meter square-kilometer",
    "volume": "liter cubic-meter",
    "mass": "kilogram",
}


def listed_phrases(language: str) -> Iterator[Pair]:
    """All of this module's phrases as (English, other); what they speak of is drawn with a fixed seed."""
    generator = random.Random("listed")
    yield from rates(language, generator)
    yield from amounts(language, generator)
    yield from measures(language, generator)
    yield from lists(language, generator)


def units(of: dict[str, str]) -> list[str]:
    """CLDR's names of units, as "length-meter"."""
    return [f"{kind}-{unit}" for kind, names in of.items() for unit in names.split()]


def rates(language: str, generator: random.Random) -> Iterator[Pair]:
    """So much of one unit to one of another: "40 grams per liter"."""
    from babel.units import format_compound_unit

    for unit, other in product(units(MEASURED), units(PER)):
        yield both(language, format_compound_unit, generator.randrange(2, 100), unit, 1, other)


def amounts(language: str, generator: random.Random) -> Iterator[Pair]:
    """Great numbers, rounded to tenths: "3.2 billion"."""
    from babel.numbers import format_compact_decimal

    write = partial(format_compact_decimal, format_type="long", fraction_digits=1)
    for power, _ in product(range(5, 13), range(5)):
        yield both(language, write, generator.randrange(11, 100) * 10**power)


def measures(language: str, generator: random.Random) -> Iterator[Pair]:
    """Two or three measures: "3 meters or 5 feet"."""
    known = sorted({*units(MEASURED), *units(PER)})
    for _ in range(2_800):
        chosen = generator.sample(known, generator.choice((2, 2, 3)))
        counted = [(generator.randrange(1, 100), unit) for unit in chosen]
        yield both(language, write_measures, counted, generator.random() < 0.4)


def write_measures(counted: list[tuple[int, str]], either: bool, *, locale: str) -> str:
    """Numbers of units as a list in one language, joined by its "or" if `either` and else by its "and"."""
    from babel.lists import format_list
    from babel.units import format_unit

    written = [format_unit(number, unit, locale=locale) for number, unit in counted]
    return format_list(written, "or" if either else "standard", locale=locale)


def lists(language: str, generator: random.Random) -> Iterator[Pair]:
    """Two to four places, languages, days of the week or months: "Chad, Mali, or Niger"."""
    from babel.lists import format_list

    kinds = listed_names(language)
    for i in range(2_000):
        chosen = generator.sample(kinds[i % len(kinds)], generator.choice((2, 2, 3, 4)))
        english, other = zip(*chosen, strict=True)
        if generator.random() < 0.4:
            yield format_list(english, "or", locale="en"), format_list(other, "or", locale=language)
        else:
            yield format_list(english, locale="en"), format_list(other, locale=language)


def listed_names(language: str) -> list[list[Pair]]:
    """Countries, languages with a code of two letters (they are better known), weekdays, and months."""

    def names(*path: str) -> list[Pair]:
        english, other = locale_data("en"), locale_data(language)
        for key in path:
            english, other = english[key], other[key]
        return [(one, two) for (code, *_), one, two in leaves(english, other) if len(str(code)) <= 2]

    calendar = [names(table, "format", "wide") for table in ("days", "months")]
    return [names("territories"), names("languages"), *calendar]
