"""What a role shows on the site, as Markdown with links to the published site."""

import re
from functools import cached_property
from urllib.parse import quote, urlencode, urljoin

from docutils import nodes
from questions import Question, questions
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from tformer_chapters import FORM
from tformer_findings import find
from tformer_live import ALONE, figures, numbered
from tformer_questions import title as question_title
from tformer_site import chapter_number

log = getLogger(__name__)
EXPLICIT = re.compile(r"(?P<title>.+?)\s*<(?P<target>[^<]*)>", re.DOTALL)
STD = {"ref", "numref", "term", "doc", "keyword", "option", "envvar"}
PLAIN = {"file": "`", "code": "`", "literal": "`", "kbd": "`", "samp": "`", "command": "**", "strong": "**",
         "emphasis": "*", "dfn": "*", "math": "$"}  # fmt: skip
WEBSITE = re.compile(r"\b(?:the )?website\b")


class SiteLinks:
    """The links of one page."""

    def __init__(self, app: Sphinx, docname: str) -> None:
        self.app, self.env, self.docname = app, app.env, docname
        self.std = app.env.get_domain("std")
        self.base = app.config.html_baseurl
        self.page = self.address(docname)

    def address(self, docname: str, anchor: str = "") -> str:
        """Where a page of the site is published, or a place in it."""
        page = urljoin(self.base, self.app.builder.get_target_uri(docname))
        return f"{page}#{quote(anchor, safe='=&.-_~')}" if anchor else page

    def warn(self, message: str) -> None:
        """Makes the build fail, which takes warnings for errors."""
        log.warning(message, location=self.docname)

    # --- what a text asks -----------------------------------------------------------

    def role(self, name: str, body: str) -> str:
        """A role as Markdown: the site's words, linked to where they lead there."""
        if name in PLAIN:
            return f"{PLAIN[name]}{body}{PLAIN[name]}"
        if name in ("sub", "sup", "subscript", "superscript"):
            return f"<{name[:3]}>{body}</{name[:3]}>"
        if name == "chapter":
            return self.chapter(body)
        if name == "finding":
            claim, _, written = body.partition(" ")
            docname, value = find(self.env, claim)
            return link(format(value, written or ".3g"), self.address(docname, f"claim-{claim}"))
        if name == "abbr":
            return body.split(" (")[0]
        explicit = EXPLICIT.fullmatch(body)
        title, target = (explicit["title"], explicit["target"]) if explicit else (body, body)
        if (
            name in ("ref", "numref")
            and self.number(target)
            and (name == "numref" or self.is_exercise(target))
        ):
            return self.numbered(target, explicit["title"] if explicit else "", by_name=name == "ref")
        known = self.app.tformer_references
        key = name, body
        if key not in known:
            known[key] = self.found(name, title, target, explicit=bool(explicit))
        return known[key]

    def found(self, name: str, title: str, target: str, *, explicit: bool) -> str:
        """What Sphinx makes of a reference, as Markdown."""
        shown = self.reference(name, title, target, explicit=explicit)
        if shown is None:
            self.warn(f"notebooks: {{{name}}}`{target}` leads nowhere")
            return title
        return self.markdown(shown)

    def equation(self, label: str) -> str:
        """Its number."""
        found = self.env.get_domain("math").equations.get(label)
        if found is None:
            self.warn(f"notebooks: there is no equation {label}")
            return label
        docname, number = found
        numbers = self.env.toc_fignumbers.get(docname, {}).get("displaymath", {})
        return ".".join(map(str, numbers.get(f"equation-{nodes.make_id(label)}", (number,))))

    def exercise(self, label: str) -> str:
        """Its name, "Exercise 2.1"."""
        found = numbered(self.env, "exercise", label)
        return f"Exercise {found[1]}" if found else "Exercise"

    def figure(self, label: str) -> tuple[str, str]:
        """What a figure is called, "Figure 2.1", and where it is; empty if it has no number."""
        found = self.number(label)
        return (found[0], self.address(*found[1:])) if found else ("", "")

    def proof(self, kind: str, label: str) -> str:
        """What a theorem is called, "Theorem 3.1"."""
        found = getattr(self.env, "proof_list", {}).get(label)
        if not found or found["nonumber"]:
            return kind.title()
        numbers = self.env.toc_fignumbers.get(found["docname"], {}).get(found["countertype"], {})
        return f"{kind.title()} {'.'.join(map(str, numbers.get(label, ())))}".strip()

    def question(self, kind: str, label: str) -> tuple[str, Question]:
        """What stands over a question, "Predict", and the question."""
        question = questions()[label]
        return question_title(kind, question, self.docname), question

    def on_the_website(self, text: str, exercise: str) -> str:
        """The text, in which the first "website" opens the figure to touch, in the exercise's state."""
        opened = self.address(self.docname, exercise)
        for name, figure in self.live.items():
            if exercise in figure.get("exercise", {}):
                state = {"try": name, **(figure["exercise"][exercise] or {})}
                opened = self.address(self.stands(name, figure), urlencode(as_script(state)))
        return WEBSITE.sub(lambda found: link(found[0], opened), text, count=1)

    def stands(self, name: str, figure: dict) -> str:
        """The page on which a figure to touch stands, this one if it does."""
        there = [found[0] for label in figure["after"] if (found := numbered(self.env, "figure", label))]
        if self.docname not in there and ALONE.endswith(name.replace("-", "_")):
            return ALONE
        return self.docname if self.docname in there or not there else there[0]

    def touch(self, label: str) -> str:
        """Where on the site the figure to touch behind a drawing is opened; empty if there is none."""
        name = next((name for name, figure in self.live.items() if label in figure["after"]), "")
        return self.address(self.docname, urlencode({"try": name})) if name else ""

    # --- how it is found ------------------------------------------------------------

    @cached_property
    def live(self) -> dict[str, dict]:
        """The figures to touch."""
        return figures()

    def chapter(self, body: str) -> str:
        """A chapter's number."""
        found = FORM.fullmatch(body)
        there, anchor = self.std.anonlabels.get(found["label"] if found else "", ("", ""))[:2]
        number = chapter_number(there)
        if number is None:
            self.warn(f"notebooks: {{chapter}}`{body}` leads nowhere")
            return body
        return link((found["text"] or "Chapter %s") % number, self.address(there, anchor))

    def is_exercise(self, label: str) -> bool:
        """Whether it is an exercise's, which the site always calls by its number."""
        return label in getattr(self.env, "sphinx_exercise_registry", {})

    def number(self, label: str) -> tuple[str, str, str] | None:
        """What bears a label is called ("Figure 2.1"), on which page it is, and its anchor."""
        docname, anchor = self.std.anonlabels.get(label, ("", ""))[:2]
        for there in (docname, self.docname):
            for kind, numbers in self.env.toc_fignumbers.get(there, {}).items():
                for one in (anchor, label):
                    if one and one in numbers:
                        form = self.app.config.numfig_format.get(kind, f"{kind.title()} %s")
                        return form % ".".join(map(str, numbers[one])), there, one
        section = self.env.toc_secnumbers.get(docname, {})
        number = section.get(f"#{anchor}") or section.get("")
        if number:
            return self.app.config.numfig_format["section"] % ".".join(map(str, number)), docname, anchor
        return None

    def numbered(self, label: str, title: str, *, by_name: bool) -> str:
        """A reference by number."""
        name, docname, anchor = self.number(label)
        if title:
            digits = name.rpartition(" ")[2]
            name = title if by_name else title.replace("%s", digits).replace("{number}", digits)
        return link(name, self.address(docname, anchor))

    def reference(self, name: str, title: str, target: str, *, explicit: bool) -> nodes.Node | None:
        """What Sphinx makes of a reference."""
        domain, _, kind = name.rpartition(":")
        domain = domain or ("math" if kind == "eq" else "std" if kind in STD else "py")
        if kind == "ref" and domain == "std":
            target = target.lower()
        target = " ".join(target.split())
        words: nodes.Element = nodes.inline("", title)
        more: dict = {}
        if domain == "py":
            if not explicit:
                title = title.rpartition(".")[2] if title.startswith("~") else title.lstrip(".")
                title += "()" * (kind in ("func", "meth") and self.app.config.add_function_parentheses)
            target = target.lstrip("~.").removesuffix("()")
            words = nodes.literal("", title)
            more = {"py:module": None, "py:class": None}
        if domain not in self.env.domains:
            return None
        asked = addnodes.pending_xref(
            target, words, refdomain=domain, reftype=kind, reftarget=target, refexplicit=explicit,
            refdoc=self.docname, refwarn=True, **more,
        )  # fmt: skip
        found = self.env.get_domain(domain).resolve_xref(
            self.env, self.docname, self.app.builder, kind, target, asked, words
        )
        if found is None and domain == "py":
            return words  # another package's
        return found

    def markdown(self, node: nodes.Node) -> str:
        """A few nodes as Markdown."""
        if isinstance(node, nodes.Text):
            return re.sub(r"([*_`])", r"\\\1", node.astext())
        if isinstance(node, nodes.literal):
            return f"`{node.astext()}`"
        if isinstance(node, nodes.math):
            return f"${node.astext()}$"
        words = "".join(map(self.markdown, node.children))
        if isinstance(node, nodes.emphasis):
            return f"*{words}*"
        if isinstance(node, nodes.strong):
            return f"**{words}**"
        if isinstance(node, nodes.reference):
            there = node.get("refuri") or f"#{node.get('refid', '')}"
            return f"[{words}]({urljoin(self.page, there)})"
        return words


def link(words: str, address: str) -> str:
    """A Markdown link."""
    return f"[{words}]({address})"


def as_script(state: dict) -> dict:
    """A state as the figures' scripts read it."""
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in state.items()}
