"""Collects what the search finds: sections, terms, cited works and public names.

`tools/search_index.py` makes pagefind's index of the records when Sphinx is done. A
record holds plain words: no code, and of a formula what can be said in a line. The
glossary says by its "See" in which section a term is explained, or else the sections
that link to the term do. That section is found by the term's name and by its other
names, also where its title is another. A chapter.yml may name its sections as well, by
their titles.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from chapters import EXERCISES, by_docname, chapters

RECORDS = "search-records.json"  # beside the doctrees: no part of the site
SCRIPT = "search.js"
GLOSSARY = "book/glossary"

# Other names under which readers look for a term of the glossary or a section of a chapter.
OTHER_NAMES = {
    (chapter.name, known): names for chapter in chapters() for known, names in chapter.words.items()
}
LABORATORIES = {f"book/{chapter.name}/{name}" for chapter in chapters() for name in chapter.laboratories}
EXPLAINING = ("section", "opening", "laboratory")

# Sections that name many things and explain none.
ASIDE = ("What you learned", "Exercises", "Further reading")

# One word, two spellings: British prose, and the rest of the world and its code.
SPELLINGS = (
    (r"\b([a-z]{3,}?)(is|iz)(e[drs]?|ers?|ing|ations?)\b", {"is": "iz", "iz": "is"}),
    (r"\b(beh?avi|col|fav|lab|neighb)(our|or)([a-z]*)\b", {"our": "or", "or": "our"}),
    (r"\b(gr)(ey|ay)(s?)\b", {"ey": "ay", "ay": "ey"}),
    (r"\b(cent)(re|er)(s?)\b", {"re": "er", "er": "re"}),
    (r"\b(cance|labe|mode|trave)(ll|l)(ed|ers?|ing)\b", {"ll": "l", "l": "ll"}),
)
NOT_WORDS = (
    addnodes.desc,  # a public name has a record of its own, and so has a term
    addnodes.glossary,
    addnodes.index,
    addnodes.toctree,
    nodes.citation,  # likewise
    nodes.comment,
    nodes.image,
    nodes.literal_block,
    nodes.raw,
    nodes.substitution_definition,
    nodes.system_message,
    nodes.target,
)
STYLES = r"\\(?:math\w+|text\w*|operatorname\*?|boldsymbol|bm|big\w*|hat|bar|tilde|widehat)"
ARGUMENT = r"\s*(\{[^{}]*\}|\d|[A-Za-z]|\\[A-Za-z]+)"
FRACTION = r"\\[dt]?frac" + ARGUMENT * 2
SYMBOLS = {
    **{"approx": "≈", "cdot": "·", "cdots": "…", "circ": "∘", "dots": "…", "ge": "≥"},
    **{"geq": "≥", "gg": "≫", "in": "∈", "infty": "∞", "ldots": "…", "le": "≤"},
    **{
        "leq": "≤",
        "ll": "≪",
        "mid": "|",
        "ne": "≠",
        "neq": "≠",
        "odot": "⊙",
        "pm": "±",
    },
    **{"prod": "∏", "propto": "∝", "sim": "~", "sqrt": "√", "sum": "Σ", "times": "×"},
    **{"to": "→", "top": "T"},
    **{name: name for name in ("exp", "ln", "log", "max", "min", "tanh")},
}
logger = logging.getLogger(__name__)


def whole(part: str) -> str:
    """A part of a fraction or a root: without its braces, or in brackets where a sign would tear it apart."""
    part = part.strip().strip("{}").strip()
    return f"({part})" if re.search(r"\w\s*(?:[-+=/ ]|\\(?:cdot|times|pm)\b)\s*\S", part) else part


def spoken(tex: str) -> str:
    """A formula in plain characters: `\\mathbf{W}_q \\in \\mathbb{R}` is "W_q ∈ R"."""
    tex = re.sub(r"\\(?:begin|end)\{\w+\*?\}", " ", tex).replace("{,}", ",")
    tex = re.sub(STYLES + r"\s+(?=\w)", "", tex)
    for _ in range(4):  # from the inside out
        tex = re.sub(STYLES + r"\s*\{([^{}]*)\}", r"\1", tex)
        tex = re.sub(r"([_^])\{\s*([^{}]*?)\s*\}", r"\1\2", tex)
        tex = re.sub(r"\\sqrt\s*\{([^{}]*)\}", lambda root: f"√{whole(root[1])}", tex)
        tex = re.sub(FRACTION, lambda parts: f" {whole(parts[1])}/{whole(parts[2])} ", tex)

    def symbol(match: re.Match) -> str:
        name = match[1]
        greek = f"GREEK {'CAPITAL' if name[0].isupper() else 'SMALL'} LETTER {name.upper()}"
        try:
            return unicodedata.lookup(greek)
        except KeyError:
            return SYMBOLS.get(name, " ")

    tex = re.sub(r"\\(?:var)?([A-Za-z]+)", symbol, tex)
    tex = re.sub(r"√\s+", "√", tex.replace("\\%", "%"))
    plain = " ".join(re.sub(r"\\.|[{}$&]|[_^](?=\s|$)", " ", tex).split())
    return re.sub(r"(?<=[(\[]) | (?=[,;:)\]]|\.(?!\d))", "", plain)


def words(node: nodes.Node) -> str:
    """The words of a node, without code, with "…" for displayed formulas, on one line."""
    if isinstance(node, nodes.math):
        return spoken(node.astext())
    if isinstance(node, nodes.math_block):
        return "…"  # so that the words before it and after it are seen to be no sentence
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, NOT_WORDS):
        return ""
    if isinstance(node, nodes.container) and "book-results" in node["classes"]:
        return ""  # the table of all claims
    if isinstance(node, nodes.container) and "question" in node["classes"]:
        return ""  # most of its answers are wrong
    if isinstance(node, nodes.container) and "cell_output" in node["classes"]:
        return " ".join(words(caption) for caption in node.findall(nodes.caption))
    if "cell_input" in node.get("classes", ()):
        return ""
    between = "" if isinstance(node, nodes.TextElement) else " "
    return between.join(words(child) for child in node.children)


def line(text: str) -> str:
    """On one line, with single spaces."""
    return " ".join(text.split())


def spellings(text: str) -> list[str]:
    """The words that have another spelling, in that one: normalize for normalise."""
    found = set()
    for pattern, swapped in SPELLINGS:
        for begin, middle, end in re.findall(pattern, text, re.IGNORECASE):
            found.add(f"{begin}{swapped[middle.lower()]}{end}".lower())
    return sorted(found)


def own_parts(section: nodes.section) -> list[nodes.Node]:
    """What a section or an exercise holds itself: no part with a record of its own, no title, no solution."""
    apart = {"solution", "exercise"}
    return [
        child
        for child in section.children
        if not isinstance(child, nodes.section | nodes.title) and not apart & set(child.get("classes", ()))
    ]


def sections(document: nodes.document) -> Iterator[nodes.section]:
    """The sections that have a title; exercises hold some that have none."""
    return (s for s in document.findall(nodes.section) if isinstance(s.next_node(), nodes.title))


def exercises(document: nodes.document) -> Iterator[nodes.Element]:
    """The exercises, which tformer_reading has made folds of."""
    return (n for n in document.findall(nodes.Element) if "exercise" in n.get("classes", ()) and n.get("ids"))


def above(section: nodes.section) -> str:
    """The title of the section that a section is in; of none where that is the whole page."""
    around = section.parent
    if not isinstance(around, nodes.section) or not isinstance(around.parent, nodes.section):
        return ""
    return line(words(around.next_node(nodes.title)))


def kind_of(docname: str, heading: str, number: str, first: bool) -> str:
    """What kind of section that is: pages that are in no chapter have no numbers."""
    if docname.startswith("book/api"):
        return "reference"
    if heading in ASIDE or docname.endswith(f"/{EXERCISES}"):
        return "aside"
    if docname in LABORATORIES:
        return "page" if first else "laboratory"
    if first and number:
        return "opening"
    return "section" if number else "page"


def target(url: str, link: nodes.reference) -> str:
    """The address that a link on the page `url` leads to, from the site's root."""
    path = link.get("refuri") or f"#{link.get('refid', '')}"
    page, _, anchor = path.partition("#")
    page = normpath(join(dirname(url), page)) if page else url
    return f"{page}#{anchor}"


def see(definition: nodes.definition) -> nodes.reference | None:
    """The link after the word "See" in the glossary."""
    before = ""
    for node in definition.findall():
        if isinstance(node, nodes.reference) and before.rstrip().endswith("See"):
            return node
        if isinstance(node, nodes.Text):
            before = node.astext()
    return None


class Collector:
    """The records of all pages, as they are written."""

    def __init__(self) -> None:
        self.records: list[dict] = []
        self.sees: dict[str, str] = {}  # of a term, what its "See" leads to
        self.home: dict[str, dict] = {}  # of an address, the section that it is in
        self.links: dict[str, list[dict]] = {}  # of an address, who links to it
        self.named: set[tuple[str, str]] = set()  # those of OTHER_NAMES that have been found

    def add(self, kind: str, url: str, title: str, text: str, page: str, number: str = "") -> dict:
        """Keeps a record, which it returns."""
        record = {
            "kind": kind,
            "url": url,
            "title": title,
            "number": number,
            "page": page,
            "text": text,
        }
        self.records.append(record | {"names": [], "within": ""})
        return self.records[-1]

    def page(self, app: Sphinx, docname: str, template: str, context: dict, doctree) -> None:
        """Collects from a page that has been read from a file."""
        if doctree is None:
            return
        url, numbers = (
            app.builder.get_target_uri(docname),
            app.env.toc_secnumbers.get(docname, {}),
        )
        chapter = ".".join(map(str, numbers.get("") or ()))
        title = line(f"{chapter}{'.' * bool(chapter)} {words(app.env.titles[docname])}")
        first = True
        for section in sections(doctree):
            anchor = section["ids"][0]
            number = ".".join(map(str, numbers.get("" if first else f"#{anchor}") or ()))
            heading, parts = line(words(section.next_node())), own_parts(section)
            record = self.add(
                kind_of(docname, heading, number, first),
                url if first else f"{url}#{anchor}",
                heading,
                line(" ".join(words(part) for part in parts)),
                title,
                number,
            )
            record["within"] = above(section)
            record["names"] = self.other_names(docname, heading)
            for inner in section.findall(nodes.Element):
                for name in inner.get("ids", ()):  # the innermost comes last, and stays
                    self.home[f"{url}#{name}"] = record
            for link in (a for p in parts for a in p.findall(nodes.reference)):
                self.links.setdefault(target(url, link), []).append(record)
            first = False
        for exercise in exercises(doctree):
            self.exercise(exercise, url, title)
        for item in doctree.findall(nodes.definition_list_item):
            self.term(item, url, title)
        for citation in doctree.findall(nodes.citation):
            label, *rest = citation.children
            text = line(" ".join(words(child) for child in rest))
            self.add("work", f"{url}#{citation['ids'][0]}", label.astext(), text, title)
        for description in doctree.findall(addnodes.desc):
            self.name(description, url)

    def other_names(self, docname: str, heading: str) -> list[str]:
        """What chapter.yml calls a section besides; once, so that it can be said which names nobody has."""
        key = (docname.split("/")[1] if docname.count("/") > 1 else "", heading)
        if key in OTHER_NAMES:
            self.named.add(key)
        return list(OTHER_NAMES.get(key, ()))

    def exercise(self, exercise: nodes.Element, url: str, page: str) -> None:
        """An exercise, without its solution: its title is its number, its name and how hard it is."""
        title, *parts = exercise.children
        number, name = "", ""
        for part in title.children:
            if "caption-number" in part.get("classes", ()) if isinstance(part, nodes.Element) else False:
                number = line(part.astext())
            elif not (isinstance(part, nodes.Element) and "exercise-kind" in part.get("classes", ())):
                name += words(part)
        text = line(" ".join(words(part) for part in parts if "solution" not in part.get("classes", ())))
        self.add("aside", f"{url}#{exercise['ids'][0]}", line(name).strip("()"), text, page, number)

    def term(self, item: nodes.definition_list_item, url: str, page: str) -> None:
        """A term of the glossary, with its other names."""
        definition = item.children[-1]
        for term in item.findall(nodes.term):
            if not (term["ids"] and term["ids"][0].startswith("term-")):
                continue
            record = self.add(
                "term",
                f"{url}#{term['ids'][0]}",
                term.astext(),
                line(words(definition)),
                page,
            )
            for key, names in OTHER_NAMES.items():
                if key[1] == record["title"]:
                    record["names"] = [*record["names"], *names]
                    self.named.add(key)
            if link := see(definition):
                self.sees[record["url"]] = target(url, link)

    def name(self, description: addnodes.desc, url: str) -> None:
        """A public name of the package and what its docstring says."""
        signature = next(iter(description.findall(addnodes.desc_signature)))
        if not signature["ids"]:
            return
        content = next(c for c in description.children if isinstance(c, addnodes.desc_content))
        text = line(" ".join(words(c) for c in content.children if not isinstance(c, addnodes.desc)))
        module, full = signature.get("module") or "", signature["ids"][0]
        self.add("reference", f"{url}#{full}", full.removeprefix(f"{module}."), text, module)

    def name_sections(self) -> None:
        """Gives a section the names of the terms that it explains.

        That is where the glossary's "See" leads; or else, of the sections that link to
        the term, the one that says it most often, and the first of several.
        """
        for term in [r for r in self.records if r["kind"] == "term"]:
            names = [term["title"], *term["names"]]
            home = self.home.get(self.sees.get(term["url"], ""))
            if home is None or home["kind"] not in EXPLAINING:
                said = re.compile("|".join(map(re.escape, names)), re.IGNORECASE)
                linking = [
                    record for record in self.links.get(term["url"], ()) if record["kind"] in EXPLAINING
                ]
                linking.sort(key=lambda r: len(said.findall(r["text"])), reverse=True)
                home = next(iter(linking), None)
            if home is not None:
                home["names"] = [*home["names"], *names]

    def order(self) -> None:
        """Puts the records in reading order, so that of equal ones the first is found first."""
        places = {f"{docname}.html": place for place, docname in enumerate(by_docname())}

        def place(record: dict) -> int:
            return places.get(record["url"].partition("#")[0], len(places))

        for records in (self.records, *self.links.values()):
            records.sort(key=place)

    def write(self, app: Sphinx, exception: Exception | None) -> None:
        """Writes the records when all pages are written."""
        if exception is not None or app.builder.format != "html":
            return
        if GLOSSARY in app.env.found_docs and (unknown := OTHER_NAMES.keys() - self.named):
            raise ExtensionError(f"a chapter.yml gives words for what is no term and no section: {unknown}")
        self.order()
        self.name_sections()
        for record in self.records:
            said = " ".join([record["title"], *record["names"], record["text"]])
            record["spellings"] = spellings(said)
        Path(app.doctreedir, RECORDS).write_text(json.dumps(self.records, indent=1), "utf8")


def without_search_data(app: Sphinx, docname: str, template: str, context: dict, doctree) -> None:
    """Lets templates leave out Sphinx's search, which search.js loads where it must."""
    script = r"<script[^>]*(?:searchtools|language_data|searchindex)\.js[^>]*></script>"
    context["without_search_data"] = lambda html: re.sub(script, "", html)


def setup(app: Sphinx) -> dict:
    """Collects as pages are written; adds the search's script and style."""
    collector = Collector()
    app.add_css_file("search.css")
    app.add_js_file(SCRIPT, loading_method="defer")
    app.connect("html-page-context", collector.page)
    app.connect("html-page-context", without_search_data)
    app.connect("build-finished", collector.write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
