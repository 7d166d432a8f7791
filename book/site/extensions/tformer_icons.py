"""Of Font Awesome, the icons that the pages show: small fonts in the style sheet."""

import base64
import io
import re
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FONTS = Path("_static/vendor/fontawesome/webfonts")
RULE = re.compile(r'((?:\.fa-[\w-]+::?before,?)+)\{content:"((?:\\.|[^"\\])*)"\}')
FACE = re.compile(r"@font-face\{[^}]*fontawesome/webfonts/([\w-]+)\.woff2[^}]*\}")
NAME = re.compile(r"\bfa-[\w-]+")


def icons_only(sheet: str, shown: str, site: Path) -> str:
    """The style sheet without icons that `shown`, the text of all pages, lacks.

    A glyph that another rule draws stays too: the title of an admonition, say, has one.
    """
    names = set(NAME.findall(shown))

    def change(match: re.Match) -> str:
        keep = [one for one in match[1].split(",") if NAME.search(one)[0] in names]
        return f'{",".join(keep)}{{content:"{match[2]}"}}' if keep else ""

    sheet = RULE.sub(change, sheet)
    drawn = {int(code, 16) for code in re.findall(r"\\([ef][0-9a-f]{3})\b", sheet)}

    def small(match: re.Match) -> str:
        font = TTFont(site / FONTS / f"{match[1]}.woff2", recalcTimestamp=False)
        options = subset.Options(layout_features=[], hinting=False)
        maker = subset.Subsetter(options)
        kept = drawn & set(font.getBestCmap())
        if not kept:
            return ""
        maker.populate(unicodes=kept)
        maker.subset(font)
        font.flavor = "woff2"
        made = io.BytesIO()
        font.save(made)
        data = base64.b64encode(made.getvalue()).decode()
        return re.sub(
            r"src:[^}]*",
            f'src:url("data:font/woff2;base64,{data}") format("woff2")',
            match[0],
            count=1,
        )

    return FACE.sub(small, sheet)
