"""Prints the site: `make pdf` makes a PDF of each page of a chapter and one of the book, and links to them.

The browser that is on this machine prints what the site shows. It is served the built files under the
published site's address, so that links which leave a PDF lead there; nothing is asked of the network. The
book is one document: all articles, with their ids made unique, behind a title page and contents. Its page
numbers are known once it has been printed, so it is printed twice.
"""

import argparse
import datetime
import html
import io
import json
import mimetypes
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from address import current, site_of
from build_site import ROOT, SITE, build, is_fresh
from chapters import CHAPTER, by_docname
from pikepdf import Name, ObjectStreamMode, OutlineItem, Pdf, String

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
FOLDER = "pdf"  # in the site
BOOK = "transformers-by-construction.pdf"
PAPER = {"prefer_css_page_size": True, "print_background": True, "outline": True, "tagged": True}
COLUMN = 628  # pixels: the text's width on paper, 166 mm
LEFT_OUT = re.compile(r"book/(index|api/.*|claims|results)")  # what is for the screen only
# The button that prints, in the menu of downloads.
PRINT_ITEM = re.compile(r'<li>\s*<button onclick="window\.print\(\)".*?</button>\s*</li>', re.DOTALL)
OFFERED = re.compile(r'<li class="tformer-pdf">.*?</li>\s*', re.DOTALL)

BOOK_STYLE = """
.print-title { page: print-title; text-align: center; padding-top: 55mm; break-after: page; }
.print-title img { width: 34mm; margin-bottom: 12mm; }
.print-title .name { font-size: 30pt; font-weight: 600; line-height: 1.15; text-wrap: balance; }
.print-title .author { font-size: 13pt; margin: 6mm 0 12mm; }
.print-contents { page: print-contents; }
.print-contents h1 { margin-bottom: 1em; }
.print-contents ul { list-style: none; padding: 0; margin: 0; }
.print-contents li { break-inside: avoid; margin: .15em 0; }
.print-contents li.part { font-weight: 600; font-size: 1.1em; margin-top: 1.2em; break-after: avoid; }
.print-contents li.level-1 { font-weight: 600; margin-top: .6em; break-after: avoid; }
.print-contents li.level-2 { padding-inline-start: 1.5em; }
.print-contents a { display: flex; gap: .4em; color: #000 !important; }
.print-contents a::before { content: ""; order: 2; flex: 1; }
.print-contents a::before { border-bottom: .6pt dotted #888; margin-bottom: .35em; }
.print-contents .number { order: 3; min-width: 1.6em; text-align: end; }
.print-part { font-size: 12pt; color: #444; margin: 0 0 .4em; break-after: avoid; }
article.bd-article { break-before: page; }
@page print-title {
  @top-left { content: none }
  @top-right { content: none }
  @bottom-center { content: none }
}
"""

# Waits until a page is what it should look like: fonts and pictures loaded. A lazy picture that is out of
# sight would never come, and what never comes is reported after five minutes.
SETTLE = """async () => {
  const images = [...document.querySelectorAll('article img')].filter(image => image.checkVisibility());
  for (const image of images) image.loading = 'eager';
  const loaded = Promise.all([document.fonts.ready, ...images.map(image => image.decode().catch(() => {}))]);
  await Promise.race([loaded, new Promise(resolve => setTimeout(resolve, 300_000))]);
  return images.filter(image => !image.naturalWidth).map(image => image.src);
}"""

# The article as it is printed, to stand in one document with others: its ids begin with `mark`, and links to
# a page that is inside lead to its place there.
EXTRACT = """({mark, inside}) => {
  const original = document.querySelector('article.bd-article');
  const article = original.cloneNode(true);
  const folds = 'details.hide:not([open]), details.tl-open';
  const unprinted = `script, button, .headerlink, .only-dark, noscript, ${folds}`;
  for (const node of article.querySelectorAll(unprinted)) node.remove();
  const ids = new Set([...article.querySelectorAll('[id]')].map(node => node.id));
  const own = id => `${mark}--${id}`;
  for (const link of article.querySelectorAll('a[href]')) {
    const url = new URL(link.getAttribute('href'), location);
    const id = decodeURIComponent(url.hash.slice(1));
    const target = inside[url.origin + url.pathname];
    if (target === undefined) link.setAttribute('href', url.href);
    else if (target === mark && id && !ids.has(id)) link.removeAttribute('href');
    else link.setAttribute('href', '#' + (id ? `${target}--${id}` : target));
  }
  for (const node of article.querySelectorAll('*')) {
    if (node.id) node.id = own(node.id);
    for (const {name, value} of [...node.attributes]) {
      if (name === 'src') node.setAttribute(name, new URL(value, location).href);
      else if (name === 'srcset' || name === 'loading') node.removeAttribute(name);
      else if (name === 'xlink:href' || (name === 'href' && node.localName !== 'a')) {
        const id = value.startsWith('#') && value.slice(1);
        if (ids.has(id)) node.setAttribute(name, '#' + own(id));
      } else if (/^aria-(labelledby|describedby|controls|owns)$|^for$|^headers$/.test(name)) {
        node.setAttribute(name, value.split(/\\s+/).map(id => ids.has(id) ? own(id) : id).join(' '));
      } else if (value.includes('url(')) {
        node.setAttribute(name, value.replace(/url\\((["']?)#([^"')]+)\\1\\)/g,
          (all, quote, id) => ids.has(id) ? `url(#${own(id)})` : all));
      }
    }
  }
  article.id = mark;
  const text = node => node.textContent.replace(/\\s+/g, ' ').trim();
  const headings = [...article.querySelectorAll('h1, h2')].map((heading, i) => {
    heading.id ||= `${mark}--heading-${i}`; // a section may begin on the page before its heading
    return [Number(heading.localName[1]), text(heading), heading.localName === 'h1' ? mark : heading.id];
  });
  const inline = [...document.querySelectorAll('head style[id]')]; // MathJax's: with the glyphs that are used
  return {
    mark, headings, body: article.outerHTML,
    sheets: [...document.querySelectorAll('link[rel=stylesheet]')].map(link => [link.href, link.media]),
    rules: inline.flatMap(style => [...style.sheet.cssRules].map(rule => rule.cssText)),
    theme: {...document.documentElement.dataset},
  };
}"""


@dataclass
class Page:
    """A page of the site that is printed, and where it stands in the contents."""

    name: str  # attention, the chapter's folder; attention-laboratory beside it; of another page its file
    path: str  # book/attention/chapter.html
    part: str
    first: bool  # of its part
    chapter: str = ""  # the folder of the chapter to which it belongs

    @property
    def pdf(self) -> str | None:
        """The name of its own PDF; only what belongs to a chapter has one."""
        return f"{self.name}.pdf" if self.chapter else None


def name_of(docname: str) -> str:
    """What a page is called: a chapter as its folder, what lies beside it by both, others as their file."""
    chapter = by_docname().get(docname)
    if chapter is None:
        return Path(docname).name
    return chapter.name if docname == chapter.docname else f"{chapter.name}-{Path(docname).name}"


def printed_pages() -> list[Page]:
    """What the book holds, in the order of _toc.yml."""
    toc, of = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8")), by_docname()
    pages = []
    for part in toc["parts"]:
        files = [each["file"] for entry in part["chapters"] for each in (entry, *entry.get("sections", []))]
        kept = [file for file in files if not LEFT_OUT.fullmatch(file)]
        for file in kept:
            chapter = of[file].name if file in of else ""
            pages.append(Page(name_of(file), f"{file}.html", part["caption"], file == kept[0], chapter))
    return pages


class Printer:
    """A browser in which the built site stands at its published address, and there is nothing else."""

    def __init__(self, browser, site: Path):
        self.site = site
        self.address = site_of(current(ROOT))
        self.context = browser.new_context(
            viewport={"width": COLUMN, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        self.context.set_default_timeout(600_000)
        self.documents: dict[str, str] = {}  # by address: what is no file of the site
        self.context.route("**/*", self._serve)

    def _serve(self, route) -> None:
        url = route.request.url.split("#")[0]
        if url in self.documents:
            route.fulfill(body=self.documents[url], content_type="text/html; charset=utf-8")
            return
        file = self.site / urlsplit(url.removeprefix(self.address)).path
        if url.startswith(self.address) and file.is_file():
            route.fulfill(path=file, content_type=mimetypes.guess_type(file.name)[0] or "text/plain")
        else:
            route.abort()

    def open(self, path: str):
        """A page, typeset and made ready for paper by the site's own print.js."""
        page = self.context.new_page()
        page.goto(self.address + path, wait_until="load")
        page.evaluate(SETTLE)
        page.emulate_media(media="print")
        page.wait_for_selector("#print-heads", state="attached")
        missing = page.evaluate(SETTLE)  # pictures that print.js has asked for
        if missing:
            sys.exit(f"{path} lacks pictures: {', '.join(missing)}")
        return page

    def chapter(self, page: Page, pages: list[Page]) -> tuple[bytes | None, dict]:
        """A page as a PDF of its own, where it has one, and what of it goes into the book."""
        opened = self.open(page.path)
        inside = {self.address + other.path: other.name for other in pages}
        extract = opened.evaluate(EXTRACT, {"mark": page.name, "inside": inside})
        pdf = opened.pdf(**PAPER) if page.pdf else None
        opened.close()
        return pdf, extract

    def book(self, title: str, author: str, pages: list[Page], extracts: list[dict]) -> bytes:
        """All of it as one PDF."""
        name = "book/print.html"
        self.documents[self.address + name] = book_html(title, author, self.address, pages, extracts)
        opened = self.context.new_page()
        opened.emulate_media(media="print")
        opened.goto(self.address + name, wait_until="load")
        missing = opened.evaluate(SETTLE)
        if missing:
            sys.exit(f"the book lacks pictures: {', '.join(missing)}")
        numbers = page_numbers(opened.pdf(**PAPER | {"outline": False, "tagged": False}))
        opened.evaluate(
            """numbers => {
              for (const link of document.querySelectorAll('.print-contents a')) {
                const number = numbers[decodeURIComponent(link.hash.slice(1))];
                link.querySelector('.number').textContent = number ?? '';
              }
            }""",
            numbers,
        )
        pdf = opened.pdf(**PAPER)
        opened.close()
        return pdf


def quoted(text: str) -> str:
    """A string for CSS."""
    return json.dumps(text, ensure_ascii=False)


def running_head(title: str) -> str:
    """The title in the head of a page: "2. Attention" is "2 Attention" there."""
    return re.sub(r"^(\d+\w?)\.", r"\1", title)


def book_html(title: str, author: str, address: str, pages: list[Page], extracts: list[dict]) -> str:
    """The whole book as one document; a contents' page numbers are filled in later."""
    font = "font: 9pt system-ui, sans-serif; color: #333;"
    heads = [f"@page {{ @top-left {{ content: {quoted(title)}; {font} }} }}"]
    heads.append(f"@page print-contents {{ @top-right {{ content: 'Contents'; {font} }} }}")
    contents, bodies = [], []
    for number, (page, extract) in enumerate(zip(pages, extracts, strict=True)):
        chapter = running_head(extract["headings"][0][1])
        heads.append(f"#{css_id(page.name)} {{ page: chapter-{number}; }}")
        heads.append(f"@page chapter-{number} {{ @top-right {{ content: {quoted(chapter)}; {font} }} }}")
        if page.first:
            contents.append(f'<li class="part">{html.escape(page.part)}</li>')
        for level, text, anchor in extract["headings"]:
            contents.append(
                f'<li class="level-{level}"><a href="#{anchor}"><span>{html.escape(text)}</span>'
                '<span class="number">000</span></a></li>'
            )
        part = f'<p class="print-part">{html.escape(page.part)}</p>' if page.first else ""
        bodies.append(re.sub(r"(?=<h1)", lambda match, part=part: part, extract["body"], count=1))
    sheets = dict.fromkeys((href, media) for extract in extracts for href, media in extract["sheets"])
    rules = dict.fromkeys(rule for extract in extracts for rule in extract["rules"])
    date = datetime.date.today()
    theme = "".join(f' data-{name}="{html.escape(value)}"' for name, value in extracts[0]["theme"].items())
    links = "".join(f'<link rel="stylesheet" href="{href}" media="{media}">' for href, media in sheets)
    return f"""<!doctype html>
<html lang="en"{theme}>
<head><meta charset="utf-8"><title>{html.escape(title)}</title>{links}
<style>{"".join(rules)}</style><style>{BOOK_STYLE}{"".join(heads)}</style></head>
<body><main class="bd-main"><div class="bd-content"><div class="bd-article-container">
<div class="print-title"><img src="{address}_static/logo.svg" alt="">
<p class="name">{html.escape(title)}</p><p class="author">{html.escape(author)}</p>
<p><a href="{address}">{html.escape(address)}</a></p>
<p>As it stood on {date.day} {date:%B %Y}. Code: BSD-3-Clause. Text and figures: CC BY 4.0.</p></div>
<nav class="print-contents bd-article"><h1>Contents</h1><ul>{"".join(contents)}</ul></nav>
{"".join(bodies)}
</div></div></main></body></html>"""


def css_id(name: str) -> str:
    """An id as CSS writes it: one that begins with a digit is escaped."""
    return re.sub(r"^\d", lambda match: f"\\3{match[0]} ", name)


def page_numbers(pdf: bytes) -> dict[str, int]:
    """On which page each place that is linked to stands, from 1."""
    with Pdf.open(io.BytesIO(pdf)) as opened:
        numbers = {page.objgen: number for number, page in enumerate(opened.pages, 1)}
        places = opened.Root.Dests.items()
        return {name.removeprefix("/"): numbers[place[0].objgen] for name, place in places}


def finish(pdf: bytes, title: str, author: str, parts: dict[str, str] | None = None) -> bytes:
    """Says in the file what it is, and packs it: the tags of formulas make up half of it.

    `parts` maps chapters' titles to the parts under which they come in the outline.
    """
    out = io.BytesIO()
    with Pdf.open(io.BytesIO(pdf)) as opened:
        for key, text in {"Title": title, "Author": author, "Subject": "A textbook on transformers"}.items():
            opened.docinfo[f"/{key}"] = text
        opened.Root.Lang = String("en")
        opened.Root.PageMode = Name.UseOutlines
        with opened.open_outline() as outline:
            for item in every(outline.root):
                item.title, item.is_closed = " ".join(item.title.split()), True
            if parts is not None:
                outline.root[:] = grouped(outline.root, parts)
        opened.save(out, object_stream_mode=ObjectStreamMode.generate)
    return out.getvalue()


def every(items: list[OutlineItem]) -> Iterator[OutlineItem]:
    """The items of an outline and all below them."""
    for item in items:
        yield item
        yield from every(item.children)


def grouped(items: list[OutlineItem], parts: dict[str, str]) -> list[OutlineItem]:
    """The outline with chapters under their parts; an item without a part stays where it is."""
    groups: dict[str, OutlineItem] = {}
    result = []
    for item in items:
        part = parts.get(item.title)
        if part is None:
            result.append(item)
            continue
        if part not in groups:
            groups[part] = OutlineItem(part, item.destination)
            result.append(groups[part])
        groups[part].children.append(item)
    return result


def size_of(path: Path) -> str:
    """A file's size for a reader."""
    return f"{max(path.stat().st_size / 1e6, 0.1):.1f} MB"


def offer(page: str, pdfs: dict[str, str]) -> str:
    """A page of the site with links to PDFs (address -> text) before the button that prints.

    Raises:
        ValueError: if the page has no such button.
    """
    page = OFFERED.sub("", page)
    found = PRINT_ITEM.search(page)
    if found is None:
        raise ValueError("there is no button that prints")
    items = []
    for href, text in pdfs.items():
        item = found[0].replace('<button onclick="window.print()"', f'<a href="{href}" download', 1)
        item = item.replace("</button>", "</a>").replace("<li>", '<li class="tformer-pdf">', 1)
        item = item.replace("fa-print", "fa-file-pdf").replace("Print this page", f"Download {text}")
        item = item.replace("btn-download-pdf-button", "btn-download-made-pdf")
        items.append(re.sub(r"(btn__text-container\">)[^<]*", rf"\g<1>{text}", item))
    return page[: found.start()] + "\n".join([*items, ""]) + page[found.start() :]


def offer_everywhere(site: Path, folder: Path) -> None:
    """Links each page of the site to the PDFs that are there: its own, and the book's."""
    for path in site.rglob("*.html"):
        text = path.read_text("utf8")
        if not PRINT_ITEM.search(text):
            continue
        up = os.path.relpath(folder, path.parent).replace(os.sep, "/")
        name = name_of(path.relative_to(site).with_suffix("").as_posix())
        own, book = folder / f"{name}.pdf", folder / BOOK
        pdfs = {}
        if own.exists():
            what = "Chapter" if path.stem == CHAPTER else "Page"
            pdfs[f"{up}/{own.name}"] = f"{what} as PDF ({size_of(own)})"
        if book.exists():
            pdfs[f"{up}/{book.name}"] = f"Book as PDF ({size_of(book)})"
        path.write_text(offer(text, pdfs), "utf8")


@contextmanager
def chromium() -> Iterator:
    """The browser of this machine; exits with a sentence where there is none."""
    executable = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        sys.exit(
            "There is no Chromium or Chrome here to print with: install one (Debian: apt install chromium)."
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


def make(site: Path, folder: Path, only: list[str] | None = None, book: bool = True) -> None:
    """Writes the PDFs into `folder`; `only` names chapters or single pages, and leaves the book out."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    title, author = config["title"], config["author"]
    pages = printed_pages()
    folder.mkdir(parents=True, exist_ok=True)
    extracts = []
    with chromium() as browser:
        printer = Printer(browser, site)
        for page in pages:
            if only and not {page.name, page.chapter} & set(only):
                continue
            started = time.time()
            pdf, extract = printer.chapter(page, pages)
            extracts.append(extract)
            if pdf is not None:
                path = folder / page.pdf
                path.write_bytes(finish(pdf, f"{extract['headings'][0][1]} ({title})", author))
                print(f"{path.name}: {size_of(path)}, {time.time() - started:.0f} s", flush=True)
        if book and not only:
            started = time.time()
            parts = {
                extract["headings"][0][1]: page.part for page, extract in zip(pages, extracts, strict=True)
            }
            path = folder / BOOK
            path.write_bytes(finish(printer.book(title, author, pages, extracts), title, author, parts))
            print(f"{path.name}: {size_of(path)}, {time.time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "only", nargs="*", metavar="CHAPTER", help="only these, as attention, and not the book"
    )
    parser.add_argument(
        "--to", type=Path, help="a folder for the PDFs; the site is left without links to them"
    )
    arguments = parser.parse_args()
    if not is_fresh():
        build()
    make(SITE, arguments.to or SITE / FOLDER, arguments.only)
    if arguments.to is None:
        offer_everywhere(SITE, SITE / FOLDER)
        print(f"The PDFs: {(SITE / FOLDER).as_uri()}/")
