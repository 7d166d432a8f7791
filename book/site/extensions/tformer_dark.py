"""A figure's colours on a dark page.

Black becomes the dark theme's text, white its background, and the greys between them
follow. Colours keep their hue: pale ones, on which things are written, become dark, and
the others are lightened until they stand out. Pixels stay as they are, and so does what
is drawn on them (the groups that tformer_book.kit.plot_style names `kept`).
"""

import colorsys
import re
from functools import cache
from xml.etree import ElementTree

TEXT, BACKGROUND = "#ced6dd", "#121212"  # of the theme's dark pages
CONTRAST = 4.5  # of lines and writing, with the background
PALE, GREY = 0.8, 0.08  # lightness from which a colour is paper; range of a grey
KEPT = "kept"
SPACES = {
    "": "http://www.w3.org/2000/svg",
    "xlink": "http://www.w3.org/1999/xlink",
}
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")


def rgb(colour: str) -> tuple[float, ...]:
    """#ff0000 is (1, 0, 0)."""
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def hexadecimal(parts: tuple[float, ...]) -> str:
    """(1, 0, 0) is #ff0000."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def luminance(colour: str) -> float:
    """The relative luminance of the accessibility guidelines, from 0 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb(colour)]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str = BACKGROUND) -> float:
    """The guidelines' contrast of two colours, from 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@cache
def on_dark(colour: str) -> str:
    """The colour that does on a dark page what this one does on a white one."""
    parts = rgb(colour)
    hue, lightness, saturation = colorsys.rgb_to_hls(*parts)
    if max(parts) - min(parts) < GREY:
        ends = zip(rgb(TEXT), rgb(BACKGROUND), strict=True)
        parts = tuple(t + lightness * (b - t) for t, b in ends)
        hue, dark, saturation = colorsys.rgb_to_hls(*parts)
    elif lightness > PALE:
        floor, top = (colorsys.rgb_to_hls(*rgb(c))[1] for c in (BACKGROUND, TEXT))
        dark = floor + (1 - lightness) * (top - floor)
    else:
        dark = lightness
    found = hexadecimal(colorsys.hls_to_rgb(hue, dark, saturation))
    while lightness <= PALE and contrast(found) < CONTRAST:
        dark += 0.01
        found = hexadecimal(colorsys.hls_to_rgb(hue, dark, saturation))
    return found


def dark_svg(svg: str) -> str:
    """The picture for a dark page."""
    for prefix, space in SPACES.items():
        ElementTree.register_namespace(prefix, space)
    root = ElementTree.fromstring(svg)
    recolour(root)
    root.set("fill", TEXT)  # what is black by default says no colour
    return ElementTree.tostring(root, encoding="unicode")


def recolour(element: ElementTree.Element) -> None:
    """Changes the colours of an element and of what is in it."""
    if element.get("id", "").startswith(KEPT):
        element.set("fill", "#000000")
        return
    for name in ("style", "fill", "stroke"):
        value = element.get(name)
        if value:
            value = COLOUR.sub(lambda found: on_dark(found[0].lower()), value)
            element.set(name, value)
    for child in element:
        recolour(child)
