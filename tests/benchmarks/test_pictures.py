"""The pictures of the docs: they are of today's pages, which fit and have no serious violation by axe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from benchmarks import pictures
from benchmarks.pictures import (
    ASSETS,
    PICTURES,
    Pages,
    Picture,
    digest_page,
    explain_stale,
    is_stale,
    main,
    open_browser,
    open_page,
    read_digests,
    serve_pages,
)
from hallulab.simulator.records.folder import RunFolder
from tests.places import ROOT
from tests.simulator.viewer.browsing import find_violations, needs_chromium

each_picture = pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.file)
WINDOW = Picture("a.webp", "run", 400, "light")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(demo_replay: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    with serve_pages(demo_replay, tmp_path_factory.mktemp("indices")) as found:
        yield found


@needs_chromium
@each_picture
def test_a_picture_is_of_todays_page(picture: Picture, pages: Pages, browser: Browser) -> None:
    stale = explain_stale([picture.file]) if is_stale(browser, pages, picture) else None
    assert stale is None


@needs_chromium
@pytest.mark.slow
@each_picture
def test_pages_of_a_recorded_run_fit_and_have_no_serious_violation(
    picture: Picture, pages: Pages, browser: Browser
) -> None:
    with open_page(browser, pages, picture, bypass_csp=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= picture.width
        assert find_violations(page) == []


def test_pages_show_each_picture_and_every_file_is_known() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))]
    shown = {name for text in texts for name in re.findall(r"assets/([\w.-]+\.(?:png|webp))", text)}
    files = {path.name for path in ASSETS.iterdir() if path.suffix in {".png", ".webp"}}
    assert shown == files == set(read_digests()) == {picture.file for picture in PICTURES}


@needs_chromium
@pytest.mark.parametrize(
    ("markup", "is_same"),
    [
        ("<p>A</p><p style='margin-top: 2000px'>C</p>", True),
        ("<p>B</p><p style='margin-top: 2000px'>D</p>", False),
        ("<h1>A</h1><p style='margin-top: 2000px'>D</p>", False),
        ("<style>p { color: red }</style><p>A</p><p style='margin-top: 2000px'>D</p>", False),
    ],
    ids=["below the picture", "text", "element", "style"],
)
def test_a_digest_is_of_elements_and_style_in_the_picture(
    browser: Browser, markup: str, is_same: bool
) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 720})
    page.set_content("<p>A</p><p style='margin-top: 2000px'>D</p>")
    known = digest_page(page, WINDOW)
    assert known["elements"] == 1
    page.set_content(markup)
    assert (digest_page(page, WINDOW, 1) == known) is is_same
    page.close()


@needs_chromium
def test_the_check_names_pictures_that_are_missing_and_the_command(
    demo_replay: RunFolder,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(pictures, "replay_demo", lambda folder: demo_replay)
    monkeypatch.setattr(pictures, "open_browser", lambda: nullcontext(browser))
    assert main(["--check", "--out", str(tmp_path)]) == 1
    files = ", ".join(picture.file for picture in PICTURES)
    assert capsys.readouterr().err == (
        f"error: not of today's pages: {files}. Make them again: python -m benchmarks.pictures\n"
    )


def test_without_chromium_one_sentence_says_so(
    demo_replay: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "replay_demo", lambda folder: demo_replay)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["--check"]) == 2
    assert (
        capsys.readouterr().err == "error: pictures need chromium, which is not on the PATH: make browser\n"
    )
