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

from tests.site.pages import ROOT

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


@pytest.fixture(scope="module")
def remembering(browser) -> Iterator:
    """A session of the browser that all tests of a file share: what is loaded once is at hand again."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def visit(browser, address, remembering) -> Iterator:
    """Opens a page of the site in a tab of its own: `visit(path, scheme="dark", width=360)`.

    What other tests of the file have loaded is not loaded again, unless the visit is to be `alone`. With
    `first` it is, and has no colours chosen either; without `scripts` JavaScript is off.
    """
    opened = []

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
        context = remembering
        if alone or first or not scripts:
            context = browser.new_context(java_script_enabled=scripts)
            opened.append(context)
        page = context.new_page()
        opened.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        if not first:
            page.add_init_script(
                f"localStorage.setItem('mode', '{scheme}'); localStorage.setItem('theme', '{scheme}');"
            )
        result = Visit(page)
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((address, "data:", "blob:"))
                else result.outside.append(request.url)
            ),
        )
        page.on("pageerror", lambda error: result.problems.append(f"script error: {error}"))
        page.on(
            "console",
            lambda message: (
                result.problems.append(f"console {message.type}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )
        page.on(
            "response",
            lambda answer: (
                result.problems.append(f"{answer.status}: {answer.url}") if answer.status >= 400 else None
            ),
        )
        page.goto(address + path, wait_until="load")
        page.wait_for_load_state("networkidle")
        return result

    yield open_page
    for one in reversed(opened):
        one.close()
