"""Formulas that are typeset while the site is built, and what makes its pages light: the parts."""

import importlib
import json
import sys

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from myst_parser.docutils_ import Parser

from tests.site.pages import ROOT


@pytest.fixture(scope="module")
def extension():
    """Imports one of the site's extensions, as Sphinx does."""
    sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "book" / "site" / "extensions"))


@pytest.fixture
def typesetter(extension, tmp_path):
    made = extension("tformer_math").Typesetter(tmp_path / "formulas.json")
    yield made
    made.close()


def test_a_formula_becomes_glyphs_mathml_and_its_tex(typesetter):
    made = typesetter.typeset(r"\mathbf{x} < y", display=False)
    assert 'class="mjx-c1D431 TEX-B"' in made
    assert '<mi mathvariant="bold">x</mi></mrow><mo>&lt;</mo>' in made
    assert r'data-tex="\mathbf{x} &lt; y"' in made


@pytest.mark.parametrize(
    ("tex", "why"), [(r"\nosuch x", "nosuch"), (r"\frac{a", "brace"), ("x_i_j", "subscript")]
)
def test_a_formula_that_cannot_be_read_says_why(typesetter, tex, why):
    with pytest.raises(ValueError, match=why):
        typesetter.typeset(tex, display=True)


def test_what_was_made_is_kept_for_the_next_build(extension, typesetter):
    made = typesetter.typeset("x", display=False)
    typesetter.close()
    later = extension("tformer_math").Typesetter(typesetter.file)
    later.call = None  # nothing is left to ask for
    assert later.typeset("x", display=False) == made
    with pytest.raises(TypeError):
        later.typeset("x", display=True)


def test_the_fonts_hold_the_glyphs_of_the_formulas_and_no_others(extension, typesetter):
    from io import BytesIO

    from fontTools.ttLib import TTFont

    maths = extension("tformer_math")
    made = typesetter.typeset(r"\mathbf{x}\{", display=False)
    sheet, fonts = maths.sheet_and_fonts(typesetter.styles, maths.glyphs(made))
    held = {name: set(TTFont(BytesIO(font)).getBestCmap()) for name, font in fonts.items()}
    assert held.pop("Zero")
    assert held["Main-Bold"] == {ord("x")}
    assert ord("{") in held["Main-Regular"]
    assert set(held) == {"Main-Bold", "Main-Regular", "Size4-Regular"}  # a brace may be made of pieces
    assert 'content: "{"' in sheet
    assert "Fraktur" not in sheet


def test_a_formula_is_held_to_what_touches_it(extension):
    paragraph = nodes.paragraph("", "", nodes.Text("see ("), nodes.math(text="x"), nodes.Text("), a"))
    paragraph += [nodes.math(text="y"), nodes.Text(" b")]
    extension("tformer_math").hold_together(None, paragraph, "page")
    held = next(iter(paragraph.findall(nodes.inline)))
    assert [child.astext() for child in paragraph] == ["see ", "(x),", " a", "y", " b"]
    assert held["classes"] == ["tformer-whole"]


@pytest.mark.parametrize("page", ["attention/chapter", "attention/laboratory", "inside/chapter"])
def test_what_is_held_together_reads_as_before(extension, page):
    """Also in a paragraph with the same words twice, which are equal to docutils."""
    cells = json.loads((ROOT / "book" / f"{page}.ipynb").read_text("utf8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    read = {"myst_enable_extensions": ["dollarmath", "colon_fence"], "report_level": 5}
    tree = publish_doctree(text, parser=Parser(), settings_overrides=read)
    paragraphs = list(tree.findall(nodes.paragraph))
    before = [paragraph.astext() for paragraph in paragraphs]
    extension("tformer_math").hold_together(None, tree, page)
    assert any("tformer-whole" in inline["classes"] for inline in tree.findall(nodes.inline))
    assert [paragraph.astext() for paragraph in paragraphs] == before


def test_rules_for_classes_that_no_page_has_are_dropped(extension):
    sheet = (
        "/*! licence */.a,.b .c{x:1}.c{x:2}@media print{.a{x:3}.c{x:4}}"
        ":not(.c)>p{x:5}.a:is(.c,.d){x:6}.bs-made{x:7}@font-face{x:8}p{x:9}"
    )
    kept = extension("tformer_light").used_rules(sheet, {"a"})
    assert kept == (
        "/*! licence */.a{x:1}@media print{.a{x:3}}"
        ":not(.c)>p{x:5}.a:is(.c,.d){x:6}.bs-made{x:7}@font-face{x:8}p{x:9}"
    )


def test_scripts_wait_and_those_without_use_go(extension):
    page = (
        '<html lang="en"><script src="_static/design-tabs.js?v=1"></script>\n'
        '<script src="_static/doctools.js?v=1"></script>\n<script>let a = 1</script>\n'
        '<script type="module" src="_static/own.js"></script>\n'
        "<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>\n"
    )
    assert extension("tformer_light").light_scripts(page) == (
        '<html data-theme="light" lang="en"><script defer="defer" src="_static/doctools.js?v=1"></script>\n'
        '<script>let a = 1</script>\n<script type="module" src="_static/own.js"></script>\n'
    )


def test_a_style_sheet_brings_what_it_imports_and_its_addresses_follow(extension, tmp_path):
    (tmp_path / "_static" / "styles").mkdir(parents=True)
    (tmp_path / "_static" / "basic.css").write_text("a{b:url(file.png)}/* gone */")
    (tmp_path / "_static" / "styles" / "theme.css").write_text(
        '@import url("../basic.css");c{d:url("../e.svg")}f{g:url("data:a)b")}'
    )
    assert extension("tformer_light").read_sheet(tmp_path, "_static/styles/theme.css") == (
        'a{b:url(file.png)}\nc{d:url(e.svg)}f{g:url("data:a)b")}\n'
    )
