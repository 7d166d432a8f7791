"""Dates, times and intervals, written by Babel as each language's rules of CLDR ask.

What is formatted in both languages is the same thing: a day, a span of months, a place's time. The rules
move words about ("Monday, March 3, 2025" is *Montag, 3. März 2025*, and "5:10 PM" *17:10*), so these are the
phrases that a word-by-word translation gets wrong.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product

from tformer_book.translation.data.phrase_names import both, locale_data, table
from tformer_lib.data.pairs import Pair

DAYS = ("yMMMEd", "MMMEd", "GyMMMEd", "yMMMd", "MMMMd", "GyMMMd", "yMMMM", "MMMMW", "yQQQQ", "EBhm")
SPANS = ("yMMMEd", "yMMMd", "MMMEd", "MMMd", "yMMMM", "MMM")  # the letters of CLDR's skeletons of dates


def formatted_phrases(language: str) -> Iterator[Pair]:
    """All of this module's phrases as (English, other); what they speak of is drawn with a fixed seed."""
    generator = random.Random("formatted")
    yield from locales(language)
    yield from places(language)
    yield from days(language, generator)
    yield from spans(language, generator)
    yield from moments(language, generator)


def locales(language: str) -> Iterator[Pair]:
    """Languages as they are spoken or written somewhere: "French (Canada)", "Uzbek (Cyrillic)"."""
    from babel import Locale
    from babel.localedata import locale_identifiers

    for name in sorted(locale_identifiers()):
        if name[2:3] == "_":  # a language's code of two letters, and more
            yield both(language, Locale.parse(name).get_display_name)


def places(language: str) -> Iterator[Pair]:
    """The time of a place: "Iceland Time"."""
    english, other = (locale_data(at)["zone_formats"]["region"] for at in ("en", language))
    for name, its_name in table("territories", language):
        yield english % name, other % its_name


def _some_day(generator: random.Random) -> datetime:
    """A minute between seven and midnight of a day of the years 1950 to 2049."""
    day = datetime(1950, 1, 1) + timedelta(days=generator.randrange(36_524))
    return day.replace(hour=generator.randrange(7, 24), minute=generator.randrange(60))


def days(language: str, generator: random.Random) -> Iterator[Pair]:
    """Each weekday in each month, twice: in full, and in three of the other ways to write a day."""
    from babel.dates import format_date, format_skeleton

    for weekday, month, _ in product(range(7), range(1, 13), range(2)):
        day = _some_day(generator)
        while (day.weekday(), day.month) != (weekday, month):
            day += timedelta(days=1 if day.month == month else 17)
        yield both(language, format_date, day, "full")
        for skeleton in generator.sample(DAYS, 3):
            yield both(language, format_skeleton, skeleton, day)


def spans(language: str, generator: random.Random) -> Iterator[Pair]:
    """From one day to a later one: "Mar 3 – May 9, 2025"."""
    from babel.dates import format_interval

    for i in range(3_600):
        start = _some_day(generator)
        end = start + timedelta(days=generator.choice((3, 40, 100, 200, 300, 500)))
        yield both(language, format_interval, start, end, SPANS[i % len(SPANS)])


def moments(language: str, generator: random.Random) -> Iterator[Pair]:
    """A minute and its zone, once without the day and twice with it: "5:10 PM Japan Time"."""
    from babel.dates import format_date, format_time

    for zones in sorted(set(table("meta_zones", language))):
        for dated in (False, True, True):
            when = _some_day(generator)
            clocks, days = (
                both(language, format_time, when, "short"),
                both(language, format_date, when, "full"),
            )
            pair = [f"{time} {zone}" for time, zone in zip(clocks, zones, strict=True)]
            if dated:
                days = both(language, format_date, when, "full")
                pair = [f"{day}, {time}" for day, time in zip(days, pair, strict=True)]
            yield pair[0], pair[1]
