"""What each colour means, in every drawing and plot of the book.

The colours are Okabe and Ito's, apart for readers with any of the common colour deficiencies. `on` is the
colour of text on a filled box; in the dark the two deeper colours are lighter, so that text on all is black.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    """A part that something plays in attention, and its colours on a light and on a dark page."""

    name: str
    light: str
    on_light: str
    dark: str
    on_dark: str = "#000000"

    @property
    def fill(self) -> str:
        """The colour in an SVG, which is the page's own where it has one, else the light one."""
        return f"var(--tformer-{self.name}, {self.light})"

    @property
    def on(self) -> str:
        """The colour of text on it."""
        return f"var(--tformer-on-{self.name}, {self.on_light})"


QUERY = Role("query", "#0072B2", "#FFFFFF", "#56B4E9")
KEY = Role("key", "#E69F00", "#000000", "#E69F00")
VALUE = Role("value", "#009E73", "#000000", "#2FBF94")
WEIGHTS = Role("weights", "#CC79A7", "#000000", "#DB8FB9")
STREAM = Role("stream", "#D55E00", "#000000", "#EE7A24")
ROLES = (QUERY, KEY, VALUE, WEIGHTS, STREAM)


def style_variables() -> str:
    """The style sheet's rules that set the colours on the site, one for each theme."""
    rules = []
    for theme in ("light", "dark"):
        settings = "".join(
            f"  --tformer-{role.name}: {getattr(role, theme)};\n"
            f"  --tformer-on-{role.name}: {getattr(role, f'on_{theme}')};\n"
            for role in ROLES
        )
        rules.append(f'html[data-theme="{theme}"] {{\n{settings}}}\n')
    return "".join(rules)
