"""What a reader with a phone waits for: the weight of a page, its first paint, its formulas.

`python page_speed.py` serves the built site (`make book`) compressed, on this machine, and opens
pages in Chromium as a first visit on a slow phone: a processor four times slower than this one, 1.6 Mbit/s,
150 ms to the server, a window of 360 x 740. For each page it gives the bytes that came, by kind, the
requests, the time to the first paint, the time until every formula stands in its own font, and the layout
shift (0 when nothing moves; to 0.1 is called good), times as the median of several visits. Bytes are the
same everywhere, times are not: run it when the machine is quiet.

    --site DIR    another built site, to compare with
    --visits N    of each page (5)
    --record      keeps the result in kit/records/page_speed.json
"""

import argparse
import functools
import gzip
import http.server
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tformer_book.kit.records import record

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    "book/index",
    "book/attention/chapter",
    "book/skip_norm/chapter",
    "book/translation/chapter",
    "book/vit/chapter",
)
CPU = 4  # times slower
BITS = {"down": 1_600_000, "up": 750_000}  # in a second
LATENCY = 150  # ms
WINDOW = {"width": 360, "height": 740}
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
COMPRESSED = {".html", ".css", ".js", ".json", ".svg", ".map", ".txt"}
# Says when the first paint was, when all formulas stood, how far things moved.
WATCH = """
window.seen = { shift: 0 };
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) seen.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
const watch = setInterval(() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  if (!paint || document.readyState === "loading") return;
  seen.paint = paint.startTime;
  const formulas = [...document.querySelectorAll(".math")];
  if (document.fonts.status === "loaded" && formulas.every((one) => one.querySelector("mjx-container"))) {
    seen.formulas = formulas.length ? performance.now() : seen.paint;
    seen.count = formulas.length;
    clearInterval(watch);
  }
}, 20);
"""


class _Compressing(http.server.SimpleHTTPRequestHandler):
    """Serves files as hosts do: text compressed, connections kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir() or not path.exists():
            self.send_error(404)
            return
        body = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix in COMPRESSED:
            body = gzip.compress(body, 6, mtime=0)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a site on this machine while it is served."""
    handler = functools.partial(_Compressing, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


def visit(browser: Any, address: str, *, throttled: bool = True) -> dict[str, Any]:
    """A first visit, without scrolling: what came, and when."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    session = context.new_cdp_session(page)
    kinds: dict[str, str] = {}
    sizes: dict[str, int] = {}
    session.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: event["type"]}))
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}),
    )
    session.send("Network.enable")
    if throttled:
        session.send("Emulation.setCPUThrottlingRate", {"rate": CPU})
        session.send(
            "Network.emulateNetworkConditions",
            {
                "offline": False,
                "latency": LATENCY,
                "downloadThroughput": BITS["down"] / 8,
                "uploadThroughput": BITS["up"] / 8,
            },
        )
    page.add_init_script(WATCH)
    page.goto(address, wait_until="networkidle", timeout=120_000)
    page.wait_for_function("seen.formulas !== undefined", timeout=120_000)
    seen = page.evaluate("seen")
    context.close()
    weights: Counter[str] = Counter()
    for request, size in sizes.items():
        weights[kinds.get(request, "Other").lower()] += size
    return {
        "bytes": dict(sorted(weights.items())),
        "requests": len(sizes),
        "formulas": seen["count"],
        "first_paint": seen["paint"] / 1000,
        "formulas_stand": seen["formulas"] / 1000,
        "shift": seen["shift"],
    }


def several(visits: list[dict[str, Any]]) -> dict[str, Any]:
    """Several visits of one page as one: the last one's bytes, and medians of what varies."""
    varied = ("first_paint", "formulas_stand", "shift")
    return visits[-1] | {name: round(median(one[name] for one in visits), 3) for name in varied}


def table(found: dict[str, dict[str, Any]]) -> str:
    """What was found, a line for each page."""
    lines = [
        f"{'page':34} {'kB':>5} {'requests':>8} {'paint s':>8} {'formulas s':>10} {'shift':>6}  kB by kind"
    ]
    for name, one in found.items():
        by_kind = ", ".join(f"{kind} {size / 1000:.0f}" for kind, size in one["bytes"].items())
        lines.append(
            f"{name:34} {sum(one['bytes'].values()) / 1000:5.0f} {one['requests']:8} "
            f"{one['first_paint']:8.2f} {one['formulas_stand']:10.2f} {one['shift']:6.3f}  {by_kind}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures, prints, and records if asked to."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--site", type=Path, default=ROOT / "_build" / "html")
    options.add_argument("--visits", type=int, default=5)
    options.add_argument("--record", action="store_true")
    chosen = options.parse_args()
    executable = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise SystemExit("no Chromium on this machine: install it, or name it in CHROMIUM")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    found = {}
    with served(chosen.site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=flags)
        for name in PAGES:
            if (chosen.site / f"{name}.html").exists():
                found[name] = several([visit(browser, f"{address}{name}.html") for _ in range(chosen.visits)])
        browser.close()
    print(table(found))
    if chosen.record:
        phone = {"cpu_times_slower": CPU, "bits_a_second": BITS, "latency_ms": LATENCY, "window": WINDOW}
        record(
            "page_speed", {"phone": phone, "visits": chosen.visits, "pages": found}, seeds=[0]
        )  # nothing is drawn by chance


if __name__ == "__main__":
    main()
