"""Folders whose names are no UTF-8 are shown and led to; one that may not be opened stops no page."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.builders import conversation, scored
from tests.simulator.viewer.asking import Asker
from tests.simulator.viewer.serving import append

BAD = os.fsdecode(b"bad\xff")


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    """A run folder with such a name in a folder with such a name, and a sound one beside it."""
    for name in (BAD, "good"):
        run = tmp_path / BAD / name
        run.mkdir(parents=True)
        append(run / "conversations.jsonl", [conversation("a", ["x", "y"])])
        append(run / "verdicts.jsonl", [scored("a", 0, [(0, 1)])])
    return Asker([tmp_path / BAD], tmp_path / "indices")


def test_the_page_of_all_runs_names_both_and_leads_to_both(asker: Asker) -> None:
    answer = asker.ask("GET", "/")
    names = dict(re.findall(r'<a href="/runs/([^"/]+)">([^<]+)</a>', answer.body))
    assert (answer.status, sorted(names.values())) == (200, ["bad\ufffd", "good"])
    assert {asker.ask("GET", f"/runs/{id}").status for id in names} == {200}


@pytest.mark.parametrize(
    "page", ["", "/live", "/conversations", "/conversations/a", "/conversations/a/next/0", "/labels"]
)
def test_its_own_pages_are_made(asker: Asker, page: str) -> None:
    bad = next(run.id for run in asker.runs.list() if run.name == BAD)
    answer = asker.ask("GET", f"/runs/{bad}{page}")
    assert answer.status in (200, 204, 303)


def test_pages_beside_each_other_are_made(asker: Asker) -> None:
    one, other = (run.id for run in asker.runs.list())
    assert asker.ask("GET", f"/compare?reference={one}&run={other}").status == 200
    assert asker.ask("GET", f"/beside?run={one}&chat=a&run={other}&chat=a").status == 200


def test_a_key_can_be_pressed_there(asker: Asker) -> None:
    bad = next(run for run in asker.runs.list() if run.name == BAD)
    body = b'{"annotator": "Asha", "conversation": "a", "turn": 0, "kind": "unknown"}'
    assert asker.post(f"/runs/{bad.id}/marks", body).status == 200
    assert bad.folder.annotations.read_text().count("\n") == 1


def test_a_folder_that_may_not_be_opened_stops_no_page(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open everything, so the system's refusal is played."""
    is_file = Path.is_file

    def refuse(path: Path) -> bool:
        if path.parent.name == BAD and path.parent.parent.name == BAD:
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refuse)
    answer = asker.ask("GET", "/")
    assert (answer.status, re.findall(r'<a href="/runs/[^"/]+">([^<]+)</a>', answer.body)) == (200, ["good"])
