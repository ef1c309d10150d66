"""Make the pictures of the documentation: `python -m benchmarks.pictures [--check]`.

The recorded demo is replayed into a temporary folder, and Chromium opens its report and pages of the viewer
over it. Beside the pictures, pictures.json has a digest of each: of the elements of its page from the first
to the last one in the picture, with their text, and of the style sheet. Pixels differ between machines, which
have other fonts; the digest does not. `--check` names the pictures whose page has changed since.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image

from benchmarks.command import build_parser, get_exit_code
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from hallulab.simulator.viewer.app import listen, make_server
from hallulab.simulator.viewer.runs import ShownRuns

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "assets"
DIGESTS = "pictures.json"
COMMAND = "python -m benchmarks.pictures"
HEIGHTS = {1280: 800, 900: 720, 400: 720}
"""Width of a window → its height."""
CHROMIUM_FLAGS = ("--no-sandbox", "--hide-scrollbars", "--disable-lcd-text", "--font-render-hinting=none")
AROUND = 6
"""Pixels around a part of a page."""
QUALITY = 75
"""Of WebP, of 100."""


@dataclass(frozen=True)
class Picture:
    """A picture of the docs."""

    file: str
    """Its name in docs/assets."""
    page: Literal["report", "run", "beside", "conversation"]
    width: int
    scheme: Literal["light", "dark"]
    part: str = ""
    """Selector of the element that it shows, as much as fits a window; empty: the window."""


PICTURES = (
    Picture("report.png", "report", 1280, "light"),
    Picture("report-400-dark.webp", "report", 400, "dark"),
    Picture("flagged-reply.webp", "report", 900, "light", part="article:has(mark)"),
    Picture("viewer-run-1280-light.webp", "run", 1280, "light"),
    Picture("viewer-run-400-dark.webp", "run", 400, "dark"),
    Picture("viewer-beside-1280-dark.webp", "beside", 1280, "dark"),
    Picture("viewer-conversation-400-light.webp", "conversation", 400, "light"),
)

_LIST_ELEMENTS = """([part, box, last]) => {
  const inside = (element) => {
    const at = element.getBoundingClientRect();
    return at.width > 0 && at.height > 0 && at.left < box.x + box.width && at.right > box.x
      && at.top < box.y + box.height && at.bottom > box.y;
  };
  const elements = [...document.querySelector(part).querySelectorAll(":not(script)")];
  const shown = last ?? elements.findLastIndex(inside) + 1;
  const style = [...document.querySelectorAll("style")].map((one) => one.textContent);
  return [shown, style, elements.slice(0, shown).map((element) => [
    element.tagName,
    [...element.attributes].filter((one) => !/^(data-|hx-|href$)/.test(one.name))
      .map((one) => `${one.name}=${one.value}`).sort(),
    [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data),
  ])];
}"""
"""Returns the number of elements up to the last one in the picture, the style sheets, and each element."""


@dataclass(frozen=True)
class Pages:
    """The pages of a run, where a browser finds them."""

    report: str
    """Address of its report.html."""
    viewer: str
    """Address of the viewer."""
    runs: ShownRuns


@contextlib.contextmanager
def serve_pages(run: RunFolder, indices: Path) -> Iterator[Pages]:
    """Serve the viewer over a run with reports, in a thread, while the block runs."""
    runs, ready, listening = ShownRuns([run.path], indices), threading.Event(), listen(None)
    server = make_server(runs, listening, ready.set)
    thread = threading.Thread(target=server.run, args=([listening.socket],), daemon=True)
    thread.start()
    ready.wait(20)
    try:
        yield Pages(run.page.as_uri(), listening.address, runs)
    finally:
        server.should_exit = True
        thread.join(20)


def replay_demo(folder: Path) -> RunFolder:
    """Replay the recorded demo into a folder, and write its reports."""
    run = RunFolder(folder / "demo")
    experiment = load_experiment(ROOT / "examples" / "demo.yaml", {"model": DEFAULT_CPU_MODEL})
    settings = RunSettings(replay=ROOT / "tests" / "recordings" / "demo.jsonl.gz", quiet=True)
    asyncio.run(run_experiment(experiment, run, settings, simulate=True))
    write_reports(run)
    return run


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """Start Chromium, with the flags that pictures need.

    Raises:
        UsageError: there is none.
    """
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise UsageError("pictures need chromium, which is not on the PATH: make browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def open_page(browser: Browser, pages: Pages, picture: Picture, **more: Any) -> Iterator[Page]:
    """Open a page in the state that its picture shows, while the block runs.

    Args:
        more: options of the browser's context.
    """
    context = browser.new_context(
        viewport={"width": picture.width, "height": HEIGHTS[picture.width]},
        color_scheme=picture.scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
        **more,
    )
    page = context.new_page()
    if picture.page == "report":
        page.goto(pages.report)
    else:
        _open_viewer(page, pages, picture)
    yield page
    context.close()


def _open_viewer(page: Page, pages: Pages, picture: Picture) -> None:
    page.goto(pages.viewer)
    [run] = pages.runs.list()
    address = page.url.split("/?")[0].rstrip("/") + f"/runs/{run.id}"
    page.goto(address)
    page.wait_for_selector("#results", timeout=120_000)  # the report is made in the background
    if picture.page == "run":
        page.reload()  # without the notes of a report that is being made
        return
    _, [chat, *_] = run.index.list_chats(flagged=True)
    place = "beside" if picture.page == "beside" else "conversations"
    page.goto(f"{address}/{place}/{chat.id}")
    if picture.page == "conversation":
        page.locator("#desk-numbers", has_text="HPT-1").wait_for()
        page.locator("mark").first.click()


def locate_part(page: Page, picture: Picture) -> Any:
    """Return the rectangle of the page that a picture shows, as much of it as fits a window.

    Raises:
        OperationalError: the page has no such part.
    """
    box: dict[str, float] = {"x": 0, "y": 0, "width": picture.width, "height": HEIGHTS[picture.width]}
    if not picture.part:
        return box
    part = page.locator(picture.part).first
    if part.count() == 0:
        raise OperationalError(f"{picture.file}: the page has no element {picture.part}.")
    part.evaluate("element => element.scrollIntoView({block: 'center'})")
    found = part.bounding_box()
    assert found is not None
    left, top = max(found["x"] - AROUND, 0), max(found["y"] - AROUND, 0)
    right, bottom = found["x"] + found["width"] + AROUND, found["y"] + found["height"] + AROUND
    return {
        "x": left,
        "y": top,
        "width": min(right, box["width"]) - left,
        "height": min(bottom, box["height"]) - top,
    }


def digest_page(page: Page, picture: Picture, elements: int | None = None) -> dict[str, int | str]:
    """Return what a picture shows: the number of elements up to the last one in it, and their digest.

    Args:
        elements: digest so many; None: those up to the last one in the picture.
    """
    shown = page.evaluate(_LIST_ELEMENTS, [picture.part or "body", locate_part(page, picture), elements])
    text = json.dumps([picture.scheme, picture.width, *shown], ensure_ascii=False)
    return {"elements": shown[0], "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}


def read_digests(folder: Path = ASSETS) -> dict[str, dict[str, int | str]]:
    """Return the digest of each picture, as it was when the picture was taken; none without the file."""
    path = folder / DIGESTS
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def is_stale(browser: Browser, pages: Pages, picture: Picture, folder: Path = ASSETS) -> bool:
    """Return whether a picture is not there, or its page has changed since it was taken."""
    known = read_digests(folder).get(picture.file)
    if known is None or not (folder / picture.file).exists():
        return True
    with open_page(browser, pages, picture) as page:
        return digest_page(page, picture, int(known["elements"])) != known


def take_picture(browser: Browser, pages: Pages, picture: Picture, folder: Path) -> dict[str, int | str]:
    """Take a picture, write it into a folder, and return its digest."""
    with open_page(browser, pages, picture) as page:
        digest = digest_page(page, picture)
        shot = Image.open(io.BytesIO(page.screenshot(clip=locate_part(page, picture))))
    if picture.file.endswith(".png"):
        shot.quantize(128).save(folder / picture.file, optimize=True)
    else:
        shot.save(folder / picture.file, quality=QUALITY, method=6)
    return digest


def explain_stale(files: Sequence[str]) -> str:
    """Return the sentence that names stale pictures and the command that makes them again."""
    return f"not of today's pages: {', '.join(files)}. Make them again: {COMMAND}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make or check the pictures; return the exit code."""
    parser = build_parser("pictures", __doc__)
    parser.add_argument("--out", type=Path, default=ASSETS, help="folder of the pictures")
    parser.add_argument("--check", action="store_true", help="take none; name those whose page has changed")
    given = parser.parse_args(arguments)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            demo = replay_demo(Path(folder))
            with serve_pages(demo, Path(folder) / "indices") as pages, open_browser() as browser:
                if given.check:
                    stale = [one.file for one in PICTURES if is_stale(browser, pages, one, given.out)]
                    if stale:
                        raise OperationalError(explain_stale(stale))
                    return
                digests = {one.file: take_picture(browser, pages, one, given.out) for one in PICTURES}
        write_atomically(given.out / DIGESTS, json.dumps(digests, indent=2, sort_keys=True) + "\n")

    return get_exit_code(run)


if __name__ == "__main__":
    raise SystemExit(main())
