"""What is true of each letter of a play: labels to probe a model of letters for."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

OTHER = 26  # the number of a letter that is none of a to z


def alphabet(text: str) -> Int[Tensor, " T"]:
    """0 to 25 for a to z in either case, 26 for anything else."""
    return torch.tensor([ord(c.lower()) - 97 if c.isascii() and c.isalpha() else OTHER for c in text])


def letter_labels(text: str) -> dict[str, Int[Tensor, " T"]]:
    """Classes of each letter of a text, most of which the letter itself does not tell.

    "place in word": letters of the word so far, 0 for what is no letter, 6 for more than five. "letter two
    back": as `alphabet`. "word with a capital": whether the word began with one; "speaker's line": whether
    the line holds no small letter and ends in a colon. "letters in the line": so far, in tens, 5 from 50 on.
    """
    place, capital, column = [], [], []
    inside = begun = since = 0
    for c in text:
        inside = inside + 1 if c.isalpha() else 0
        begun = int(c.isupper()) if inside == 1 else begun * (inside > 0)
        place.append(min(inside, 6))
        capital.append(begun)
        column.append(min(since // 10, 5))
        since = 0 if c == "\n" else since + 1
    speaker: list[int] = []
    for line in text.split("\n"):
        speaker += [int(line.endswith(":") and line == line.upper())] * (len(line) + 1)
    letters = alphabet(text)
    back = torch.cat((torch.full((2,), OTHER), letters[:-2]))[: len(letters)]
    named = {"place in word": place, "word with a capital": capital, "speaker's line": speaker[:-1]}
    numbers = {name: torch.tensor(values) for name, values in named.items()}
    return {**numbers, "letter two back": back, "letters in the line": torch.tensor(column)}


def trigrams(text: str) -> Int[Tensor, " T"]:
    """One number for a letter with the two before it: the type of a token in a control task."""
    letters = alphabet(text)
    padded = torch.cat((torch.full((2,), OTHER), letters))
    return (padded[:-2] * 27 + padded[1:-1]) * 27 + padded[2:]


def string_labels(
    ids: Int[Tensor, "B N"], common: tuple[int, ...] = (40, 200, 300, 300), after: int = 40
) -> tuple[Bool[Tensor, "T L"], list[tuple[int, tuple[int, ...]]]]:
    """Of each token but a row's first few and last: the common strings that end with it, what comes next.

    Args:
        ids: tokens.
        common: how many strings of one token are looked for, of two, and so on: the most frequent ones.
        after: how many next tokens.

    Returns:
        A column a string, and for each its length with its tokens; the length 0 stands for the next token.
    """
    longest, columns, names = len(common), [], []
    base = int(ids.max()) + 1

    def add(code: Tensor, count: int, length: int) -> None:
        known, where, often = code.flatten().unique(return_inverse=True, return_counts=True)
        for i in often.argsort(descending=True, stable=True)[:count].tolist():
            columns.append(where == i)
            left = int(known[i])
            tokens: list[int] = []
            for _ in range(max(length, 1)):
                left, token = divmod(left, base)
                tokens.insert(0, token)
            names.append((length, tuple(tokens)))

    code = torch.zeros_like(ids[:, longest - 1 : -1])
    for length, count in enumerate(
        common, start=1
    ):  # the last token is the unit, the one before the next digit
        start = longest - length
        code = code + ids[:, start : start + code.shape[1]] * base ** (length - 1)
        add(code, count, length)
    add(ids[:, longest:], after, 0)
    return torch.stack(columns, dim=1), names
