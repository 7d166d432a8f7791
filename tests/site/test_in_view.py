"""No cell of a test in view: a page that would show one does not build."""

import io

import nbformat
import pytest
from notebook_claims import FORM, TITLE
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tests.site.pages import ROOT, notebook_pages

EXTENSIONS = ROOT / "book" / "site" / "extensions"


@pytest.fixture(scope="module")
def in_view():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXTENSIONS))
        import tformer_in_view

        yield tformer_in_view


@pytest.fixture
def built(tmp_path, in_view):
    """Builds a page of one cell; returns the warnings, with any of which the site's build fails."""

    def build(source, *, outputs=(), **metadata):
        cell = nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata=metadata)
        title = nbformat.v4.new_markdown_cell("# Page")
        language = {"language_info": {"name": "python", "pygments_lexer": "python"}}
        notebook = nbformat.v4.new_notebook(cells=[title, cell], metadata=language)
        (tmp_path / "index.ipynb").write_text(nbformat.writes(notebook), "utf8")
        (tmp_path / "conf.py").write_text(
            "extensions = ['myst_nb', 'tformer_claims', 'tformer_in_view']\n"
            "nb_execution_mode = 'off'\nhtml_theme = 'basic'\n"
        )
        said = io.StringIO()
        folders = (tmp_path, tmp_path, tmp_path / "out", tmp_path / "trees")
        with patch_docutils(tmp_path), docutils_namespace():
            Sphinx(*folders, "html", status=None, warning=said, freshenv=True).build()
        # What another build in this process has registered is told again: not of the page.
        return "".join(line for line in said.getvalue().splitlines(True) if "already registered" not in line)

    return build


PRINTED = nbformat.v4.new_output("stream", name="stdout", text="7\n")


@pytest.mark.parametrize(
    ("source", "outputs", "why"),
    [
        ("assert 1 + 1 == 2", [], "only checks"),
        ("import torch\n\ntorch.testing.assert_close(1, 1)", [], "only checks"),
        ('claim("a.b", 1, (0, 2), "one")', [], "only checks"),
        ('check("a.f", f)', [], "only checks"),
        (f"{TITLE}\nprint(7)", [PRINTED], "is titled 'The numbers behind this'"),
        ("# @title Solution\nx = 7", [], "is titled 'Solution'"),
    ],
    ids=["asserts", "comparison", "claim", "check", "title of claims", "title of a solution"],
)
def test_a_page_with_a_test_in_view_does_not_build(built, source, outputs, why):
    assert f"code in view that {why}" in built(source, outputs=outputs)


@pytest.mark.parametrize(
    ("source", "metadata"),
    [
        ("x = 1 + 1\nassert x == 2", {}),
        ("assert 1 + 1 == 2", {"tags": ["hide-input"]}),
        ("assert 1 + 1 == 2", {"tags": ["remove-cell"]}),
        (f"{TITLE}\nassert 1 + 1 == 2", FORM),
    ],
    ids=["computes", "closed", "left out", "among the claims"],
)
def test_what_is_no_test_or_is_folded_builds(built, source, metadata):
    assert built(source, **metadata) == ""


def test_a_cell_that_shows_a_source_shows_it_alone(built, tmp_path):
    listing = nbformat.v4.new_output(
        "execute_result", data={"text/plain": "def f(): ..."}, execution_count=None
    )
    assert built("from library import f\n\nshow_source(f)", outputs=[listing]) == ""
    page = (tmp_path / "out" / "index.html").read_text("utf8")
    assert "show_source" not in page
    assert "def f():" in page
    said = built("show_source(f)")  # it has not run: there is nothing to show
    assert "code in view that only calls show_source" in said


@pytest.mark.parametrize("path", notebook_pages())
def test_no_page_shows_the_call_that_shows_a_source(site, path):
    assert "show_source(" not in (site / path).read_text("utf8")
