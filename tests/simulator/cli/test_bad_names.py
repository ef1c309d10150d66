"""Names of files and folders that are no UTF-8: commands read and write them, and show U+FFFD."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import conversation, scored
from tests.simulator.command_line import Ended
from tests.simulator.viewer.serving import append

Hallulab = Callable[..., Ended]

BAD = os.fsdecode(b"bad\xff")
SHOWN = "bad\ufffd"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with such a name."""
    found = tmp_path / BAD
    found.mkdir()
    append(found / "conversations.jsonl", [conversation("a", ["x says so.", "y"])])
    append(found / "verdicts.jsonl", [scored("a", 0, [(0, 1)]), scored("a", 1)])
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", BAD),
        ("report", BAD, "--json"),
        ("compare", BAD, BAD, "--html", f"{BAD}.html", "--json", f"{BAD}.json"),
        ("export", BAD, "--format", "openai", "--out", f"{BAD}.jsonl"),
        ("export", BAD, "--format", "csv", "--out", f"{BAD}.csv"),
        ("annotate", BAD, "--next", "1"),
    ],
    ids=lambda given: " ".join(given).replace(BAD, "RUN"),
)
def test_commands_of_run_folders(
    hallulab: Hallulab, run: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(run.parent)
    ended = hallulab(*arguments)
    assert (ended.code, ended.err) == (0, "")
    assert not any("\ud800" <= letter <= "\udfff" for letter in ended.out)


def test_a_run_folder_that_is_none_is_named(hallulab: Hallulab, tmp_path: Path) -> None:
    ended = hallulab("report", tmp_path / BAD)
    assert (ended.code, f"{tmp_path / SHOWN} is no run folder" in ended.err) == (2, True)


def test_chats_are_imported_from_and_into_such_names(hallulab: Hallulab, tmp_path: Path) -> None:
    chats = tmp_path / f"{BAD}.jsonl"
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    chats.write_text(json.dumps({"messages": said}) + "\n")
    ended = hallulab("import", chats, "--out", tmp_path / BAD)
    assert ended.code == 0
    assert (tmp_path / BAD / "conversations.jsonl").read_text().count("\n") == 1


def test_documents_with_such_names_are_refused(hallulab: Hallulab, tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    document = tmp_path / "documents" / f"{BAD}.md"
    document.write_text("# Tea\n\nHot.\n")
    chats = tmp_path / "chats.jsonl"
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    chats.write_text(json.dumps({"messages": said}) + "\n")
    documents = document.parent
    ended = hallulab("import", chats, "--documents", documents, "--strict", "--out", tmp_path / "run")
    shown = tmp_path / "documents" / f"{SHOWN}.md"
    assert (ended.code, ended.err) == (2, f"error: {shown}: the name of the file is not UTF-8. Rename it.\n")
