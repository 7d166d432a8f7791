"""Makes the built pages light: one style sheet, scripts and pictures that wait.

Runs on the finished HTML: so it also sees what themes and other extensions put there.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import imagesize
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from tformer_icons import icons_only

BUNDLE = "_static/site.css"
LINK = re.compile(r'[ \t]*<link\b[^>]*rel="stylesheet"[^>]*>\n?')
SCRIPT = re.compile(r"[ \t]*<script\b([^>]*)>(.*?)</script>\n?", re.DOTALL)
PICTURE = re.compile(r"<img\b[^>]*>")
IMPORT = re.compile(r'@import\s+(?:url\()?"?([^")]+)"?\)?\s*;')
URL = re.compile(r"""\burl\(("data:[^"]*"|'data:[^']*'|[^)]*)\)""")
ADDRESS = re.compile(r'\b(?:href|src)="([^"?#]*)')

# What a page must hold to have use for a script.
USED_BY = {
    "claims.js": "tformer-filter",
    "clipboard.min.js": 'class="highlight',
    "copybutton.js": 'class="highlight',
    "design-tabs.js": "sd-tab-set",
    "load.js": " data-(?:try|opens)=",
    "math.js": "<mjx-container",
    "togglebutton.js": "toggle|dropdown",
}
# Settings of what this site has not: a choice of versions, the theme's search, thebe.
UNUSED_SETTINGS = re.compile(r"DOCUMENTATION_OPTIONS\.(pagename|search_as_you_type) *=|kernelName *=")

# The theme's own script sets the colours when the page is read. Until then the page
# would have none, and the frames that come with them would move it.
THEME = """
    (({ dataset }, dark) => {
      dataset.mode = localStorage.getItem("mode") || "auto";
      const { mode } = dataset;
      dataset.theme = mode === "auto" ? (dark.matches ? "dark" : "light") : mode;
    })(document.documentElement, matchMedia("(prefers-color-scheme: dark)"));
  """


def sheets(page: str, where: str) -> list[str]:
    """The style sheets of a page at `where`, as paths in the site, in order."""
    found = (ADDRESS.search(link[0]) for link in LINK.finditer(page))
    return [
        posixpath.normpath(posixpath.join(posixpath.dirname(where), match[1])) for match in found if match
    ]


def read_sheet(site: Path, name: str) -> str:
    """A style sheet with what it imports, its addresses as seen from _static.

    Comments are left out, but for licences, which begin with an exclamation mark.
    """
    folder = posixpath.dirname(name)

    def relocate(match: re.Match) -> str:
        address = match[1].strip("'\"")
        if address.startswith(("data:", "#", "http:", "https:")):
            return match[0]
        moved = posixpath.relpath(posixpath.join(folder, address), "_static")
        return f"url({moved})"

    text = (site / name).read_text("utf8")
    text = re.sub(r"/\*(?!!).*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r'@charset "[^"]*";', "", text)
    pieces = IMPORT.split(text)  # own rules and the addresses of imports, by turns
    pieces[::2] = [URL.sub(relocate, piece) for piece in pieces[::2]]
    pieces[1::2] = [read_sheet(site, posixpath.normpath(posixpath.join(folder, at))) for at in pieces[1::2]]
    return re.sub(r"\s*\n\s*", "\n", "".join(pieces)).strip() + "\n"


def used_rules(sheet: str, words: set[str]) -> str:
    """The style sheet without the rules for classes that are not among `words`.

    Every word of every page and script counts as a class, so what a script adds is
    kept; names that Bootstrap puts together begin with "bs-". What stands within :not()
    and its like asks for nothing.
    """

    def wanted(selector: str) -> bool:
        outside = re.sub(r"/\*.*?\*/", "", selector, flags=re.DOTALL)
        while outside != (outer := re.sub(r"\([^()]*\)", "", outside)):
            outside = outer
        classes = re.findall(r"\.(-?[A-Za-z_][\w-]*)", outside)
        return all(name in words or name.startswith("bs-") for name in classes)

    def change(rule: re.Match) -> str:
        selectors, body = rule[1], rule[2]
        licence = "".join(re.findall(r"/\*!.*?\*/", selectors, flags=re.DOTALL))
        selectors = re.sub(r"/\*.*?\*/", "", selectors, flags=re.DOTALL)
        if "@" in selectors:
            return rule[0]
        kept = [one for one in re.split(r",(?![^()]*\))", selectors) if wanted(one)]
        return licence + (f"{','.join(kept)}{{{body}}}" if kept else "")

    return re.sub(r"((?:/\*.*?\*/|[^{}])+?)\{([^{}]*)\}", change, sheet, flags=re.DOTALL)


def light_scripts(page: str) -> str:
    """Lets scripts wait until the page is read, and drops what it has no use for."""

    def change(match: re.Match) -> str:
        attributes, body = match[1], match[2]
        address = ADDRESS.search(attributes)
        if "dataset.mode = localStorage" in body:
            return f"  <script>{THEME}</script>\n"
        if not address:
            unused = UNUSED_SETTINGS.search(body) or "text/x-thebe-config" in attributes
            return "" if unused else match[0]
        if re.search(USED_BY.get(posixpath.basename(address[1]), ""), rest) is None:
            return ""
        if re.search(r"\b(defer|async|type=\"module\")", attributes):
            return match[0]
        return match[0].replace("<script", '<script defer="defer"', 1)

    page = page.replace("<html", '<html data-theme="light"', 1)  # without scripts too
    rest = SCRIPT.sub("", page)
    page = SCRIPT.sub(change, page)
    # The browser finds them soon enough; what the first paint needs comes first.
    return re.sub(r'[ \t]*<link rel="preload" as="script"[^>]*>\n?', "", page)


def light_pictures(site: Path, where: str, page: str) -> str:
    """Pictures load when they come near, in a space that is kept for them."""

    def change(match: re.Match) -> str:
        tag = match[0]
        if "loading=" not in tag:
            tag = tag.replace("<img", '<img loading="lazy"', 1)
        address = ADDRESS.search(tag)
        if address and not re.search(r"\b(width|height|style)=", tag):
            file = site / posixpath.normpath(posixpath.join(posixpath.dirname(where), address[1]))
            width, height = imagesize.get(file) if file.is_file() else (-1, -1)
            if width > 0:
                tag = tag.replace("<img", f'<img width="{width}" height="{height}"', 1)
        return tag

    return PICTURE.sub(change, page)


def with_bundle(page: str, names: list[str], common: list[str], address: str) -> str:
    """The page with one style sheet in the place of those in `common`.

    Its style sheets, in order, are `names`.
    """
    places = iter(names)
    shown = iter([f'    <link rel="stylesheet" href="{address}" />\n'])
    return LINK.sub(lambda link: next(shown, "") if next(places) in common else link[0], page)


def pages(site: Path) -> Iterator[tuple[str, str]]:
    """Address and text of each page with a style sheet; others lead elsewhere."""
    for path in sorted(site.rglob("*.html")):
        if "_static" not in path.relative_to(site).parts:
            text = path.read_text("utf8")
            if LINK.search(text):
                yield path.relative_to(site).as_posix(), text


def lighten(site: Path) -> None:
    """Makes all pages of a site light."""
    found = {where: text for where, text in pages(site) if BUNDLE not in sheets(text, where)}
    if not found:
        return
    lists = {where: sheets(text, where) for where, text in found.items()}
    common = [name for name in next(iter(lists.values())) if all(name in names for names in lists.values())]
    if not common:
        raise ExtensionError("the pages have no style sheet in common")
    scripts = (path for path in (site / "_static").rglob("*.js") if path.name != "fontawesome.js")
    shown = "".join([*found.values(), *(path.read_text("utf8") for path in scripts)])
    bundle = "".join(read_sheet(site, name) for name in common)
    bundle = icons_only(used_rules(bundle, set(re.findall(r"[\w-]+", shown))), shown, site)
    (site / BUNDLE).write_text(bundle, "utf8")
    digest = hashlib.sha256(bundle.encode()).hexdigest()[:8]
    for where, text in found.items():
        address = posixpath.relpath(BUNDLE, posixpath.dirname(where) or ".")
        text = with_bundle(text, lists[where], common, f"{address}?v={digest}")
        (site / where).write_text(light_pictures(site, where, light_scripts(text)), "utf8")


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Runs when everything is written."""
    if exception is None and app.builder.name in ("html", "dirhtml"):
        lighten(Path(app.outdir))


def setup(app: Sphinx) -> dict:
    """Connects the handler above."""
    app.connect("build-finished", finish, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
