"""Runs of many conversations have them in page files beside the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report import page_files as pages
from hallulab.simulator.report import write as reporting
from hallulab.simulator.report.write import write_reports
from tests.builders import conversation, scored


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Five cases with two chatbots; a page file takes three conversations, and then the rest of its case."""
    monkeypatch.setattr(pages, "MOST", 3)
    monkeypatch.setattr(reporting, "MOST", 3)
    folder = RunFolder(tmp_path)
    with LineWriter(folder.conversations) as chats, LineWriter(folder.verdicts) as verdicts:
        for seed in range(5):
            for bot in ("vanilla", "agent"):
                id = f"{bot}-{seed}"
                chats.append(conversation(id, [f"Reply {id}."], bot, seed=seed).model_dump_json())
                verdicts.append(scored(id, 0, [(0, 5)] if seed == 4 else ()).model_dump_json())
    return folder


def test_conversations_are_in_page_files_and_the_report_links_to_them(run: RunFolder) -> None:
    write_reports(run)
    html = run.page.read_text()
    assert "<script" not in html
    assert re.findall(r'<li><a href="([^"]+)">([^<]+)</a>: ([^<]+)</li>', html) == [
        ("report-pages/page-00001.html", "asha, seed 0 to asha, seed 1", "4 conversations, 0 flagged"),
        ("report-pages/page-00002.html", "asha, seed 2 to asha, seed 3", "4 conversations, 0 flagged"),
        ("report-pages/page-00003.html", "asha, seed 4 to asha, seed 4", "2 conversations, 2 flagged"),
    ]
    found = [re.findall(r'"id":"(\w+-\d)"', file.read_text()) for file in sorted(run.pages.iterdir())]
    assert [len(ids) for ids in found] == [4, 4, 2]
    assert len({id for ids in found for id in ids}) == 10


def test_worst_replies_and_rows_lead_to_the_page_file_of_their_conversation(run: RunFolder) -> None:
    write_reports(run)
    links = re.findall(r'<a href="report-pages/(page-\d+\.html#[^"]+)">([^<]+)</a>', run.page.read_text())
    assert links[:4] == [
        ("page-00003.html#chat-agent-4-0", "Read the conversation"),
        ("page-00003.html#chat-vanilla-4-0", "Read the conversation"),
        ("page-00003.html#chat-agent-4-0", "asha, turn 1"),
        ("page-00003.html#chat-vanilla-4-0", "asha, turn 1"),
    ]
    assert links[4] == ("page-00001.html#chat-agent-0-0", "asha, turn 1")


def test_page_files_lead_to_their_neighbours_and_load_nothing(run: RunFolder) -> None:
    write_reports(run)
    first, second, third = (file.read_text() for file in sorted(run.pages.iterdir()))
    assert re.findall(r'href="([^"]+)"', first) == ["../report.html", "page-00002.html"]
    assert re.findall(r'href="([^"]+)"', second) == ["../report.html", "page-00001.html", "page-00003.html"]
    assert re.findall(r'href="([^"]+)"', third) == ["../report.html", "page-00002.html"]
    assert "default-src 'none'; script-src 'sha256-" in first
    assert "src=" not in first


def test_a_run_with_fewer_conversations_has_no_page_files_any_more(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reports(run)
    monkeypatch.setattr(reporting, "MOST", 10)
    write_reports(run)
    assert not run.pages.exists()
    assert "Reply" in run.page.read_text()
    assert sorted(file.name for file in run.path.iterdir()) == [
        "concentration.csv",
        "conversations.jsonl",
        "report-answered.csv",
        "report-blame.csv",
        "report-citations.csv",
        "report.csv",
        "report.html",
        "report.json",
        "verdicts.jsonl",
    ]


def test_page_files_do_not_lead_out_of_the_folder(
    run: RunFolder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "page-00001.html").write_text("mine")
    run.pages.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="this link leads out of the run folder"):
        write_reports(run)
    assert (elsewhere / "page-00001.html").read_text() == "mine"


def test_a_page_file_that_is_a_link_is_replaced_and_its_target_stays(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    run.pages.mkdir()
    (run.pages / "page-00001.html").symlink_to(tmp_path / "mine.txt")
    write_reports(run)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert not (run.pages / "page-00001.html").is_symlink()
