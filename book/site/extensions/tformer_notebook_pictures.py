"""Drawings as PNG, so that a notebook shows them where nobody has said that it may be trusted.

JupyterLab shows what is in a notebook that it did not run itself without style sheets, scripts and SVG. The
words are set in Inter, which is installed with the site's packages: the pictures are the same everywhere.
"""

import base64
import hashlib
import html
import re
import struct
from functools import cache
from importlib.resources import files
from pathlib import Path

import resvg_py
from fontTools.ttLib import TTFont

FAMILY = "Inter, 'Noto Sans'"
FONT_PACKAGES = ("fontpkg_inter", "fontpkg_noto_sans")  # the second has letters that the first lacks
INK = "#1b1f24"
WIDTH = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)(pt)?"')
ZOOM = 2  # for screens with two pixels to a point


@cache
def fonts() -> list[str]:
    """The upright fonts of the packages."""
    folders = (Path(str(files(package))) / "files" for package in FONT_PACKAGES)
    return [
        str(file) for folder in folders for file in sorted(folder.glob("*.ttf")) if "Italic" not in file.name
    ]


@cache
def letters() -> frozenset[str]:
    """The characters that one of the fonts can draw."""
    return frozenset(chr(code) for file in fonts() for code in TTFont(file, lazy=True).getBestCmap())


def lacking(svg: str) -> list[str]:
    """The characters of a drawing's words that no font has: each would be drawn as a box."""
    words = "".join(re.findall(r"<text\b.*?</text>", svg, re.DOTALL))
    words = html.unescape(re.sub(r"<title>.*?</title>|<[^>]+>", "", words, flags=re.DOTALL))
    return sorted(set(words) - letters() - set("\n\t"))


def png(svg: str, kept: Path | None = None) -> bytes:
    """A drawing on white; what was drawn before lies in the folder `kept`.

    Raises:
        ValueError: if its words have a character that no font of `FONT_PACKAGES` can draw.
    """
    name = hashlib.sha256(f"{resvg_py.__version__} {fonts()} {ZOOM} {svg}".encode()).hexdigest()[:32]
    file = kept / f"{name}.png" if kept else None
    if file and file.exists():
        return file.read_bytes()
    if missing := lacking(svg):
        raise ValueError(
            f"drawings use characters that {FAMILY} can draw, got {' '.join(missing)}: {svg[:80]}"
        )
    svg = re.sub(r'font-family="[^"]*"', f'font-family="{FAMILY}"', svg).replace("currentColor", INK)
    picture = bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg, font_files=fonts(), skip_system_fonts=True, background="#ffffff", zoom=ZOOM
        )
    )
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture)
    return picture


def size(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG in pixels."""
    return struct.unpack(">II", picture[16:24])


def with_png(output: dict, alt: str, kept: Path | None = None) -> None:
    """Leaves of an output that holds a picture the PNG and words: what is shown the same everywhere.

    The words are those of `alt`, or of the drawing.
    """
    data = output["data"]
    svg = "".join(data.pop("image/svg+xml", ""))
    data.pop("text/html", None)
    if "image/png" not in data:
        data["image/png"] = base64.b64encode(png(svg, kept)).decode()
    data["image/png"] = "".join(data["image/png"]).strip()
    data["text/plain"] = alt or "".join(data.get("text/plain", ""))
    width, height = size(base64.b64decode(data["image/png"]))
    metadata = {"alt": data["text/plain"]}
    if found := WIDTH.search(svg):
        shown = float(found[1]) * (96 / 72 if found[2] else 1)
        metadata |= {"width": round(shown), "height": round(height * shown / width)}
    output["metadata"] = {**output.get("metadata", {}), "image/png": metadata}


def is_picture(output: dict) -> bool:
    """Whether an output shows a drawing or a plot."""
    return any(kind.startswith("image/") for kind in output.get("data", {}))
