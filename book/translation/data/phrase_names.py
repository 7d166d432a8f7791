"""Names and counted things in two languages, from the tables of Unicode's CLDR that Babel carries.

"South Korea" is *Südkorea*, "3 square miles" are *3 Quadratmeilen*, "in 4 weeks" is *in 4 Wochen*. People
wrote every one of them; here the tables of two languages are walked side by side.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from tformer_lib.data.pairs import Pair

TABLES = (  # those of Babel that hold words
    *("territories", "languages", "scripts", "currency_names", "months", "days", "quarters"),
    *("eras", "day_periods", "meta_zones", "time_zones", "unit_display_names", "measurement_systems"),
    *("date_fields", "unit_patterns", "currency_names_plural"),
)


@cache
def locale_data(language: str) -> Mapping[str, Any]:
    """Everything that Babel has of a language, by table."""
    from babel import localedata

    tables: Any = localedata.load(language)
    return localedata.LocaleDataDict(tables)


def leaves(one: Any, other: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """Where both tables have a text: the path to it, and both texts."""
    if isinstance(one, str) and isinstance(other, str):
        yield path, one, other
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in one:
            if key in other:
                yield from leaves(one[key], other[key], (*path, key))


def spelled(name: str, language: str) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """A table's leaves without abbreviated units, a calendar's single letters, and what few have heard of.

    Left out are languages whose code has three letters and currencies of the past, which are told by their
    years. Both would have to be learnt by heart.
    """
    for path, english, other in leaves(locale_data("en")[name], locale_data(language)[name]):
        keys = " ".join(map(str, path))
        short = "narrow" in keys or ("short" in keys and (name.startswith("unit") or name == "date_fields"))
        rare = (name == "languages" and len(keys.split("_")[0]) > 2) or re.search(r"\d{4}", english + other)
        if not short and not rare:
            yield path, english, other


def table(name: str, language: str) -> list[Pair]:
    """One table's names as (English, other), without patterns that have places to fill."""
    return [(english, other) for _, english, other in spelled(name, language) if "{" not in english]


def named_phrases(language: str) -> Iterator[Pair]:
    """Every name of `TABLES`; where a table says how a thing is counted, one of them and several."""
    generator = random.Random("counted")
    for name in TABLES:
        for path, english, other in spelled(name, language):
            if name == "currency_names_plural":
                english, other = f"{{0}} {english}", f"{{0}} {other}"
            if "{0}" in english and "{0}" in other:
                for number in counts(path[-1], generator):
                    yield english.replace("{0}", number), other.replace("{0}", number)
            elif "{" not in english + other:
                yield english, other


def counts(category: Any, generator: random.Random) -> list[str]:
    """What to count with: one where the grammar's number `category` is "one", else two numbers below 100."""
    return ["1"] if category == "one" else [str(n) for n in sorted(generator.sample(range(2, 100), 2))]


def both(language: str, write: Callable[..., str | None], *things: Any) -> Pair:
    """What a function of Babel's writes of the same things in English and in the other language."""
    return write(*things, locale="en") or "", write(*things, locale=language) or ""
