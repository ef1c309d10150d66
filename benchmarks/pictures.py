"""Take the pictures of the documentation: `python -m benchmarks.viewer_screenshots`.

The recorded demo is replayed into a temporary folder, and Chromium opens pages of the viewer over it. The
pictures stand in docs/viewer.md; that of `report.html` in README.md is of the demo, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image

from benchmarks.command import build_parser
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from hallulab.simulator.viewer.app import Listening, listen, make_server
from hallulab.simulator.viewer.runs import ShownRuns

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "assets"
HEIGHTS = {1280: 800, 400: 720}
"""Width of a window → its height."""
Form = tuple[str, int, Literal["light", "dark"]]
"""A page, the width of a window, and its colours."""
PICTURES: tuple[Form, ...] = (
    ("run", 1280, "light"),
    ("run", 400, "dark"),
    ("beside", 1280, "dark"),
    ("conversation", 400, "light"),
)
QUALITY = 75
"""Of WebP, of 100."""


@contextlib.contextmanager
def show(folder: Path) -> Iterator[tuple[ShownRuns, Listening]]:
    """Replay the demo in a folder, and serve it in a thread while the block runs."""
    experiment = load_experiment(ROOT / "examples" / "demo.yaml", {"model": DEFAULT_CPU_MODEL})
    settings = RunSettings(replay=ROOT / "tests" / "recordings" / "demo.jsonl.gz", quiet=True)
    asyncio.run(run_experiment(experiment, RunFolder(folder / "demo"), settings, simulate=True))
    runs, ready, listening = ShownRuns([folder / "demo"], folder / "indices"), threading.Event(), listen(None)
    server = make_server(runs, listening, ready.set)
    thread = threading.Thread(target=server.run, args=([listening.socket],), daemon=True)
    thread.start()
    ready.wait(20)
    try:
        yield runs, listening
    finally:
        server.should_exit = True
        thread.join(20)


@contextlib.contextmanager
def open_page(
    browser: Browser, shown: tuple[ShownRuns, Listening], form: Form, **more: Any
) -> Iterator[Page]:
    """Open a page in the state that its picture shows, while the block runs.

    Args:
        browser: it.
        shown: what `show` yields.
        form: which page, how wide, and in which colours.
        more: of the browser's context.
    """
    name, width, scheme = form
    size: Any = {"width": width, "height": HEIGHTS[width]}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", **more)
    page = context.new_page()
    page.goto(shown[1].address)
    [run] = shown[0].list()
    address = page.url.split("/?")[0].rstrip("/") + f"/runs/{run.id}"
    page.goto(address)
    page.wait_for_selector("#results", timeout=120_000)  # the report is made in the background
    if name != "run":
        _, [chat, *_] = run.index.list_chats(flagged=True)
        page.goto(f"{address}/{'beside' if name == 'beside' else 'conversations'}/{chat.id}")
    if name == "conversation":
        page.locator("#desk-numbers", has_text="HPT-1").wait_for()
        page.locator("mark").first.click()
    yield page
    context.close()


def name_picture(form: Form) -> str:
    """Return the name of a picture's file."""
    return f"viewer-{'-'.join(map(str, form))}.webp"


def take_report(run: RunFolder, browser: Browser, file: Path) -> None:
    """Take the picture of a run's `report.html`, with a palette."""
    write_reports(run, run.read_journals())
    page = browser.new_page(viewport={"width": 1500, "height": 957})
    page.goto(run.page.as_uri())
    Image.open(io.BytesIO(page.screenshot())).quantize(128).save(file, optimize=True)


def main() -> None:
    """Take them."""
    from playwright.sync_api import sync_playwright

    parser = build_parser("viewer_screenshots", __doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pictures")
    out = parser.parse_args().out
    with (
        tempfile.TemporaryDirectory() as folder,
        show(Path(folder)) as shown,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for form in PICTURES:
            with open_page(browser, shown, form) as page:
                file = out / name_picture(form)
                Image.open(io.BytesIO(page.screenshot())).save(file, quality=QUALITY, method=6)
        take_report(shown[0].list()[0].folder, browser, out / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
