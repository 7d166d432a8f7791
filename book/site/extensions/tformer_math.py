"""Typesets the formulas while the site is built: the pages need no script for them.

MathJax runs here, in V8 (`mini-racer`). The pages get what it would have made in the
browser, and MathML beside it, which screen readers read; its style sheet and fonts
keep the glyphs that occur on the site. A formula that MathJax cannot read is a warning
at its file and line, and warnings fail the build.
"""

import functools
import hashlib
import html
import io
import json
import re
from collections import defaultdict
from pathlib import Path

import mathjax
from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from py_mini_racer import MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

PACKAGE = Path(mathjax.__file__).parent / "static" / "mathjax"
FONTS = PACKAGE / "es5" / "output" / "chtml" / "fonts" / "woff-v2"
PARTS = (
    "core.js",
    "loader.js",
    "adaptors/liteDOM.js",
    "input/tex-full.js",
    "output/chtml.js",
    "output/chtml/fonts/tex.js",
    "a11y/assistive-mml.js",
)
# Without `noerrors` and `noundefined`: what cannot be read must be heard of.
SETUP = r"""
const { liteAdaptor } = MathJax._.adaptors.liteAdaptor;
const adaptor = liteAdaptor();
MathJax._.a11y["assistive-mml"].AssistiveMmlHandler(
  MathJax._.handlers.html_ts.RegisterHTMLHandler(adaptor));
const input = new MathJax._.input.tex_ts.TeX({
  packages:
    ["base", "ams", "boldsymbol", "cases", "mathtools", "newcommand", "textmacros"],
  formatError: (jax, error) => { throw error; },
});
const font = new MathJax._.output.chtml.fonts.tex_ts.TeXFont({ fontURL: "." });
const output = new MathJax._.output.chtml_ts.CHTML({ font, adaptiveCSS: false });
const page = MathJax._.mathjax.mathjax.document(
  "", { InputJax: input, OutputJax: output });
function typeset(tex, display) {
  try {
    return JSON.stringify({ html: adaptor.outerHTML(page.convert(tex, { display })) });
  } catch (error) {
    return JSON.stringify({ error: error.message });
  }
}
function styles() {
  const rule = ([name, rules]) =>
    `\n${name} {\n${Object.entries(rules).map(r => r.join(": ") + ";").join("\n")}\n}`;
  return adaptor.textContent(output.styleSheet(page))
    + Object.entries(page.constructor.assistiveStyles).map(rule).join("");
}
"""
SHEET = "mathjax/math.css"  # in _static
VARIANT = re.compile(r"\bTEX-(\w+)")
GLYPH = re.compile(r"mjx-c[0-9A-F]{2,}(?:[. ]TEX-\w+)?")  # as HTML and as CSS write its classes
OPENS = re.compile(r"[(\[\u2018\u201c]+$")
CLOSES = re.compile(r"^[.,;:!?)\]\u2019\u201d-]+")
logger = logging.getLogger(__name__)


class Typesetter:
    """MathJax in V8, started when needed; what it made is kept for the next build."""

    def __init__(self, file: Path):
        self.file = file
        self.engine: MiniRacer | None = None
        made_by = hashlib.sha256(SETUP.encode())
        for part in PARTS:
            made_by.update((PACKAGE / "es5" / part).read_bytes())
        self.made_by = made_by.hexdigest()
        kept = json.loads(file.read_text("utf8")) if file.exists() else {}
        self.made: dict[str, str] = kept["made"] if kept.get("made_by") == self.made_by else {}

    def call(self, code: str) -> str:
        """What JavaScript says to `code`, a string."""
        if self.engine is None:
            self.engine = MiniRacer()
            self.engine.eval("var MathJax = {loader: {load: []}, startup: {typeset: false}};")
            for part in PARTS:
                self.engine.eval((PACKAGE / "es5" / part).read_text("utf8"))
            self.engine.eval(SETUP)
        return str(self.engine.eval(code))

    def typeset(self, tex: str, *, display: bool) -> str:
        """The formula as HTML.

        Raises:
            ValueError: MathJax cannot read it; says why.
        """
        key = f"{'display' if display else 'inline'} {tex}"
        if key not in self.made:
            answer = json.loads(self.call(f"typeset({json.dumps(tex)}, {json.dumps(display)})"))
            if "error" in answer:
                raise ValueError(answer["error"])
            self.made[key] = slim(answer["html"], tex)
        return self.made[key]

    @functools.cached_property
    def styles(self) -> str:
        """MathJax's style sheet, with every glyph that it knows."""
        return self.call("styles()")

    def close(self) -> None:
        """Keeps what was made, and ends V8, whose thread would keep Python alive."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"made_by": self.made_by, "made": self.made}), "utf8")
        if self.engine is not None:
            self.engine.close()
            self.engine = None


def slim(made: str, tex: str) -> str:
    """MathJax's HTML without what no browser needs, and the TeX for math.js."""
    made = re.sub(r' (data-mjx-\w+|xmlns|texclass|unselectable)="[^"]*"', "", made)
    made = re.sub(r">\n\s*<", "><", made)
    return made.replace("<mjx-container", f'<mjx-container data-tex="{html.escape(tex.strip())}"', 1)


def typeset(self: HTML5Translator, node: nodes.Element, tex: str, *, display: bool) -> str:
    """The formula of a node; one that cannot be read stays TeX, with a warning."""
    try:
        return self.builder.app.tformer_typesetter.typeset(tex, display=display)
    except ValueError as error:
        logger.warning("a formula cannot be read: %s: %s", error, tex.strip(), location=node)
        return f"<code>{html.escape(tex)}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(typeset(self, node, node.astext(), display=False) + "</span>")
    raise nodes.SkipNode


def visit_displaymath(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on a line of its own, read as sphinx.ext.mathjax reads it."""
    self.body.append(self.starttag(node, "div", "", CLASS="math notranslate nohighlight"))
    tex = node.astext()
    if not node["nowrap"]:
        if node["number"]:
            self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
            self.add_permalink_ref(node, "Link to this equation")
            self.body.append("</span>")
        parts = [
            rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part else part
            for part in tex.split("\n\n")
            if part.strip()
        ]
        tex = r"\\".join(parts)
        if len(parts) > 1:
            tex = rf"\begin{{align}}\begin{{aligned}}{tex}\end{{aligned}}\end{{align}}"
    self.body.append(typeset(self, node, tex, display=True) + "</div>\n")
    raise nodes.SkipNode


def hold_together(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts a formula and the mark or bracket that touches it where no line breaks."""
    for math in list(doctree.findall(nodes.math)):
        parent, at = math.parent, math.parent.index(math)
        left = parent[at - 1] if at else None
        right = parent[at + 1] if at + 1 < len(parent) else None
        opens = OPENS.search(left) if isinstance(left, nodes.Text) else None
        closes = CLOSES.search(right) if isinstance(right, nodes.Text) else None
        if not opens and not closes:
            continue
        whole = nodes.inline(classes=["tformer-whole"])
        # By place: texts that read the same are equal, and `replace` would take the first of them.
        parent[at] = whole
        if opens:
            whole += nodes.Text(opens[0])
            parent[at - 1] = nodes.Text(left[: opens.start()])
        whole += math
        if closes:
            whole += nodes.Text(closes[0])
            parent[at + 1] = nodes.Text(right[closes.end() :])


def style_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Gives a page with formulas their style sheet, and asks at once for its fonts."""
    body = context.get("body") or ""
    if "<mjx-container" not in body:
        return
    app.add_css_file(SHEET, priority=900)
    used = {"MJXZERO", "MJXTEX", *(f"MJXTEX-{name}" for name in VARIANT.findall(body))}
    for family, name in faces(app.tformer_typesetter.styles).items():
        if family in used:
            href = context["pathto"](f"_static/mathjax/{name}.woff2", 1)
            context["metatags"] = (
                context.get("metatags", "")
                + '\n    <link rel="preload" as="font" type="font/woff2" crossorigin'
                + f' href="{href}" />'
            )


def glyphs(text: str) -> set[str]:
    """The glyphs that a page shows or that a selector is about, each with its font."""
    return {name.replace(" ", ".") for name in GLYPH.findall(text)}


def faces(styles: str) -> dict[str, str]:
    """The families of MathJax's style sheet, and the font of each."""
    name = r'font-family: *"?(MJX[\w-]+)"?;\s*src: *url\("[^"]*MathJax_([\w-]+)\.woff'
    return dict(re.findall(name, styles))


def sheet_and_fonts(styles: str, used: set[str]) -> tuple[str, dict[str, bytes]]:
    """The style sheet and the fonts, with the glyphs `used` and no others."""
    rules = []
    drawn: defaultdict[str, set[str]] = defaultdict(set)  # characters by family
    for selector, body in re.findall(r"^(\S[^\n]*) \{\n(.*?)\n\}", styles, flags=re.DOTALL | re.MULTILINE):
        body = "".join(line.strip() for line in body.splitlines()).removesuffix(";")
        if selector.startswith("@font-face") or not glyphs(selector) <= used:
            continue
        rules.append(f"{selector}{{{body}}}")
        content = re.search(r'content: *"((?:\\.|[^"])*)"', body)
        variant = VARIANT.search(selector)
        families = [f"MJXTEX-{variant[1]}" if variant else "MJXTEX"]
        if "mjx-stretchy" in selector:  # its pieces come from the first that has them
            families = ["MJXTEX-S1", "MJXTEX-S4", "MJXTEX", "MJXTEX-A"]
        for family in families if content else ():
            escape = r"\\([0-9A-Fa-f]{1,6}) ?|\\(.)"
            drawn[family] |= set(re.sub(escape, unescaped, content[1]))
    fonts = {}
    for family, name in faces(styles).items():
        font = small_font(FONTS / f"MathJax_{name}.woff", drawn[family])
        if font is not None:
            fonts[name] = font
            source = f'src:url("{name}.woff2") format("woff2")'
            rules.append(f"@font-face{{font-family:{family};{source}}}")
    return "\n".join(rules) + "\n", fonts


def unescaped(match: re.Match) -> str:
    """What an escape in a string of CSS stands for."""
    return chr(int(match[1], 16)) if match[1] else match[2]


def small_font(source: Path, characters: set[str]) -> bytes | None:
    """A font with these characters only, as woff2; None if it has none of them.

    Zero stays whole. It draws nothing: the first choice everywhere, it keeps lines from
    growing with the fonts after it. The bytes are the same whenever it is made.
    """
    font = TTFont(source, recalcTimestamp=False)
    options = subset.Options(notdef_outline=True, layout_features=[], hinting=False)
    options.drop_tables = [*options.drop_tables, "FFTM"]  # when the font was made
    maker = subset.Subsetter(options)
    known = set(font.getBestCmap())
    whole = source.stem.endswith("Zero")
    kept = known if whole else known & set(map(ord, characters))
    if not kept:
        return None
    maker.populate(unicodes=kept)
    maker.subset(font)
    font.flavor = "woff2"
    made = io.BytesIO()
    font.save(made)
    return made.getvalue()


def start(app: Sphinx) -> None:
    """One typesetter for the build."""
    app.tformer_typesetter = Typesetter(Path(app.outdir).parent / "formulas.json")


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Writes the style sheet and fonts for all formulas, and MathJax's licence."""
    typesetter: Typesetter = app.tformer_typesetter
    try:
        if exception is None and app.builder.format == "html":
            target = Path(app.outdir) / "_static" / Path(SHEET).parent
            target.mkdir(parents=True, exist_ok=True)
            pages = (path.read_text("utf8") for path in Path(app.outdir).rglob("*.html"))
            used = set[str]().union(*map(glyphs, pages))
            sheet, fonts = sheet_and_fonts(typesetter.styles, used)
            (target / Path(SHEET).name).write_text(sheet, "utf8")
            for name, content in fonts.items():
                (target / f"{name}.woff2").write_bytes(content)
            (target / "LICENSE").write_bytes((PACKAGE / "LICENSE").read_bytes())
    finally:
        typesetter.close()


def setup(app: Sphinx) -> dict:
    """Takes the place of Sphinx's MathJax."""
    app.add_html_math_renderer("tformer", (visit_math, None), (visit_displaymath, None))
    app.connect(
        "config-inited",
        lambda app, config: setattr(config, "html_math_renderer", "tformer"),
    )
    app.connect("builder-inited", start)
    app.connect("doctree-resolved", hold_together)
    app.add_js_file("math.js", defer="defer")  # tformer_light takes it from pages without formulas
    app.connect("html-page-context", style_page, priority=890)  # before tidy_page
    app.connect("build-finished", finish, priority=700)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
