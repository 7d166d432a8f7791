"""The book's Sphinx extension: chapter numbers, addresses, a site that stands alone."""

import codecs
import contextlib
import io
import logging
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from chapters import by_docname

FOLD = "<details><summary>Solution</summary>"


def free_codecs() -> None:
    """Takes back the names of codecs that `future_typing` claims: every unknown one.

    It comes with the package that carries Shakespeare's plays. The site does not need
    it; where it is installed it is registered whenever this Python starts. The
    bibliography's codec, "ulatex", is registered after it, and would never be asked. A
    look-up is remembered: each trial takes a new name.
    """
    try:
        from future_typing.codec import search_function
    except ImportError:
        return
    for trial in range(100):
        try:
            codecs.lookup(f"no-such-codec-{trial}")
        except LookupError:
            return
        codecs.unregister(search_function)
    raise ExtensionError("a package claims every codec: no bibliography can be read")


def load_opengraph(app: Sphinx) -> None:
    """Loads the extension that describes pages to social networks, without its words.

    It says on every start that it cannot draw cards without matplotlib, which the site
    does not install: it has a card (`ogp_image`).
    """
    with contextlib.redirect_stdout(io.StringIO()):
        app.setup_extension("sphinxext.opengraph")


def set_addresses(app: Sphinx, config) -> None:
    """Derives the site's address from the repository's, which stands in _config.yml."""
    repository = config.html_theme_options["repository_url"]
    owner, name = repository.removesuffix("/").split("/")[-2:]
    site = f"https://{owner}.github.io/{name}/"
    config.html_baseurl = config.html_baseurl or site
    config.ogp_site_url = config.ogp_site_url or site


def chapter_number(docname: str) -> str | None:
    """The number of the chapter to which a page belongs; other pages have none."""
    chapter = by_docname().get(docname)
    return chapter.number if chapter else None


def number_chapters(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Gives a chapter its number, which counts from 0, and not Sphinx's.

    Another page has none, also where it stands between chapters. Sections of a chapter's laboratory are
    2.L1, 2.L2 and so on, over all of its pages; the contents show no number before these pages and
    the exercises.

    Runs after the collectors of Sphinx and sphinx-external-toc, and numbers figures,
    equations and exercises again, since their numbers begin with the chapter's.
    """
    changed = []
    for docname, sections in env.toc_secnumbers.items():
        number = chapter_number(docname)
        before = dict(sections)
        if docname in companions():
            sections |= laboratory_numbers(env, docname)
            for title in (env.titles[docname], *env.tocs[docname].findall(nodes.reference)):
                anchor = title.get("anchorname", "")
                title["secnumber"] = sections.get(anchor) if anchor else None
                if not title["secnumber"]:
                    del title["secnumber"]
            if sections != before:
                changed.append(docname)
            continue
        if number is None:
            sections.clear()
            for title in (
                env.titles[docname],
                *env.tocs[docname].findall(nodes.reference),
            ):
                title.attributes.pop("secnumber", None)
        for anchor, section in sections.items():
            if section:
                sections[anchor] = (number, *section[1:])
        for title in (env.titles[docname], *env.tocs[docname].findall(nodes.reference)):
            if title.get("secnumber"):
                title["secnumber"] = (number, *title["secnumber"][1:])
        if sections != before:
            changed.append(docname)
    return changed + TocTreeCollector().assign_figure_numbers(env)


def companions() -> set[str]:
    """The pages that belong to chapters and do not open them: laboratories, exercises."""
    return {name for name, chapter in by_docname().items() if name != chapter.docname}


def laboratory_numbers(env: BuildEnvironment, docname: str) -> dict[str, tuple]:
    """The numbers of a laboratory's sections, by anchor; of exercises, of the page alone."""
    chapter = by_docname()[docname]
    stem = docname.rsplit("/", 1)[1]
    found: dict[str, tuple] = {"": (chapter.number,)}
    if stem not in chapter.laboratories:
        return found
    before = chapter.laboratories[: chapter.laboratories.index(stem)]
    place = sum(len(entries(env.tocs[f"book/{chapter.name}/{name}"])) for name in before)
    for entry in entries(env.tocs[docname]):
        place += 1
        number: tuple = (chapter.number, f"L{place}")
        links = [link for link in entry.findall(nodes.reference) if link["refuri"] == docname]
        found |= {link["anchorname"]: (*number, *([i] if i else [])) for i, link in enumerate(links)}
    return found


def entries(contents: nodes.bullet_list) -> list[nodes.list_item]:
    """The sections right below a page's title, in its contents."""
    titles = [item for item in contents.children if isinstance(item, nodes.list_item)]
    lists = [part for title in titles for part in title.children if isinstance(part, nodes.bullet_list)]
    return [item for each in lists for item in each.children if isinstance(item, nodes.list_item)]


class Contents:
    """The book's contents at the side of pages that are not in them: modules, indices.

    Nothing there is marked as current: all pages as deep in the site have the same
    contents, and Sphinx takes half a second to make them. A book has 250 such pages.
    """

    def __init__(self) -> None:
        self.known: dict[tuple, str] = {}

    def __call__(self, app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
        make = context.get("toctree")
        if make is None or pagename in app.env.found_docs:
            return

        def toctree(**options) -> str:
            key = (pagename.count("/"), *sorted(options.items()))
            if key not in self.known:
                self.known[key] = make(**options)
            return self.known[key]

        context["toctree"] = toctree


def plain_bars(app: Sphinx, what: str, name: str, obj, options, lines: list[str]) -> None:
    """Lets docstrings write |n - s|, to reStructuredText a substitution."""
    lines[:] = [line.replace("|", r"\|") if "`" not in line else line for line in lines]


def parsable(
    app: Sphinx, what: str, name: str, obj, options, signature: str, returns: str
) -> tuple[str, str] | None:
    """Turns what Sphinx cannot parse in a dataclass's signature into an expression.

    Where one default is no expression, as `<factory>`, Sphinx shows the whole signature
    as it stands, with the marks (~) that should have shortened its names.
    """
    if not signature or "<" not in signature:
        return None
    signature = re.sub(r"<function (\w+)[^>]*>", r"\1", signature)
    return signature.replace("<factory>", "..."), returns


def describe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Describes a page to search engines and social cards by its first paragraph.

    TeX is left out. Metadata of the page, `og:description`, goes before it.
    """
    meta = dict(context.get("meta") or {})
    if doctree is not None and "og:description" not in meta:
        paragraph = next(iter(doctree.findall(nodes.paragraph)), None)
        words = "" if paragraph is None else paragraph.astext()
        words = words.removeprefix("The question. ")
        words = " ".join(re.sub(r"\\[a-zA-Z]+|[\\${}^_]", " ", words).split())
        if len(words) < 20:
            words = f"{context['title']}: a page of {app.config.html_title}. {words}"
        if len(words) > 200:
            words = words[:197].rsplit(" ", 1)[0] + " ..."
        meta["og:description"] = words
        context["meta"] = meta


def tidy_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Leaves out what no page uses: thebe (it calls other hosts), a script of icons."""
    unused = re.compile(r"thebe", re.IGNORECASE)
    context["script_files"] = [
        script
        for script in context["script_files"]
        if not unused.search(f"{script.filename or ''} {script.attributes.get('body') or ''}")
    ]
    context["css_files"] = [sheet for sheet in context["css_files"] if not unused.search(str(sheet.filename))]
    # A citation is an item of its list; the role that docutils gives it is deprecated.
    # The empty corner of a table heads nothing.
    body = (context.get("body") or "").replace('role="doc-biblioentry"', 'role="listitem"')
    context["body"] = re.sub(r"<th[^>]*>\s*(<p>\s*</p>)?\s*</th>", "<td></td>", body)
    context["without_icon_script"] = lambda html: re.sub(
        r"<script[^>]*fontawesome\.js[^>]*></script>", "", html
    )


def name_toggles(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Says what the arrows in the sidebar open: the theme gives them no name."""
    contents = context.get("generate_toctree_html")
    if contents is None:
        return
    bare, named = "<summary><span", '<summary aria-label="Its other pages"><span'

    def with_names(*args, **kwargs) -> str:
        return str(contents(*args, **kwargs)).replace(bare, named)

    context["generate_toctree_html"] = with_names


def unfold_solutions(app: Sphinx, doctree: nodes.document) -> None:
    """Drops the folds that close solutions in Jupyter: here their box is one."""
    inside = False
    for node in list(doctree.findall(nodes.raw)):
        text = node.astext().strip()
        if text == FOLD or (inside and text == "</details>"):
            inside = text == FOLD
            node.parent.remove(node)


def setup(app: Sphinx) -> dict:
    """Connects the handlers above."""
    free_codecs()
    load_opengraph(app)
    # A package of colours lets all that is logged through: not each table of a font.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    app.connect("config-inited", set_addresses, priority=200)
    app.connect("doctree-read", unfold_solutions)
    app.connect("env-get-updated", number_chapters, priority=900)
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("autodoc-process-signature", parsable)
    app.connect("html-page-context", Contents(), priority=100)
    app.connect("html-page-context", describe, priority=100)
    app.connect("html-page-context", tidy_page, priority=900)
    app.connect("html-page-context", name_toggles, priority=940)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
