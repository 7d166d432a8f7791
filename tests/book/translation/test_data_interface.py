"""Interface strings: real, short, with their placeholders, and named when their package is missing."""

import re
import subprocess
import sys

import pytest

from tformer_book.translation.data import interface as module
from tformer_book.translation.data.interface import interface_pairs, messages, usable


@pytest.mark.parametrize(
    ("language", "least", "pair"),
    [
        ("fr", 6_500, ("Show Line Numbers", "Afficher les numéros de ligne")),
        ("de", 4_500, ("Search on File Names", "Suche nach Dateinamen")),
    ],
)
def test_pairs(language, least, pair):
    pairs = interface_pairs(language)
    assert len(pairs) > least
    assert pair in pairs
    assert len({english for english, _ in pairs}) == len(pairs)
    for english, other in pairs:
        assert english.casefold() != other.casefold()
        for text in (english, other):
            assert len(text) <= 150
            assert len(text.split()) <= 20
            assert text == " ".join(text.split())
            assert not re.search(r"</?\w+>|[\x00-\x1f\xa0\u202f]|&amp;", text)
        assert sorted(re.findall(r"\$\{\w+\}|%\(\w+\)s", english)) == sorted(
            re.findall(r"\$\{\w+\}|%\(\w+\)s", other)
        )


def test_every_program_gives_some():
    pairs = set(interface_pairs("de"))
    for pair in [
        ("Print…", "Drucken…"),  # JupyterLab
        ("Delete Milestone %(name)s", "Lösche Meilenstein %(name)s"),  # Trac
        ("Add Calendar Portlet", "Kalender-Portlet hinzufügen"),  # Plone
    ]:
        assert pair in pairs


@pytest.mark.parametrize(
    ("english", "other", "expected"),
    [
        ("Open", "Ouvrir", True),
        ("Open %(name)s", "Ouvrir %(name)s", True),
        ("%(a)s of %(b)s", "%(b)s : %(a)s", True),
        ("Open %(name)s", "Ouvrir %(nom)s", False),
        ("Open ${name}", "Ouvrir", False),
        ("<b>Open</b>", "<b>Ouvrir</b>", False),
        ("Width < 3 or > 5", "Largeur < 3 ou > 5", True),
        ("label_open_file", "Ouvrir", False),
        ("Open", "", False),
        ("word " * 21, "mot", False),
        ("a" * 151, "b", False),
    ],
)
def test_usable(english, other, expected):
    assert usable(english, other) is expected


def test_entities_are_characters():
    assert not any("&quot;" in english + other for english, other in messages("fr"))


def test_no_code_of_the_programs_runs_and_the_order_is_fixed():
    script = (
        "import sys; from tformer_book.translation.data.interface import interface_pairs;"
        "pairs = interface_pairs('fr');"
        "print(hash('a') == 0, pairs[7], pairs[-7]);"
        "print([m for m in sys.modules if m.split('.')[0] in ('trac', 'jupyterlab', 'plone.app.locales')])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    first, imported = run.stdout.decode().splitlines()
    pairs = interface_pairs("fr")
    assert first == f"False {pairs[7]} {pairs[-7]}"
    assert imported == "[]"


def test_a_caller_cannot_change_them():
    first = interface_pairs("fr")[0]
    interface_pairs("fr").clear()
    assert interface_pairs("fr")[0] == first


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    module.usable_messages.cache_clear()
    monkeypatch.setattr(module, "SOURCES", (("not.there.at_all", "7.1", "*.po"),))
    with pytest.raises(ImportError, match=r"pip install not\.there\.at_all==7\.1"):
        interface_pairs("fr")
    monkeypatch.setattr(module, "SOURCES", (("pack_{long}", "7.1", "*.po"),))
    with pytest.raises(ImportError, match=r"pip install pack_fr_FR==7\.1"):
        interface_pairs("fr")
    monkeypatch.setattr(module, "package_folder", lambda package, version: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"pack_de_DE has not the catalogues \*\.po"):
        interface_pairs("de")
    with pytest.raises(ValueError, match="got 'en'"):
        interface_pairs("en")
