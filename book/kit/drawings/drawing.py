"""A drawing as a notebook, a page and a program see it."""

import hashlib
import html
import re
from collections.abc import Container
from typing import Any

import drawsvg

from tformer_book.kit.drawings.primitives import Scene

INK = "#1b1f24"
FALLBACK = re.compile(r"var\(--[\w-]+, (#\w+)\)")
# As the page's, with a generic name for each system's own.
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"


class Drawing:
    """An SVG that follows the colours of the page it stands on, with one layout or two.

    Args:
        title: what it shows, in a few words; a screen reader says it first.
        description: what is to be seen, for readers who do not see it.
        wide: the layout, or the one for wide places.
        narrow: the layout for narrow places, such as a phone.

    Raises:
        TypeError: if title or description is no text.
        ValueError: if one of them is empty.
    """

    def __init__(self, title: str, description: str, wide: Scene, narrow: Scene | None = None):
        for name, words in (("title", title), ("description", description)):
            if not isinstance(words, str):
                raise TypeError(f"a drawing's {name} is a text, got {type(words).__name__}")
            if not words.strip():
                raise ValueError(f"a drawing needs a {name}")
        self.title, self.description = title.strip(), description.strip()
        self.wide, self.narrow = wide, narrow

    def __str__(self) -> str:
        title = self.title.rstrip(".")
        return f"{title}{'' if title.endswith('?') else '.'} {self.description}"

    __repr__ = __str__

    @property
    def name(self) -> str:
        """A name of its own for what stands on a page; the same drawing has the same one in every run."""
        parts = [str(self), *(part for scene in self.scenes for part in (scene.key(),))]
        return "drawing-" + hashlib.sha1("\n".join(parts).encode()).hexdigest()[:8]

    @property
    def scenes(self) -> list[Scene]:
        """The layouts, the wide one first."""
        return [scene for scene in (self.wide, self.narrow) if scene is not None]

    def _svg(self, scene: Scene, name: str, **attributes: Any) -> str:
        """One layout; everything with an id has `name` before it."""
        picture = drawsvg.Drawing(
            scene.width + 2,  # an edge on the border is not cut in half
            scene.height + 2,
            origin=(-1, -1),
            id_prefix=f"{name}-",
            role="img",
            aria_labelledby=f"{name}-title",
            aria_describedby=f"{name}-desc",
            font_family=FONTS,
            fill="currentColor",
            **attributes,
        )
        picture.append_title(self.title, id=f"{name}-title")
        picture.append(drawsvg.Raw(f'<desc id="{name}-desc">{html.escape(self.description)}</desc>'))
        picture.extend(scene.elements)
        return picture.as_svg(header="")

    def to_html(self) -> str:
        """Inline SVG that takes the colours, and the layout that the room asks for."""
        name = self.name
        rules = (
            f".{name}{{container-type:inline-size;width:100%;overflow:hidden}}"
            f".{name}>svg{{display:block;margin:0 auto;max-width:100%;height:auto}}"
        )
        pictures = [self._svg(self.wide, f"{name}-w", class_="tformer-drawing tformer-wide")]
        if self.narrow is not None:
            # Until the wide layout would be drawn smaller than nine tenths of its size.
            turn = round(0.9 * self.wide.width)
            rules += (
                f".{name}>svg.tformer-narrow{{display:none}}"
                f"@container (max-width:{turn}px){{.{name}>svg.tformer-wide{{display:none}}"
                f".{name}>svg.tformer-narrow{{display:block}}}}"
            )
            pictures.append(self._svg(self.narrow, f"{name}-n", class_="tformer-drawing tformer-narrow"))
        return f'<div class="tformer-figure {name}"><style>{rules}</style>{"".join(pictures)}</div>'

    def to_svg(self) -> str:
        """A file of its own, in the light colours on white: for slides, and where HTML is not shown."""
        text = self._svg(self.wide, f"{self.name}-s", style=f"background:#fff;color:{INK}")
        return FALLBACK.sub(r"\1", text) + "\n"

    def to_inline_svg(self) -> str:
        """The wide layout as a file that is put into a page, where it takes the page's colours."""
        return self._svg(self.wide, self.name, class_="tformer-drawing") + "\n"

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        return {"text/html": self.to_html(), "image/svg+xml": self.to_svg(), "text/plain": str(self)}
