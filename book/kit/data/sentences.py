"""Where a sentence ends: a full stop that is no abbreviation's, initial's or decimal's."""

import re

TITLES = (  # a name or a word of the same sentence follows
    "adm al brig capt cf cmdr col dr e.g eds fr ft gen gov hon i.e lt maj messrs mme mr mrs ms mt pres prof "
    "rep rev rt sen sgt st trans v viz vs"
)
COUNTED = "art c ca ch cir d eq fig figs fl no nos p pp r sec vol vols"  # a number follows, as in No. 5
MONTHS = "jan feb mar apr jun jul aug sep sept oct nov dec"
LAST_OR_NOT = (
    "al approx bros co corp dept ed esp est etc inc jr ltd ph.d sr univ"  # may end a sentence as well
)
OPENERS = (  # words that often begin a sentence, and seldom a name
    "a after all although an and as at because before both but by despite during each early even "
    "finally for from he her his how however if in instead it its later many most much no on once one "
    "other others our several she similarly since so some such that the their then there therefore "
    "these they this those though thus to today two under unlike until we what when where whereas "
    "whether which while who with"
)
NEVER, MAYBE, STARTERS = set(TITLES.split()), set(LAST_OR_NOT.split()), set(OPENERS.split())
BEFORE_NUMBER = set(f"{COUNTED} {MONTHS}".split())
OPENING, CLOSING = "\"'“‘«([", "\"'”’»)]"
END = re.compile(rf"([.!?…]+)[{re.escape(CLOSING)}]*(?:\s+|(?<=[a-z][a-z][.!?])(?=[A-Z][a-z]))")
DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # U.S, a.m, J


def split_sentences(paragraph: str) -> list[str]:
    """A paragraph's sentences in order; nothing is lost but the space between them.

    A sentence ends at `.`, `!`, `?` or an ellipsis, together with the quotes and brackets that close there,
    if white space follows and then no small letter, or if a capital follows a small word directly (a space
    that was forgotten). It does not end inside round brackets; after an abbreviation that names something
    ("Dr.", "e.g."); between "No." or "c." and a number; or after initials and abbreviations such as "U.S."
    and "Inc.", unless the next word is one that often opens a sentence ("The", "It").

    Quotations are not followed: "I came. I saw," he said, is cut after "came.".
    """
    sentences, start = [], 0
    for end in END.finditer(paragraph):
        if ends_sentence(paragraph, start, end):
            sentences.append(paragraph[start : end.end()].strip())
            start = end.end()
    return [sentence for sentence in (*sentences, paragraph[start:].strip()) if sentence]


def ends_sentence(paragraph: str, start: int, end: re.Match[str]) -> bool:
    """Whether the sentence that begins at `start` ends with the marks found."""
    following = paragraph[end.end() :].lstrip(OPENING)
    if not following or following[0].islower():
        return not following
    sentence = paragraph[start : end.end()]
    if sentence.count("(") > sentence.count(")") and ")" in paragraph[end.end() :]:
        return False
    before = paragraph[start : end.start()]
    if end[1] != ".":  # an ellipsis with a space before it stands for words left out
        return not (end[1] in ("...", "…") and before.endswith(" "))
    word = before.split()[-1].lstrip(OPENING) if before.split() else ""
    name = word.lower()
    if name in NEVER:
        return False
    if name in BEFORE_NUMBER and following[0].isdigit():
        return False
    if name in MAYBE or (DOTTED.fullmatch(word) and (word[0].isupper() or "." in word)):
        opener = re.match(r"\w*", following)
        return opener is not None and opener[0].lower() in STARTERS
    return True


def join_fragments(sentences: list[str], min_words: int = 4) -> list[str]:
    """The sentences, those of fewer words joined to the one before (the first to the one after it)."""
    joined: list[str] = []
    for sentence in sentences:
        if joined and (is_short(sentence, min_words) or is_short(joined[-1], min_words)):
            joined[-1] += f" {sentence}"
        else:
            joined.append(sentence)
    return joined


def is_short(sentence: str, min_words: int) -> bool:
    """Whether the sentence has fewer words than that."""
    return len(sentence.split()) < min_words
