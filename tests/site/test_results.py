"""The table of results on the first page: what it says is what the chapters claim."""

import json
import re

from bs4 import BeautifulSoup
from notebook_claims import claims_in

from tests.site.pages import ROOT, chapter_pages


def claims():
    for path in chapter_pages():
        notebook = json.loads((ROOT / path).with_suffix(".ipynb").read_text("utf8"))
        for claim in claims_in(notebook["cells"]):
            yield path, claim


def plain(text):
    """Without the quotes that Sphinx makes round, and without double spaces."""
    return " ".join(re.sub("[\u2018\u2019\u201c\u201d'\"]", "'", text).split())


def test_every_claim_is_a_row_with_its_number_and_band(site):
    page = BeautifulSoup((site / "book/index.html").read_text("utf8"), "lxml")
    rows = page.select(".book-results tbody tr")
    expected = list(claims())
    assert len(expected) > 100
    assert len(rows) == len(expected)
    for row, (path, claim) in zip(rows, expected, strict=True):
        words, number, band, chapter = row.find_all("td")
        assert plain(words.get_text()) == f"{plain(claim['text'])} {claim['name']}"
        assert number.get_text().split()[0] == f"{claim['value']:.4g}"
        assert number.get_text().strip().endswith(claim["unit"])
        assert band.get_text().strip() == f"{claim['low']:.4g} and {claim['high']:.4g}"
        assert chapter.a["href"].split("#")[0] == path.removeprefix("book/")
