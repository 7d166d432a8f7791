"""Readers of catalogues, on small files made here and against Python's own gettext."""

import gettext
import io
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tformer_book.kit.data.text import package_folder
from tformer_book.translation.data.catalogues import MAGIC, read_catalogue, read_json, read_mo, read_po

PO = r"""
msgid ""
msgstr "Language: fr\n"

#: file.py:3
msgid "Open"
msgstr "Ouvrir"

#, fuzzy, python-format
msgid "Close"
msgstr "Clore"

msgid "A \"long\" "
"message\n"
msgstr ""
"Un \"long\" "
"message\n"

#. Default: "You have ${count} \"new\"
#. messages."
msgid "label_count"
msgstr "Vous avez ${count} messages."

msgctxt "menu"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d fichier"
msgstr[1] "%d fichiers"

#~ msgid "Old"
#~ msgstr "Ancien"
"""


def mo(messages, order="<"):
    """A .mo file: offsets of the messages, offsets of the translations, texts."""
    texts = [text.encode() + b"\0" for pair in zip(*messages.items(), strict=True) for text in pair]
    starts, place = [], 28 + 8 * len(texts)
    for text in texts:
        starts.append((len(text) - 1, place))
        place += len(text)
    n = len(messages)
    header = struct.pack(f"{order}7I", MAGIC, 0, n, 28, 28 + 8 * n, 0, 0)
    return header + b"".join(struct.pack(f"{order}2I", *start) for start in starts) + b"".join(texts)


def test_po():
    assert list(read_po(PO)) == [
        ("Open", "Ouvrir"),
        ('A "long" message\n', 'Un "long" message\n'),
        ('You have ${count} "new" messages.', "Vous avez ${count} messages."),
        ("%d file", "%d fichier"),
        ("%d files", "%d fichiers"),
    ]


@pytest.mark.parametrize("order", ["<", ">"])
def test_mo(order):
    messages = {
        "": "Content-Type: text/plain; charset=UTF-8\n",
        "menu\x04Öffnen": "Ouvrir",
        "day\0days": "jour\0jours",
    }
    content = mo(messages, order)
    assert gettext.GNUTranslations(io.BytesIO(content)).ngettext("day", "days", 2) == "jours"
    assert list(read_mo(content)) == [("Öffnen", "Ouvrir"), ("day", "jour"), ("days", "jours")]


@given(st.dictionaries(st.text("abcé ", min_size=1), st.text("xyzü ", min_size=1)))
def test_mo_gives_back_what_was_written(messages):
    assert list(read_mo(mo(messages))) == list(messages.items())


@pytest.mark.parametrize("language", ["fr", "de"])
def test_trac_against_gettext(language):
    path = package_folder("trac", "1.6") / "locale" / language / "LC_MESSAGES" / "messages.mo"
    with path.open("rb") as file:
        translations = gettext.GNUTranslations(file)
    pairs = read_catalogue(path)
    assert len(pairs) > 1_000
    once = dict(reversed(pairs))
    same = sum(translations.gettext(english) == other for english, other in once.items())
    assert same > 0.95 * len(
        once
    )  # the rest are plurals, which it gives by number, and messages in a context


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", struct.pack("<2I", MAGIC, 0)])
def test_what_is_no_mo(content):
    with pytest.raises(ValueError, match=r"begins with 0x950412de and four numbers, got"):
        list(read_mo(content))


def test_json():
    text = json.dumps(
        {
            "": {"domain": "x", "plural_forms": "nplurals=2;"},
            "Open": ["Ouvrir"],
            "settings\x04Dark": ["Sombre"],
            "%1 day\x00%1 days": ["%1 jour", "%1 jours"],
            "Nothing": [],
        }
    )
    assert list(read_json(text)) == [
        ("Open", "Ouvrir"),
        ("Dark", "Sombre"),
        ("%1 day", "%1 jour"),
        ("%1 days", "%1 jours"),
    ]


def test_by_ending(tmp_path):
    (tmp_path / "a.po").write_text(PO, encoding="utf-8")
    (tmp_path / "a.mo").write_bytes(mo({"Open": "Ouvrir"}))
    (tmp_path / "a.json").write_text('{"Open": ["Ouvrir"]}', encoding="utf-8")
    for name in ("a.po", "a.mo", "a.json"):
        assert read_catalogue(tmp_path / name)[0] == ("Open", "Ouvrir")
    with pytest.raises(ValueError, match=r"a catalogue ends in \.po, \.mo, \.json, got a\.txt"):
        read_catalogue(tmp_path / "a.txt")
