"""Take the pictures of the documentation: `python -m benchmarks.viewer_screenshots`.

Recorded runs are replayed into a temporary folder (`benchmarks.picture_runs`), and Chromium opens every page
of the viewer over them: wide and narrow, light and dark. They stand in docs/viewer-pictures.md. The picture
of `report.html` in README.md is of the demo, too. `--pages` takes some of them, `--out` another folder.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image

from benchmarks.command import build_parser
from benchmarks.picture_runs import ROOT, label_run, make_runs
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from hallulab.simulator.viewer.launching import Launcher
from hallulab.simulator.viewer.offers import StartSource
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns
from hallulab.simulator.viewer.serve import Listening, listen, make_server
from hallulab.simulator.viewer.talks import TalkSource
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import words_for_vectors

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OUT = ROOT / "docs" / "assets"
HEIGHTS = {1280: 800, 400: 720}
"""Width of a window → its height."""
Form = tuple[int, Literal["light", "dark"]]
"""Width of a window, and its colours."""
FORMS: tuple[Form, ...] = ((1280, "light"), (1280, "dark"), (400, "light"), (400, "dark"))
QUALITY = 75
"""Of WebP, of 100."""
LONGEST_MS = 120_000


@dataclass(frozen=True)
class Gallery:
    """What the pages are of."""

    base: str
    """Address of the viewer."""
    runs: dict[str, ShownRun]
    """By name."""
    question: str
    """What is asked in the conversation with a bot."""

    def address(self, run: str, rest: str = "") -> str:
        """Return the address of a page of a run."""
        return f"{self.base}/runs/{self.runs[run].id}{rest}"

    def find_chat(self, run: str) -> str:
        """Return the identifier of a run's first conversation with a flagged turn."""
        _, [chat, *_] = self.runs[run].index.list_chats(flagged=True)
        return chat.id


Open = Callable[["Page", Gallery], object]
"""Opens a page and brings it into the state that the picture shows."""


def open_run(page: Page, gallery: Gallery) -> None:
    """Open the page of a run, with its results."""
    page.goto(gallery.address("demo"))
    page.wait_for_selector("#results", timeout=LONGEST_MS)  # the report is made in the background


def open_conversation(page: Page, gallery: Gallery) -> None:
    """Open a conversation, with the sentence that a flag was judged by."""
    page.goto(gallery.address("demo", f"/conversations/{gallery.find_chat('demo')}"))
    page.locator("#desk-numbers", has_text="HPT-1").wait_for()
    page.locator("mark").first.click()


def open_comparison(page: Page, gallery: Gallery) -> None:
    """Open a run beside a reference."""
    before, after = gallery.runs["before"].id, gallery.runs["after"].id
    page.goto(f"{gallery.base}/compare?reference={before}&run={after}")


def open_talk(page: Page, gallery: Gallery) -> None:
    """Talk to a bot, until its reply is judged."""
    page.goto(f"{gallery.base}/talk")
    page.locator("#message").fill(gallery.question)
    page.keyboard.press("Enter")
    page.locator("#turn-0 .lane h3").first.wait_for(timeout=LONGEST_MS)


def open_settling(page: Page, gallery: Gallery) -> None:
    """Open the first turn on which two people differ."""
    page.goto(gallery.address("labelled", "/labels"))
    page.locator("a[href*='/settle']").first.click()


def open_start(page: Page, gallery: Gallery) -> None:
    """Open the form that starts a run, with what it would do."""
    page.goto(f"{gallery.base}/start")
    page.locator("#sentences li").first.wait_for()


PAGES: dict[str, Open] = {
    "runs": lambda page, gallery: page.goto(gallery.base),
    "run": open_run,
    "conversations": lambda page, gallery: page.goto(gallery.address("demo", "/conversations")),
    "conversation": open_conversation,
    "beside": lambda page, gallery: page.goto(
        gallery.address("demo", f"/beside/{gallery.find_chat('demo')}")
    ),
    "comparison": open_comparison,
    "labels": lambda page, gallery: page.goto(gallery.address("labelled", "/labels")),
    "settle": open_settling,
    "chat": open_talk,
    "start": open_start,
}
"""Name of a page → what opens it. To add a page, add a line here and a section to docs/viewer-pictures.md."""


@contextlib.contextmanager
def serve(runs: ShownRuns, talked: TalkSource) -> Iterator[Listening]:
    """Serve runs in a thread while the block runs."""
    ready, listening = threading.Event(), listen(None)
    launcher = Launcher(StartSource(talked.experiment, talked.folder))
    server = make_server(runs, listening, ready.set, talked=talked, launcher=launcher)
    thread = threading.Thread(target=server.run, args=([listening.socket],), daemon=True)
    thread.start()
    ready.wait(20)
    try:
        yield listening
    finally:
        server.should_exit = True
        thread.join(20)


@contextlib.contextmanager
def show(folder: Path) -> Iterator[tuple[str, Gallery]]:
    """Make the runs in a folder and serve them, with a bot that says what one of the demo said.

    Yields:
        The address that lets in, and what the pages are of.
    """
    made = make_runs(folder / "runs")
    said = made["demo"].read_conversations()[0].turns[0]
    talks = Path("talks")  # the page shows it as it is given
    with (
        contextlib.chdir(folder),
        words_for_vectors(),
        ScriptedModel(lambda request: said.reply, "demo-bot") as model,
    ):
        talks.mkdir()
        runs = ShownRuns([made["demo"].path.parent, talks], folder / "indices")
        shown = {run.name: run for run in runs.list()}
        for run in shown.values():
            run.growth.catch_up()
            run.growth.wait()
        label_run(shown["labelled"])
        experiment = Experiment.model_validate(
            {
                "scenario": "consumer-grievance-india",
                "chatbots": ["vanilla", "agent"],
                "detectors": ["lexical"],
                "model": model.name,
                "base_url": model.base_url,
            }
        )
        with serve(runs, TalkSource(experiment, RunSettings(quiet=True), talks)) as listening:
            yield listening.address, Gallery(listening.address.split("/?")[0], shown, said.user)


@contextlib.contextmanager
def open_page(
    browser: Browser, address: str, gallery: Gallery, name: str, form: Form, **more: Any
) -> Iterator[Page]:
    """Open a page in a form while the block runs.

    Args:
        browser: it.
        address: that lets in.
        gallery: what the pages are of.
        name: of the page.
        form: how wide, and in which colours.
        more: of the browser's context.
    """
    width, scheme = form
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHTS[width]},
        color_scheme=scheme,
        reduced_motion="reduce",
        **more,
    )
    page = context.new_page()
    page.goto(address)
    PAGES[name](page, gallery)
    yield page
    context.close()


def name_picture(name: str, form: Form) -> str:
    """Return the name of a picture's file."""
    return f"viewer-{name}-{form[0]}-{form[1]}.webp"


def take(address: str, gallery: Gallery, browser: Browser, out: Path, pages: Sequence[str]) -> list[Path]:
    """Take pictures of pages in every form; return their files."""
    files = []
    for name, form in product(pages, FORMS):
        with open_page(browser, address, gallery, name, form) as page:
            files.append(out / name_picture(name, form))
            Image.open(io.BytesIO(page.screenshot())).save(files[-1], quality=QUALITY, method=6)
    return files


def take_report(run: RunFolder, browser: Browser, file: Path) -> Path:
    """Take the picture of a run's `report.html`; return its file, with a palette."""
    write_reports(run, run.read_journals())
    page = browser.new_page(viewport={"width": 1500, "height": 957})
    page.goto(run.page.as_uri())
    Image.open(io.BytesIO(page.screenshot())).quantize(128).save(file, optimize=True)
    return file


def main() -> None:
    """Take them."""
    from playwright.sync_api import sync_playwright

    parser = build_parser("viewer_screenshots", __doc__)
    parser.add_argument(
        "--pages", nargs="+", choices=PAGES, default=[*PAGES], help="which; else all, and the report"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pictures")
    options = parser.parse_args()
    out = options.out.resolve()
    with (
        tempfile.TemporaryDirectory() as folder,
        show(Path(folder)) as (address, gallery),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        files = take(address, gallery, browser, out, options.pages)
        if options.pages == [*PAGES]:
            files.append(take_report(gallery.runs["demo"].folder, browser, out / "report.png"))
        browser.close()
    for file in files:
        print(f"{file}: {file.stat().st_size:,} bytes")
    print(f"together: {sum(file.stat().st_size for file in files):,} bytes")


if __name__ == "__main__":
    main()
