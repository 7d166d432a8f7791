"""The built site, a server for it on this machine, and a browser that may talk to nothing else."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from filelock import FileLock

from tests.site.pages import ROOT, eventually

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no host but this machine is found
]


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site; builds it first where it is missing or older than its sources."""
    (ROOT / "_build").mkdir(exist_ok=True)
    command = [sys.executable, str(ROOT / "tools" / "build_site.py"), "--if-stale"]
    with FileLock(ROOT / "_build" / "site.lock"):  # two workers may ask at once
        built = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if built.returncode:
        pytest.fail(
            f"the site does not build:\n{built.stdout[-2000:]}\n{built.stderr[-4000:]}", pytrace=False
        )
    return ROOT / "_build" / "html"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


@pytest.fixture(scope="session")
def address(site) -> Iterator[str]:
    """The site, served on the loopback address."""
    handler = functools.partial(_Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """The system's Chromium. Without one these tests skip, except in CI, where they fail."""
    executable = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        message = "no Chromium on this machine: install it (Debian: apt install chromium) to test the site"
        if IN_CI:
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page that is loaded, and what happened on the way."""

    page: object
    problems: list[str] = field(default_factory=list)  # errors on the console or in scripts
    outside: list[str] = field(default_factory=list)  # requests to another host


class Tab:
    """A tab, and the visit that it is used for: what happens in it is that visit's."""

    def __init__(self, context, address: str):
        self.page, self.address = context.new_page(), address
        self.visit: Visit | None = None
        self.asked: set = set()  # requests that are not answered yet
        self.page.on("request", self.hear_request)
        self.page.on("requestfinished", lambda request: self.asked.discard(request))
        self.page.on("requestfailed", lambda request: self.asked.discard(request))
        self.page.on("pageerror", lambda error: self.note(f"script error: {error}"))
        self.page.on("console", self.hear_console)
        self.page.on("response", self.hear_answer)

    def note(self, problem: str) -> None:
        if self.visit:
            self.visit.problems.append(problem)

    def hear_request(self, request) -> None:
        self.asked.add(request)
        if self.visit and not request.url.startswith((self.address, "data:", "blob:", "about:")):
            self.visit.outside.append(request.url)

    def hear_console(self, message) -> None:
        # Whether that is said depends on how long the test looks at the page.
        early = "preload but not used within a few seconds" in message.text
        if message.type in ("error", "warning") and not early:
            self.note(f"console {message.type}: {message.text}")

    def hear_answer(self, answer) -> None:
        if answer.status >= 400:
            self.note(f"{answer.status}: {answer.url}")

    def clear(self) -> None:
        """Leaves the page, as if nobody had been there: a new tab costs more than most pages."""
        self.visit = None
        self.page.mouse.up()
        self.page.mouse.move(0, 0)
        as_it_is = dict.fromkeys(("media", "reduced_motion", "forced_colors", "contrast"), "null")
        self.page.emulate_media(**as_it_is)
        if self.page.url.startswith(self.address):
            self.page.evaluate("() => { sessionStorage.clear(); localStorage.clear(); }")
        self.page.goto("about:blank")  # else an address with another `#` would load nothing


@pytest.fixture(scope="module")
def remembering(browser) -> Iterator:
    """A session of the browser that all tests of a file share: what is loaded once is at hand again."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture(scope="module")
def tabs(remembering) -> dict[str, list[Tab]]:
    """The tabs of that session that no test uses, by their colours."""
    return {"light": [], "dark": []}


PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture
def visit(browser, address, remembering, tabs) -> Iterator:
    """Opens a page of the site in a tab of its own: `visit(path, scheme="dark", width=360)`.

    What other tests of the file have loaded is not loaded again, unless the visit is to be `alone`. With
    `first` it is, and has no colours chosen either; without `scripts` JavaScript is off.
    """
    used, opened = [], []

    def open_page(
        path: str,
        *,
        scheme: str = "light",
        width: int = 1280,
        height: int = 900,
        alone: bool = False,
        first: bool = False,
        scripts: bool = True,
    ) -> Visit:
        shared = scripts and not (alone or first)
        if shared and tabs[scheme]:
            tab = tabs[scheme].pop()
        else:
            context = remembering if shared else browser.new_context(java_script_enabled=scripts)
            tab = Tab(context, address)
            if not shared:
                opened.append(context)
            if not first:
                tab.page.add_init_script(
                    f"localStorage.setItem('mode', '{scheme}'); localStorage.setItem('theme', '{scheme}');"
                )
        if shared:
            used.append((scheme, tab))
        page, result = tab.page, Visit(tab.page)
        tab.visit = result
        page.bring_to_front()  # a tab behind another one draws once a second
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.goto(address + path, wait_until="load")
        if scripts:
            page.evaluate(PAINTED)  # what looks at the page's layout has begun
        if not shared:  # and everything that a first visit loads has come
            eventually(page, lambda: not tab.asked, within=60)
        return result

    yield open_page
    for scheme, tab in used:
        if not tab.page.is_closed():
            tab.clear()
            tabs[scheme].append(tab)
    for context in reversed(opened):
        context.close()
