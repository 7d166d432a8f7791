"""What makes pages easy to read: anchors, folds, a bibliography by author, previews.

- Each id stands once on a page, and a section's anchor is words: links to it last.
- A box of the class `dropdown` or `toggle` is a `<details>`: its whole title opens it,
  without a script too. An exercise is open: its title says how hard it is, and its
  solution lies in it, closed.
- A cell's fold says what is in it, and stands below what the cell shows; what is closed
  with nothing between is one fold.
- A page of exercises lists them as its contents: the number, the name, how hard, how long.
- The bibliography is labelled by author and year, and says which sections cite a work.
- `_static/previews/*.js` hold what links to terms, equations, figures and works show
  when one points at them.
"""

import json
import re
from collections.abc import Iterator
from html import escape
from itertools import dropwhile, takewhile
from pathlib import Path

from docutils import nodes
from markupsafe import Markup
from myst_nb.sphinx_ import HideCodeCellNode
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import is_exercise_node
from tformer_claims import claims_fold
from tformer_site import by_docname

PREVIEWS = "_static/previews"
STYLE = "author_year_list"
# Their extensions give every such part of a page the same id.
REPEATED_IDS = {"exercise-content", "solution-content", "proof-content", "proof"}
FOLDED = {"dropdown", "toggle"}
PROMPT = "Show code cell"  # what myst-nb says where a notebook says nothing


# --- ids -----------------------------------------------------------------------------


class WordAnchors(SphinxTransform):
    """Makes ids unique on a page, and a section's anchor words.

    Docutils calls the second section "Attention" of a page `id5`, and `id6` when a
    citation comes in before it. Here it is named for the section that it is in too.
    """

    # After solutions are put together, before contents are collected.
    default_priority = 850

    def apply(self, **kwargs) -> None:
        """Changes the document."""
        for node in list(self.document.findall(nodes.Element)):
            anchor = (node.get("ids") or [""])[0]
            above = next((up["ids"][0] for up in ancestors(node) if up.get("ids")), "page")
            if anchor in REPEATED_IDS:
                self.rename(node, f"{above}-{anchor.rpartition('-')[2]}")
            elif isinstance(node, nodes.section) and re.fullmatch(r"id\d+", anchor):
                title = nodes.make_id(node.next_node(nodes.title).astext())
                self.rename(node, f"{above}-{title}".strip("-"))

    def rename(self, node: nodes.Element, stem: str) -> None:
        """Gives the node an id that begins with `stem`."""
        old, new, count = node["ids"][0], stem, 2
        while new in self.document.ids:
            new, count = f"{stem}-{count}", count + 1
        node["ids"][0] = new
        self.document.ids[new] = node
        if self.document.ids.get(old) is node:
            del self.document.ids[old]
            for name, anchor in self.document.nameids.items():
                if anchor == old:
                    self.document.nameids[name] = new


def ancestors(node: nodes.Node) -> Iterator[nodes.Element]:
    """What the node is in, from the inside out."""
    while (node := node.parent) is not None:
        yield node


# --- folds ---------------------------------------------------------------------------


class fold(nodes.General, nodes.Element):  # noqa: N801  docutils' names are small
    """A box that its title opens."""


class fold_title(nodes.TextElement):  # noqa: N801
    """That title."""


class Folds(SphinxPostTransform):
    """Turns the boxes that open into folds."""

    default_priority = 900  # the exercises' titles and links are resolved
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Changes the document."""
        boxes = [
            n
            for n in self.document.findall(nodes.Admonition)
            if FOLDED & set(n.get("classes", ())) or is_exercise_node(n)
        ]
        exercises: dict[str, fold] = {}
        for box in boxes:
            title = next(
                (child for child in box.children if isinstance(child, nodes.title)),
                None,
            )
            if title is None:
                continue
            made = fold("", ids=box["ids"], classes=["admonition", *box["classes"]])
            made["open"] = is_exercise_node(box)
            link = next(iter(title.findall(nodes.reference)), None)
            made += fold_title("", "", *without_links(title))
            if is_exercise_node(box):
                made[0].insert(0, self.number(box))
                made[0] += self.kind(box)
            if link is not None:  # in the title it would catch the click that opens
                back = link.deepcopy()
                back.children = [nodes.Text("Back to the exercise")]
                made += nodes.paragraph("", "", back, classes=["fold-back"])
            made.extend(child for child in box.children if child is not title)
            box.replace_self(made)
            if is_exercise_node(box):
                exercises |= dict.fromkeys(made["ids"], made)
            elif box.get("target_label") in exercises:
                made.parent.remove(made)
                exercises[box["target_label"]] += made

    def number(self, exercise: nodes.Element) -> nodes.inline:
        """Its number, which Sphinx writes before the title of a box that is no fold."""
        numbers = self.env.toc_fignumbers.get(self.env.docname, {}).get("exercise", {})
        number = next((numbers[i] for i in exercise["ids"] if i in numbers), ())
        words = f"Exercise {'.'.join(map(str, number))}".strip() + " "
        return nodes.inline("", words, classes=["caption-number"])

    @staticmethod
    def kind(exercise: nodes.Element) -> list[nodes.Node]:
        """How hard it is and how long it takes: its first line, taken out of it."""
        first = next(exercise.findall(nodes.paragraph), None)
        if first is None or [type(c) for c in first.children] != [nodes.emphasis]:
            return []
        first.parent.remove(first)
        words = nodes.inline("", first.astext(), classes=["exercise-kind"])
        return [nodes.Text(" "), words]


def without_links(title: nodes.Element) -> list[nodes.Node]:
    """The parts of a title; of a link only its words."""
    parts: list[nodes.Node] = []
    for child in title.children:
        parts += without_links(child) if isinstance(child, nodes.reference) else [child.deepcopy()]
    return parts


def visit_fold(translator, node: fold) -> None:
    """Opens the element."""
    translator.body.append(translator.starttag(node, "section" if node.get("open") else "details"))


def depart_fold(translator, node: fold) -> None:
    """Closes it."""
    translator.body.append("</section>\n" if node.get("open") else "</details>\n")


def visit_title(translator, node: fold_title) -> None:
    """Opens the title."""
    tag = "h2" if node.parent.get("open") else "summary"
    translator.body.append(translator.starttag(node, tag, CLASS="admonition-title"))


def depart_title(translator, node: fold_title) -> None:
    """Closes it."""
    translator.body.append("</h2>\n" if node.parent.get("open") else "</summary>\n")


def visit_cell(translator, node: HideCodeCellNode) -> None:
    """Opens a closed cell; myst-nb would call it "Toggle hidden content" aloud."""
    classes = " ".join(["admonition", "hide", *node["classes"]])
    translator.body.append(
        f'<details class="{classes}">\n<summary>\n'
        f'<p class="collapsed admonition-title">{escape(node["prompt_show"])}</p>\n'
        f'<p class="expanded admonition-title">{escape(node["prompt_hide"])}</p>\n'
        "</summary>\n"
    )


SETUP = re.compile(  # how a line of a cell begins that only prepares the others
    r"(?:import|from|try|except|%|torch\.(?:manual_seed|set_num_threads)\b)"
)


def what_is_in(code: str) -> str:
    """What a closed cell holds, in a few words."""
    statements = re.findall(r"^[^\s#)\]}].*", code, re.MULTILINE)
    if statements and all(SETUP.match(line) for line in statements):
        return "Setup: imports"
    defined = re.findall(r"^(?:def|class) (\w+)", code, re.MULTILINE)
    if defined:
        return f"Code: {', '.join(defined[:3])}{' and more' if len(defined) > 3 else ''}"
    if re.search(r"\bplots?\.|^draw\.", code, re.MULTILINE):
        return "Code of the figure"
    return "Code of the table" if re.search(r"^table\(", code, re.MULTILINE) else "Code"


class CellPrompts(SphinxPostTransform):
    """Names what a closed cell holds; runs before myst-nb closes it."""

    default_priority = 190
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Changes the prompts that the notebooks leave as they are; open it is named as closed."""
        for cell in self.document.findall(nodes.container):
            if not cell.get("hide_mode") or "prompt_show" not in cell:
                continue
            if cell["prompt_show"].startswith(PROMPT):
                source = next(iter(cell.findall(nodes.literal_block)), None)
                code = what_is_in(source.astext() if source else "")
                cell["prompt_show"] = "Output" if cell["hide_mode"] == "output" else code
            cell["prompt_hide"] = cell["prompt_show"]


class JoinedCells(SphinxPostTransform):
    """Makes one fold of what is closed with nothing between, below what the cells show.

    Code goes into the fold of the claims that follow it. A figure, whose code opens from
    its caption, takes what only prepares it; the page's setup stays by itself.
    """

    default_priority = 195  # they have names, and are not closed yet
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Changes the document."""
        cells = [c for c in self.document.findall(nodes.container) if closed_code(c)]
        for parent in {id(cell.parent): cell.parent for cell in cells}.values():
            if not isinstance(parent, claims_fold):
                parent[:] = Joining(parent.children, cells[0]).children


class Joining:
    """The children of a node, with what is closed joined."""

    def __init__(self, children: list[nodes.Node], setup: nodes.Node) -> None:
        self.children: list[nodes.Node] = []
        self.setup = setup
        self.waiting: list[nodes.container] = []  # cells whose code has no place yet
        self.shown = 0  # how many of them are of what stands above already
        for place, node in enumerate(children):
            if closed_code(node):
                self.add_cell(node)
            elif isinstance(node, claims_fold):
                self.add_claims(node)
            else:
                if not self.claims_come(children[place:]):
                    self.put()
                self.children.append(node)
        self.put()

    def claims_come(self, later: list[nodes.Node]) -> bool:
        """Whether what stands above, a table for instance, has its claims after a paragraph or two.

        After one paragraph they may be those of the next table too.
        """
        said = len(list(takewhile(lambda node: isinstance(node, nodes.paragraph), later)))
        rest = later[said:]
        if said == 1:
            rest = list(dropwhile(lambda n: closed_code(n) and not has_figure(n), rest))
        return bool(self.shown and said in (1, 2) and rest and isinstance(rest[0], claims_fold))

    @property
    def last(self) -> nodes.Node | None:
        """What stands above."""
        return self.children[-1] if self.children else None

    def add_cell(self, cell: nodes.container) -> None:
        """A closed cell: what it shows stands first, its code waits for a fold."""
        if cell is self.setup:
            self.children.append(cell)
        elif self.last is self.setup and not self.waiting and cell["prompt_show"] == self.last["prompt_show"]:
            take(self.last, [cell])
        elif has_figure(cell):
            before, self.waiting = self.waiting[self.shown :], self.waiting[: self.shown]
            self.put()
            take(cell, before, first=True)
            self.children.append(cell)
        else:
            self.waiting.append(cell)
            if output(cell):
                self.children.append(without_code(cell))
                self.shown = len(self.waiting)

    def add_claims(self, fold: claims_fold) -> None:
        """Claims: the code that waits goes into their fold, and so do claims right above."""
        cell = {"nb_element": "cell_code", "classes": ["cell"]}
        code = [nodes.container("", *waits.children, **cell) for waits in self.waiting]
        if isinstance(self.last, claims_fold) and not self.shown:
            self.last["claims"] = self.last["claims"] + fold["claims"]
            self.last.extend([*code, *fold.children])
        else:
            fold[:0] = code
            self.children.append(fold)
        if code:
            self.last["more"] = True
        self.waiting, self.shown = [], 0

    def put(self) -> None:
        """Gives the code that waits a fold: the figure's above it, or one of its own."""
        if not self.shown and closed_code(self.last) and has_figure(self.last):
            take(self.last, self.waiting)
        elif self.waiting:
            fold = self.waiting[0]
            take(fold, self.waiting[1:])
            self.children.append(fold)
        self.waiting, self.shown = [], 0


def closed_code(cell: nodes.Node | None) -> bool:
    """Whether a node is a cell whose code will be closed."""
    return (
        isinstance(cell, nodes.container)
        and cell.get("nb_element") == "cell_code"
        and cell.get("hide_mode") == "input"
    )


def has_figure(cell: nodes.container) -> bool:
    """Whether a cell shows a figure."""
    return bool(list(cell.findall(nodes.figure)))


def take(fold: nodes.container, cells: list[nodes.container], *, first: bool = False) -> None:
    """Puts the code of cells into the fold of another, which names them."""
    if not cells:
        return
    for cell in cells[::-1] if first else cells:
        parts = [parts_of(cell), parts_of(fold)][:: 1 if first else -1]
        place = 0 if first else len(source(fold))
        source(fold)[place:place] = source(cell).children
        fold["parts"] = list(dict.fromkeys([*parts[0], *parts[1]]))
    fold["prompt_show"] = fold["prompt_hide"] = joined(fold["parts"])


def without_code(cell: nodes.container) -> nodes.container:
    """What a cell shows, which is taken from it: its code stays behind."""
    shown = nodes.container("", nb_element="cell_code", classes=[*cell["classes"]])
    for part in [c for c in cell.children if c.get("nb_element") == "cell_code_output"]:
        cell.remove(part)
        shown += part
    return shown


def source(cell: nodes.container) -> nodes.container:
    """The part of a cell that holds its code."""
    return next(c for c in cell.children if c.get("nb_element") == "cell_code_source")


def output(cell: nodes.container) -> bool:
    """Whether a cell shows something."""
    return any(c.get("nb_element") == "cell_code_output" for c in cell.children)


def parts_of(cell: nodes.container) -> list[str]:
    """What the title of a fold names: "a" of "Code: a" and of "Code of a"."""
    if "parts" in cell:
        return cell["parts"]
    words = re.sub(r"^(?:Code|Setup)(?:: | of |$)", "", cell["prompt_show"])
    return [words] if words else []


def joined(parts: list[str]) -> str:
    """The title of folds together: of many parts the first two and the last."""
    if parts in ([], ["imports"]):
        return "Setup: imports" if parts else "Code"
    named = parts if len(parts) < 4 else [*parts[:2], "…", parts[-1]]
    return f"Code: {'; '.join(named)}"


# --- contents ------------------------------------------------------------------------


def short_kind(kind: str) -> str:
    """How hard an exercise is and how long it takes, for a list: "easy · 10 min"."""
    level, *_, time = kind.split(" · ")
    return (
        f"{level.lower()} · {re.sub(r'^about | ?minutes?$', '', time)} min"
        if "minute" in time
        else level.lower()
    )


def exercise_contents(doctree: nodes.document) -> str:
    """The exercises of a page as the theme lists sections; nothing where there are none."""
    entries = []
    for exercise in doctree.findall(fold):
        if not exercise.get("open"):
            continue
        parts = {"caption-number": "", "exercise-kind": "", "": ""}
        for part in exercise[0].children:
            classes = part.get("classes") if isinstance(part, nodes.Element) else None
            parts[classes[0] if classes and classes[0] in parts else ""] += part.astext()
        number = parts["caption-number"].removeprefix("Exercise ").strip()
        name = parts[""].strip().removeprefix("(").removesuffix(")")
        kind = parts["exercise-kind"] and f" <small>{escape(short_kind(parts['exercise-kind']))}</small>"
        entries.append(
            f'<li class="toc-h2 nav-item toc-entry"><a class="reference internal nav-link" '
            f'href="#{escape(exercise["ids"][0])}">{escape(f"{number} {name}".strip())}{kind}</a></li>\n'
        )
    return f'<ul class="nav section-nav flex-column">\n{"".join(entries)}</ul>' if entries else ""


def list_exercises(app: Sphinx, docname: str, template: str, context: dict, doctree) -> None:
    """Gives a page of exercises contents: its boxes are no sections, of which the theme makes them."""
    if doctree is not None and not context["generate_toc_html"]() and (found := exercise_contents(doctree)):
        context["generate_toc_html"] = lambda kind="html": Markup(found)


# --- the bibliography ----------------------------------------------------------------


class AuthorYear(BaseLabelStyle):
    """Labels as the text cites: "Vaswani et al. (2017)", and a, b of two alike."""

    def format_labels(self, sorted_entries):
        """The labels, in order."""
        labels = [self.label(entry) for entry in sorted_entries]
        for place, label in enumerate(labels):
            if labels.count(label) == 1:
                yield label
            else:
                yield f"{label[:-1]}{'abcdefgh'[labels[:place].count(label)]})"

    @staticmethod
    def label(entry) -> str:
        """The label of one entry, were it alone."""
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [" ".join(map(str, [*p.rich_prelast_names, *p.rich_last_names])) for p in people]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        who = " and ".join(names) or entry.fields.get("title", entry.key)
        return f"{who} ({entry.fields.get('year', 'n.d.')})"


class AuthorYearList(Style):
    """Pybtex's plain style under these labels, in their order."""

    default_sorting_style = "author_year_title"
    default_label_style = STYLE


class CitedIn(SphinxPostTransform):
    """Adds to each work of the bibliography the sections that cite it, as links."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Changes the document."""
        citations = list(self.document.findall(nodes.citation))
        if not citations:
            return
        by_id = {citation["ids"][0]: citation for citation in citations}
        domain, docname = self.env.get_domain("cite"), self.env.docname
        ids = {item.key: item.citation_id for item in domain.citations}
        seen: set[tuple[str, str]] = set()
        order = {page: place for place, page in enumerate(by_docname())}
        for ref in sorted(domain.citation_refs, key=lambda r: order.get(r.docname, len(order))):
            place = self.place(ref.docname, ref.citation_ref_id)
            for target in ref.targets:
                if (citation := by_id.get(ids.get(target.key, ""))) is None or (
                    target.key,
                    place,
                ) in seen:
                    continue
                seen.add((target.key, place))
                last = citation.children[-1]
                if "cited-in" not in last.get("classes", ()):
                    last = nodes.paragraph("", "Cited in ", classes=["cited-in"])
                    citation += last
                else:
                    last += nodes.Text(", ")
                uri = self.app.builder.get_relative_uri(docname, ref.docname)
                last += nodes.reference("", place, internal=True, refuri=f"{uri}#{ref.citation_ref_id}")

    def place(self, docname: str, anchor: str) -> str:
        """The number of the section that an anchor is in, or the page's title."""
        numbers = self.env.toc_secnumbers.get(docname, {})
        node = self.tree(docname).get(anchor)
        while node is not None:
            if isinstance(node, nodes.section) and node["ids"]:
                number = numbers.get(f"#{node['ids'][0]}")
                if number:
                    return ".".join(map(str, number))
            node = node.parent
        number = numbers.get("")
        return f"chapter {number[0]}" if number else self.env.titles[docname].astext()

    def tree(self, docname: str) -> dict[str, nodes.Element]:
        """The nodes of a page by their ids, read once."""
        trees = self.env.temp_data.setdefault("tformer_citing", {})
        if docname not in trees:
            found = self.env.get_doctree(docname).findall(nodes.Element)
            trees[docname] = {name: node for node in found for name in node.get("ids", ())}
        return trees[docname]


# --- previews ------------------------------------------------------------------------


def previews(app: Sphinx, docname: str, template: str, context: dict, doctree) -> None:
    """Writes the page's terms, equations, figures and works, for links to them."""
    if doctree is None or app.builder.name != "html":
        return
    shown: dict[str, nodes.Element] = {}
    for item in doctree.findall(nodes.definition_list_item):
        for term in item.findall(nodes.term):
            if term["ids"] and term["ids"][0].startswith("term-"):
                shown[term["ids"][0]] = nodes.container(
                    "", *[c.deepcopy() for c in item.children[-1].children]
                )
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.math_block | nodes.figure | nodes.citation):
            for name in node.get("ids", ())[:1]:
                shown[name] = node
    found = {
        name: app.builder.render_partial(without_backlinks(node))["fragment"] for name, node in shown.items()
    }
    if not found:
        return
    path = Path(app.outdir, PREVIEWS, f"{docname.replace('/', '-')}.js")
    path.parent.mkdir(parents=True, exist_ok=True)
    url = json.dumps(app.builder.get_target_uri(docname))
    path.write_text(f"tformerPreviews({url}, {json.dumps(found, ensure_ascii=False)});\n", "utf8")


def without_backlinks(node: nodes.Element) -> nodes.Element:
    """A copy without the links back that a bibliography has."""
    copy = node.deepcopy()
    for part in list(copy.findall(nodes.paragraph)):
        if "cited-in" in part.get("classes", ()):
            part.parent.remove(part)
    return copy


def without_toggles(app: Sphinx, docname: str, template: str, context: dict, doctree) -> None:
    """Leaves out the script that would make buttons for folds: they need none."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "toggle" not in f"{script.filename or ''} {script.attributes.get('body') or ''}".lower()
    ]
    context["css_files"] = [s for s in context["css_files"] if "togglebutton" not in str(s.filename)]


def settings(app: Sphinx, config) -> None:
    """What the bibliography's extension needs to know."""
    config.bibtex_default_style = STYLE
    config.bibtex_cite_id = "cite-{key}"


def setup(app: Sphinx) -> dict:
    """Registers all of it."""
    register_plugin("pybtex.style.labels", STYLE, AuthorYear)
    register_plugin("pybtex.style.formatting", STYLE, AuthorYearList)
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_node(fold_title, html=(visit_title, depart_title))
    app.add_node(HideCodeCellNode, override=True, html=(visit_cell, depart_fold))
    app.add_transform(WordAnchors)
    for transform in (Folds, CellPrompts, JoinedCells, CitedIn):
        app.add_post_transform(transform)
    app.add_css_file("reading.css")
    app.add_js_file("reading.js", loading_method="defer")
    app.connect("config-inited", settings)
    app.connect("html-page-context", list_exercises, priority=900)  # the theme has made its own
    app.connect("html-page-context", previews)
    app.connect("html-page-context", without_toggles, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
