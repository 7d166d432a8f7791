"""Makes the index that the site's search asks, with pagefind, of the records that the build left."""

import gzip
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

FOLDER = "pagefind"  # in the site
TITLES = "titles.json"  # there: what a record is called, by pagefind's name for it
WORDS = "words.json"  # there: the words that are offered for one that the book does not have
UNUSED = ("*-ui.css", "*-ui.js", "pagefind-highlight.js", "wasm.unknown.pagefind")  # pagefind's own looks


class SearchIndexError(Exception):
    """No index could be made; says why."""


def page(record: dict) -> str:
    """A record as the page that pagefind reads: what is meta is found, but not shown in an excerpt."""
    metas = {
        "url": record["url"],
        "title": record["title"],
        "number": record["number"],
        "page": record["page"],
        "within": record["within"],
        "names": "|".join(record["names"]),
        "spellings": " ".join(record["spellings"]),
    }
    lines = [
        f'<meta data-pagefind-meta="{name}[content]" content="{html.escape(value)}">'
        for name, value in metas.items()
        if value
    ]
    body = html.escape(record["text"] or record["title"])
    return f'<html lang="en"><head>{"".join(lines)}</head><body><p>{body}</p></body></html>'


def titles(records: list[dict], folder: Path) -> list[list]:
    """Of each record that is no public name of code: pagefind's name for it, its kind, title and other names.

    The page of a record is called by the record's number, and a fragment says which page it is of.
    """
    found = []
    for file in sorted((folder / "fragment").glob("*.pf_fragment")):
        _, _, text = gzip.decompress(file.read_bytes()).partition(b"{")
        record = records[int(Path(json.loads(b"{" + text)["url"]).stem)]
        if record["kind"] != "reference":
            found.append([file.stem, record["kind"], record["title"], record["names"]])
    return found


def words(records: list[dict]) -> list[str]:
    """The words of the records, the commonest first: those of five letters or more that are no misprint.

    A word that stands in one place only is in the list if that place is named by it.
    """
    said, named = Counter(), set()
    for record in records:
        names = " ".join([record["title"], *record["names"]])
        said.update(re.findall(r"[a-z]{5,}", f"{names} {record['text']}".lower()))
        if record["kind"] in ("section", "opening", "term"):
            named.update(re.findall(r"[a-z]{5,}", names.lower()))
    return [word for word, times in said.most_common() if times > 2 or word in named]


def write_index(records: Path, site: Path) -> int:
    """Writes the index of the records into the site; returns how many there are."""
    if not records.is_file():
        raise SearchIndexError(f"the build left no {records.name}: is tformer_search in _config.yml?")
    found = json.loads(records.read_text("utf8"))
    folder = site / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as pages:
        for number, record in enumerate(found):
            Path(pages, f"{number:05}.html").write_text(page(record), "utf8")
        command = [sys.executable, "-m", "pagefind", "--site", pages, "--output-path", str(folder), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode or not (folder / "pagefind.js").is_file():
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise SearchIndexError(f"pagefind made no index for the search: {said[-1]}")
    named = json.dumps(titles(found, folder), ensure_ascii=False, separators=(",", ":"))
    (folder / TITLES).write_text(named, "utf8")
    (folder / WORDS).write_text(json.dumps(words(found), separators=(",", ":")), "utf8")
    for pattern in UNUSED:
        for file in folder.glob(pattern):
            file.unlink()
    return len(found)
