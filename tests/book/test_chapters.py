"""What chapters are: folders that stand alone, described by themselves, numbered by the contents."""

import re
from importlib.util import find_spec
from pathlib import Path

import grimp
import pytest
import yaml
from chapters import FILE, ROOT, by_docname, chapters, described, kind, notebooks

NAMES = [chapter.name for chapter in chapters()]


def small_book(root, names=("one", "two"), listed=("one", "two"), beside=(), sections=None, **told):
    """A book of which only the contents and the chapters' descriptions are there.

    Args:
        beside: notebooks that lie beside each chapter's own.
        sections: what the contents name below each chapter; what lies beside it if None.
    """
    entries = ""
    for name in listed:
        entries += f"      - file: book/{name}/chapter\n"
        below = beside if sections is None else sections
        entries += "        sections:\n" if below else ""
        entries += "".join(f"          - file: book/{name}/{stem}\n" for stem in below)
    root.mkdir(exist_ok=True)
    (root / "_toc.yml").write_text(f"parts:\n  - caption: P\n    numbered: true\n    chapters:\n{entries}")
    for name in names:
        (root / "book" / name).mkdir(parents=True, exist_ok=True)
        (root / "book" / name / FILE).write_text(yaml.safe_dump({"sentence": "S", "minutes": 5, **told}))
        for stem in ("chapter", *beside):
            (root / "book" / name / f"{stem}.ipynb").touch()
    return root


def test_numbers_are_places_in_the_contents(tmp_path):
    before = {c.name: c.number for c in chapters(small_book(tmp_path / "a"))}
    after = {c.name: c.number for c in chapters(small_book(tmp_path / "b", "xyz", "xzy"))}
    assert before == {"one": "0", "two": "1"}
    assert after == {"x": "0", "z": "1", "y": "2"}


def test_a_chapter_has_notebooks_of_three_kinds(tmp_path):
    root = small_book(tmp_path, beside=("laboratory", "exercises"))
    one, two = chapters(root)
    assert (one.laboratories, one.exercises) == (("laboratory",), True)
    names = ["chapter.ipynb", "laboratory.ipynb", "exercises.ipynb"]
    assert [path.name for path in one.notebooks] == names
    assert notebooks(root) == [*one.notebooks, *two.notebooks]
    assert [kind(path) for path in one.notebooks] == ["chapter", "laboratory", "exercises"]
    assert by_docname(root)["book/two/laboratory"] == by_docname(root)["book/two/exercises"] == two
    assert list(by_docname(root)) == [f"book/{c}/{Path(n).stem}" for c in ("one", "two") for n in names]


def test_a_chapter_may_have_several_laboratories_or_none(tmp_path):
    (alone,) = chapters(small_book(tmp_path / "a", ["x"], ["x"]))
    assert (alone.laboratories, alone.exercises, len(alone.notebooks)) == ((), False, 1)
    told = {"beside": ("sinks", "copying", "exercises"), "laboratories": ["sinks", "copying"]}
    (several,) = chapters(small_book(tmp_path / "b", ["x"], ["x"], **told))
    assert several.laboratories == ("sinks", "copying")
    assert [kind(path) for path in several.notebooks] == ["chapter", *2 * ["laboratory"], "exercises"]


@pytest.mark.parametrize(
    ("beside", "sections", "told", "message"),
    [
        (("laboratory",), (), {}, "does not name under book/x/chapter, as sections: book/x/laboratory"),
        (("exercises",), (), {}, "does not name under book/x/chapter, as sections: book/x/exercises"),
        ((), ("exercises",), {}, "sections of book/x/chapter that are not there: book/x/exercises"),
        (
            ("laboratory", "exercises"),
            ("exercises", "laboratory"),
            {},
            "should come as book/x/laboratory, book/x/exercises",
        ),
        (("probes",), None, {}, "does not name among its laboratories: probes.ipynb"),
        (
            ("laboratory",),
            None,
            {"laboratories": []},
            "does not name among its laboratories: laboratory.ipynb",
        ),
        ((), None, {"laboratories": ["probes"]}, "laboratories that are not there: probes.ipynb"),
        ((), None, {"laboratories": "probes"}, "laboratories is no list"),
    ],
)
def test_what_lies_beside_a_chapter_stands_in_the_contents(tmp_path, beside, sections, told, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        chapters(small_book(tmp_path, ["x"], ["x"], beside, sections, **told))


def test_contents_and_folders_agree(tmp_path):
    with pytest.raises(ValueError, match="does not name the chapters two"):
        chapters(small_book(tmp_path / "a", listed=("one",)))
    with pytest.raises(ValueError, match="has the chapter book/two/chapter, and there is no"):
        chapters(small_book(tmp_path / "b", names=("one",)))


def test_a_description_is_complete_and_read(tmp_path):
    (tmp_path / FILE).write_text("minutes: soon\nlength: 3\n")
    wrong = "sentence is no str; minutes is no int; length is read by nobody"
    with pytest.raises(ValueError, match=re.escape(wrong)):
        described(tmp_path / FILE)


@pytest.fixture(scope="module")
def imports():
    return grimp.build_graph("tformer_book", cache_dir=None)


def test_what_is_imported_is_there():
    """Otherwise only a run would find an experiment that takes one beside it for a module of its own."""
    graph = grimp.build_graph("tformer_book", include_external_packages=True, cache_dir=None)
    others = {module for module in graph.modules if not module.startswith("tformer_book")}
    assert len(others) > 50
    others.discard("accelerate")  # who runs the experiment that wants it installs it
    assert [name for name in sorted(others) if find_spec(name) is None] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_chapter_stands_alone(imports, name):
    """It imports the kit and the library; only experiments, which are scripts, look at another's."""
    strange = [
        (module, other)
        for module in imports.modules
        if module.startswith(f"tformer_book.{name}.") and ".experiments" not in module
        for other in imports.find_modules_directly_imported_by(module)
        if other.split(".")[1] not in ("kit", name)
    ]
    assert strange == []


def test_the_kit_knows_no_chapter(imports):
    strange = [
        (module, other)
        for module in imports.modules
        if module.startswith("tformer_book.kit.") and ".experiments" not in module
        for other in imports.find_modules_directly_imported_by(module)
        if other.split(".")[1] in NAMES
    ]
    assert strange == []


def test_no_list_names_the_chapters():
    """Only the contents do; what needs to know them asks `tools/chapters.py`."""
    several = re.compile(
        "|".join(rf"\b{name}\b" for name in NAMES if name not in ("inside", "scale", "attention"))
    )
    for path in [*(ROOT / "tools").glob("*.py"), *(ROOT / "book" / "site" / "extensions").glob("*.py")]:
        assert len(set(several.findall(path.read_text("utf8")))) < 5, path
