"""Paper: the style sheet and script for printing, and a button that says what it does.

The theme's button ".pdf" opens the browser's print dialogue; here it says "Print". The
PDFs themselves are made by `make pdf` (tools/make_pdf.py), which adds links to them.
"""

from sphinx.application import Sphinx

PRINT_BUTTON = "download-pdf-button"  # the theme's name for it


def name_print_button(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Calls the button that prints by its name."""
    for group in context.get("header_buttons") or []:
        for button in group.get("buttons", []):
            if button.get("label") == PRINT_BUTTON:
                button |= {
                    "text": "Print",
                    "tooltip": "Print this page",
                    "icon": "fas fa-print",
                }


def setup(app: Sphinx) -> dict:
    """Adds the files to every page. They open boxes, so togglebutton need not."""
    app.add_css_file("print.css", media="print", priority=900)
    app.add_js_file("print.js", loading_method="defer")
    app.connect("html-page-context", name_print_button, priority=900)
    app.connect(
        "config-inited",
        lambda app, config: setattr(config, "togglebutton_open_on_print", False),
    )
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
