"""Take the pictures of docs/viewer.md: `python -m benchmarks.viewer_screenshots`.

The recorded demo is replayed into a temporary folder, and Chromium opens pages of it: wide and narrow, light
and dark. `--run` takes a run folder that is there, `--out` another folder for the pictures.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.command import build_parser
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns
from hallulab.simulator.viewer.serve import Listening, listen, make_server

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "tests" / "recordings" / "demo.jsonl.gz"
OUT = ROOT / "docs" / "assets"


@dataclass(frozen=True)
class Picture:
    """A picture of a page."""

    name: str
    """Its file is `viewer-NAME.png`."""
    page: Literal["run", "conversation", "beside"]
    """Which page."""
    width: int
    """Width of the window."""
    height: int
    """Its height."""
    scheme: Literal["light", "dark"]
    """The colours."""


PICTURES = (
    Picture("run", "run", 1280, 800, "light"),
    Picture("beside", "beside", 1280, 800, "dark"),
    Picture("conversation-narrow", "conversation", 400, 720, "light"),
    Picture("run-narrow", "run", 400, 720, "dark"),
)


def replay(folder: Path) -> Path:
    """Replay the recorded demo; return its run folder."""
    run = folder / "demo"
    config = str(ROOT / "docs" / "demo.yaml")
    command = [sys.executable, "-m", "hallulab", "run", "-c", config, "--model", DEFAULT_CPU_MODEL]
    subprocess.run(
        [*command, "--replay", str(RECORDING), "--out", str(run)], check=True, stdout=subprocess.DEVNULL
    )
    return run


@contextlib.contextmanager
def serve(runs: ShownRuns) -> Iterator[Listening]:
    """Serve runs in a thread while the block runs."""
    ready, listening = threading.Event(), listen(None)
    server = make_server(runs, listening, ready.set)
    thread = threading.Thread(target=server.run, args=([listening.socket],), daemon=True)
    thread.start()
    ready.wait(20)
    try:
        yield listening
    finally:
        server.should_exit = True
        thread.join(20)


def take(run: Path, out: Path, pictures: Sequence[Picture] = PICTURES) -> list[Path]:
    """Take pictures of a run's pages; return their files."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as indices, sync_playwright() as playwright:
        runs = ShownRuns([run], Path(indices))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        files = []
        with serve(runs) as listening:
            base = listening.address.split("/?")[0]
            for picture in pictures:
                context = browser.new_context(
                    viewport={"width": picture.width, "height": picture.height},
                    color_scheme=picture.scheme,
                    reduced_motion="reduce",
                )
                page = context.new_page()
                page.goto(listening.address)
                page.goto(f"{base}/runs/{runs.list()[0].id}")
                page.wait_for_selector("#results", timeout=60_000)  # the report is made in the background
                page.goto(base + _find_path(runs.list()[0], picture.page))
                if picture.page == "conversation":
                    page.locator("mark").first.click()
                files.append(out / f"viewer-{picture.name}.png")
                page.screenshot(path=files[-1])
                context.close()
        browser.close()
    return files


def _find_path(run: ShownRun, page: str) -> str:
    """Return the address of a page: of the first conversation with a flagged turn, if it is of one."""
    if page == "run":
        return f"/runs/{run.id}"
    _, [chat, *_] = run.index.list_chats(flagged=True)
    return f"/runs/{run.id}/{'beside' if page == 'beside' else 'conversations'}/{chat.id}"


def main() -> None:
    """Take them."""
    parser = build_parser("viewer_screenshots", __doc__)
    parser.add_argument("--run", type=Path, help="a run folder; else the demo is replayed")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pictures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for file in take(options.run or replay(Path(folder)), options.out):
            print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
