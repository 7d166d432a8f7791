"""The files of the built site: links, numbers, metadata, and a place for every public name."""

import functools
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import lxml.html
import pytest
import yaml
from chapters import by_docname, chapters
from PIL import Image
from sphinx.util.inventory import InventoryFile

import tformer_book
import tformer_lib
from tests.site.pages import ROOT, chapter_pages, notebook_pages, toc_pages

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
from tformer_api import modules

LOADED = (("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("link", "href"))
NOT_LOADED = {"canonical", "author", "next", "prev", "index", "search"}


@functools.cache
def tree(path: Path) -> lxml.html.HtmlElement:
    return lxml.html.parse(path).getroot()


def of_class(*names: str) -> str:
    """The condition of an XPath that an element is of these classes."""
    return " and ".join(f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')" for name in names)


@functools.cache
def facts(path: Path) -> tuple[list[str], set[str], list[str]]:
    """What a page names by href and src, the ids that it has, and what it loads from another host."""
    page = lxml.html.parse(path)
    outside = [
        tag.get(attribute)
        for name, attribute in LOADED
        for tag in page.iter(name)
        if urlsplit(tag.get(attribute, "")).netloc and not NOT_LOADED & set(tag.get("rel", "").split())
    ]
    return list(map(str, page.xpath("//@href | //@src"))), set(map(str, page.xpath("//@id"))), outside


def test_internal_links_and_anchors_resolve(site):
    broken = []
    for page in sorted(site.rglob("*.html")):
        if "_static" in page.relative_to(site).parts:  # templates that the theme leaves there
            continue
        for link in facts(page)[0]:
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            file = (page.parent / unquote(target.path)).resolve() if target.path else page
            file = file / "index.html" if file.is_dir() else file
            anchor = unquote(target.fragment)
            if not file.is_file():
                broken.append(f"{page.relative_to(site)}: {link}")
            elif anchor and file.suffix == ".html" and anchor not in facts(file)[1]:
                broken.append(f"{page.relative_to(site)}: no #{anchor} in {file.name}")
    assert broken == []


def test_old_addresses_lead_to_their_chapters(site):
    """With what stood behind them: a section's label is its anchor, wherever the page lies."""
    moved = [chapter for chapter in chapters() if chapter.was]
    assert {"02_attention", "08b_modern_decoder", "speedrun"} <= {chapter.was for chapter in moved}
    for chapter in moved:
        old = site / "book" / f"{chapter.was}.html"
        (to,) = tree(old).xpath("//a/@href")
        assert (old.parent / to).resolve() == (site / f"{chapter.docname}.html").resolve()
        assert f'location.replace("{to}" + location.search + location.hash)' in old.read_text("utf8")


def test_sections_and_exercises_are_found_from_the_page_that_once_had_them(site):
    """What stands on a chapter's other pages is named in its elsewhere.js, with the right page."""
    attention = facts(site / "book" / "attention" / "chapter.html")[1]
    assert {"ch-attention", "sec-attention-bottleneck"} <= attention
    for chapter in chapters():
        folder = site / "book" / chapter.name
        if not chapter.companions:
            continue
        text = (folder / "elsewhere.js").read_text("utf8")
        found = json.loads(text.removeprefix("tformerElsewhere(").removesuffix(");\n"))
        here = facts(folder / "chapter.html")[1]
        for anchor, page in found["anchors"].items():
            assert anchor in facts(folder / f"{page}.html")[1]
            assert anchor not in here
        for figure, page in found["figures"].items():
            assert f'data-try="{figure}"' in (folder / f"{page}.html").read_text("utf8")
        labels = re.findall(
            r"^\(([\w-]+)\)=$|^:label: (ex-[\w-]+)$",
            "\n".join(
                "".join(cell["source"])
                for path in chapter.notebooks[1:]
                for cell in json.loads(path.read_text("utf8"))["cells"]
            ),
            re.MULTILINE,
        )
        assert labels
        assert {one or other for one, other in labels} <= set(found["anchors"]) | here


@pytest.mark.parametrize("path", notebook_pages())
def test_a_chapter_s_pages_are_tabs_of_one(site, path):
    """Each leads to the others, and marks itself."""
    chapter = by_docname()[path.removesuffix(".html")]
    rows = tree(site / path).xpath(f"//nav[{of_class('tformer-tabs')}]")
    if not chapter.companions:
        assert rows == []
        return
    links = [link for row in rows for link in row.iter("a")]
    current = [link for link in links if link.get("aria-current") == "page"]
    parts = {"Chapter": True, "Laboratory": chapter.laboratories, "Exercises": chapter.exercises}
    shown = [link.text_content() for link in rows[0].iter("a")]
    assert shown == [part for part, there in parts.items() if there]
    assert all(link.get("href") is None for link in current)
    led = {(site / path).parent / link.get("href") for link in links if link.get("href")}
    assert all(page.is_file() for page in led)
    here = {name for name in (chapter.page, *chapter.companions) if f"/{name}." in path}
    several = here & set(chapter.laboratories) if len(chapter.laboratories) > 1 else set()
    assert len(current) == (1 if not several or here != set(chapter.laboratories[:1]) else 2)
    assert len(rows) == 1 + bool(several)


@pytest.mark.parametrize("path", chapter_pages())
def test_a_chapter_s_foot_leads_to_its_exercises_and_its_laboratory(site, path):
    chapter = by_docname()[path.removesuffix(".html")]
    links = tree(site / path).xpath(f"//article//nav[{of_class('tformer-foot')}]/a")
    shown = {link.get("href"): link.text_content() for link in links}
    led = [*["exercises"] * chapter.exercises, *chapter.laboratories[:1]]
    assert list(shown) == [f"{name}.html" for name in led]
    if chapter.exercises:
        exercises = tree((site / path).parent / "exercises.html")
        count = len(exercises.xpath(f"//article//section[{of_class('exercise')}]"))
        evening = len(exercises.xpath("//article//p[starts-with(., 'For one evening')]//a"))
        words = f"Exercises: {count}" + (f", for one evening {evening}" if evening else "")
        assert shown["exercises.html"] == f"{words} →"


def test_nothing_is_loaded_from_another_host(site):
    outside = []
    for page in sorted(site.rglob("*.html")):
        outside += [f"{page.relative_to(site)}: {address}" for address in facts(page)[2]]
    for sheet in site.rglob("*.css"):
        outside += re.findall(r"(?:@import\s+|url\()['\"]?(?:https?:)?//[^)'\"]+", sheet.read_text("utf8"))
    assert outside == []


@pytest.mark.parametrize("path", toc_pages())
def test_social_cards_have_their_metadata(site, path):
    tags = {tag.get("property"): tag.get("content") for tag in tree(site / path).xpath("//meta[@property]")}
    assert {"og:title", "og:description", "og:url", "og:image", "og:image:alt", "og:site_name"} <= set(tags)
    assert not re.search(r"[\\${}]", tags["og:description"]), "raw TeX in og:description"
    address = re.sub(r"github\.com/([^/]+)/", r"\1.github.io/", repository()) + "/"
    assert tags["og:url"] == urljoin(address, path)
    image = site / tags["og:image"].removeprefix(address)
    chapter = by_docname().get(path.removesuffix(".html"))  # has a card of its own
    card = f"cards/{chapter.name}.png" if chapter else "card.png"
    assert image == site / "_static" / card
    assert (f"Chapter {chapter.number}: " if chapter else "matrix") in tags["og:image:alt"]
    with Image.open(image) as picture:
        assert picture.size == (1200, 630)
    assert image.stat().st_size < 20_000


def repository() -> str:
    return yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["repository"]["url"]


@pytest.mark.parametrize("path", notebook_pages())
def test_numbers_are_the_chapter_s(site, path):
    """The title, sections, figures, equations and exercises all count from the chapter's number."""
    number = by_docname()[path.removesuffix(".html")].number
    page = tree(site / path)
    assert page.xpath("//article//h1")[0].text_content().startswith(f"{number}. ")
    numbered = f"//article//*[{of_class('section-number')}] | //h2/*[{of_class('section-number')}]"
    sections = [tag.text_content().split(".")[0] for tag in page.xpath(numbered)]
    counted = sections + re.findall(r"(?:Figure|Table|Exercise|Theorem) (\d+[a-z]?)\.\d+", caption_text(page))
    equations = page.xpath(f"//span[{of_class('eqno')}]")
    counted += [tag.text_content().strip("()#¶").split(".")[0] for tag in equations]
    assert {n.strip() for n in counted if n.strip()} <= {number}
    current = f"//*[{of_class('bd-sidebar-primary')}]//*[self::a or self::li/a][{of_class('current')}]"
    sidebar = page.xpath(f"({current})[1]/descendant-or-self::a")[0]
    assert sidebar.text_content().strip().startswith(f"{number}. ")


def caption_text(page: lxml.html.HtmlElement) -> str:
    titles = f"//*[{of_class('admonition')}]/*[{of_class('admonition-title')}]"
    found = page.xpath(f"//*[{of_class('caption-number')}] | {titles}")
    return " ".join(tag.text_content() for tag in found)


@pytest.mark.parametrize("path", chapter_pages())
def test_a_chapter_has_its_buttons_and_neighbours(site, path):
    page = tree(site / path)
    links = page.xpath(f"//*[{of_class('article-header-buttons')}]//a/@href")
    notebook = path.replace(".html", ".ipynb")
    for part in ("colab.research.google.com", "mybinder.org", f"/edit/main/{notebook}"):
        assert any(part in link for link in links), part
    assert any(link.endswith(f"notebooks/{notebook}") and not urlsplit(link).netloc for link in links), (
        "download"
    )
    colab = next(link for link in links if "colab" in link)
    assert colab.endswith(repository().removeprefix("https://github.com/") + f"/blob/notebooks/{notebook}")
    assert page.xpath(f"//a[{of_class('left-prev')}]") or path == chapter_pages()[0]
    assert page.xpath(f"//a[{of_class('right-next')}]")
    assert page.xpath("//link[@rel='icon']")


def public_names() -> list[str]:
    """Every public name of the packages, by the module that defines it."""
    names = set()
    answers = {f"tformer_book.{chapter.name}.exercises" for chapter in chapters()}
    for found in (*modules(tformer_lib), *modules(tformer_book)):
        if found in answers or found.split(".")[-1].startswith("_"):
            continue
        module = importlib.import_module(found)
        for name in getattr(module, "__all__", None) or vars(module):
            member = getattr(module, name)
            home = getattr(member, "__module__", None)
            defined = inspect.isclass(member) or inspect.isfunction(member)
            if not name.startswith("_") and defined and str(home).startswith(("tformer_lib", "tformer_book")):
                names.add(f"{home}.{member.__qualname__}")
    return sorted(names)


def test_every_public_name_has_its_place_in_the_api_pages(site):
    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    known = {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}
    missing = [name for name in public_names() if name not in known]
    assert missing == [], "add their modules to book/api/*.md"


def test_chapters_cite_and_name_through_links(site):
    """No reference was left unresolved: Sphinx shows those as code or as question marks."""
    for path in toc_pages():
        shown = tree(site / path).xpath("//text()[not(parent::script or parent::style or parent::template)]")
        assert not re.search(r"\[\?\]|\{(?:ref|eq|numref|term|cite)", "".join(shown))


def test_search_index_knows_the_pages(site):
    index = (site / "searchindex.js").read_text("utf8")
    names = json.loads(re.search(r'"docnames":\s*(\[.*?\])', index)[1])
    assert {page.removesuffix(".html") for page in toc_pages()} <= set(names)


def test_signatures_are_parsed(site):
    """Where Sphinx cannot parse one, it shows the marks (~) that should have shortened its names."""
    raw = []
    for page in sorted((site / "book" / "api").glob("*.html")):
        signatures = [sig.text_content() for sig in tree(page).xpath(f"//dt[{of_class('sig')}]")]
        assert signatures
        raw += [text for text in signatures if re.search(r"[<~]", text)]
    assert raw == []
