"""The faces of the site: Source Serif for what is read, Source Sans for what is beside it, Source Code.

They come from packages. Of each face the style sheet gets the letters that the pages show, as data of its
own: a page never waits for a second file, nothing moves when a face arrives, and it works from `file://`.
Letters that one page alone shows are left to the reader's own fonts.
"""

import base64
import html
import io
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont
from sphinx.application import Sphinx

SHEET = "fonts.css"
MOST = 60_000  # bytes of all faces
FEATURES = ["ccmp", "kern", "liga", "lnum", "tnum"]
NO_TEXT = re.compile(r"<(script|style|mjx-container|svg)\b.*?</\1>|<[^>]*>", re.DOTALL)
PLAIN = {chr(code) for code in range(32, 127)}


@dataclass(frozen=True)
class Face:
    """A face of a package."""

    family: str
    package: str
    file: str
    weight: int = 400
    style: str = "normal"
    few: bool = False  # for titles and labels: plain letters and what many pages show

    def path(self) -> Path:
        """The font's file."""
        return Path(find_spec(self.package).origin).parent / "files" / self.file


FACES = [
    Face("Source Serif", "font_source_serif_pro", "SourceSerifPro-Regular.ttf"),
    Face("Source Serif", "font_source_serif_pro", "SourceSerifPro-It.ttf", style="italic"),
    Face("Source Serif", "font_source_serif_pro", "SourceSerifPro-Semibold.ttf", 600),
    Face("Source Sans", "font_source_sans_pro", "SourceSansPro-Regular.ttf"),
    Face("Source Sans", "font_source_sans_pro", "SourceSansPro-Semibold.ttf", 600, few=True),
    Face("Source Code", "fontpkg_source_code_pro", "SourceCodePro[wght].ttf"),
]


def letters(pages: Iterable[str]) -> Counter[str]:
    """Of each letter in the text of HTML pages, on how many it stands."""
    found: Counter[str] = Counter()
    for page in pages:
        found.update(set(html.unescape(NO_TEXT.sub(" ", page))))
    return found


def small(face: Face, shown: Iterable[str]) -> bytes:
    """The face with these letters alone, as woff2."""
    font = TTFont(face.path(), recalcTimestamp=False)
    if "fvar" in font:
        font = instantiateVariableFont(font, {"wght": face.weight})
    options = subset.Options(layout_features=FEATURES, hinting=False, name_IDs=[], notdef_outline=True)
    maker = subset.Subsetter(options)
    maker.populate(unicodes=sorted(map(ord, shown)))
    maker.subset(font)
    font.flavor = "woff2"
    made = io.BytesIO()
    font.save(made)
    return made.getvalue()


def sheet(pages: Iterable[str]) -> str:
    """The rules for all faces.

    Raises:
        ValueError: if they weigh more than a page may load for them.
    """
    found = letters(pages)
    several = PLAIN | {letter for letter, count in found.items() if count > 1}
    many = PLAIN | {letter for letter, count in found.items() if count > 9}
    rules, weight = [], 0
    for face in FACES:
        data = small(face, many if face.few else several)
        weight += len(data)
        rules.append(
            f'@font-face{{font-family:"{face.family}";font-weight:{face.weight};font-style:{face.style};'
            f'src:url("data:font/woff2;base64,{base64.b64encode(data).decode()}") format("woff2")}}'
        )
    if weight > MOST:
        raise ValueError(f"the faces weigh {weight} bytes together; {MOST} is the most")
    return "\n".join(rules) + "\n"


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the style sheet when the pages are there."""
    if error is None and app.builder.format == "html":
        site = Path(app.outdir)
        pages = [
            path.read_text("utf8")
            for path in sorted(site.rglob("*.html"))
            if not path.relative_to(site).parts[0].startswith("_")
        ]
        (site / "_static" / SHEET).write_text(sheet(pages), "utf8")


def setup(app: Sphinx) -> dict:
    """Connects the handler above."""
    app.add_css_file(SHEET)
    for name in ("face.css", "first.css"):
        app.add_css_file(name, priority=900)  # after the theme's and the extensions'
    app.connect("build-finished", write, priority=700)  # before tformer_light puts the sheets together
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
