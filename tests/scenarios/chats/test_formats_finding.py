"""A format of chats is one module, or one entry point."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hallulab.scenarios import chats
from hallulab.scenarios.chats import formats
from hallulab.scenarios.chats.formats import (
    find_format,
    format_of,
    list_formats,
    list_written_formats,
    read_chats,
)
from tests.kit.refusals import refusal
from tests.places import ROOT
from tests.scenarios.installed import install

CODE = """
from hallulab.scenarios.chats.chat_format import ChatFormat, ReadChat
from hallulab.scenarios.chats.record import ChatContext, build_conversation
from hallulab.scenarios.transcript import Turn


def read(path, reading):
    user, reply = path.read_text().removeprefix("TWO ").split("|")
    turns = [Turn(index=0, user=user, reply=reply, passages=())]
    yield ReadChat(str(path), build_conversation(turns, ChatContext(), "chat-1"))


def recognize(start):
    return start.data.startswith(b"TWO ")


def write(path, chats, without):
    path.write_text("".join(f"{one.conversation.id}|" for one in chats))


INFO = ChatFormat(
    name="two", about="two texts", endings=(".two",), read=read, recognize=recognize, write=write
)
"""
OURS = list_formats()
GENERAL = [
    "openai", "sharegpt", "otel", "openinference", "mlflow", "langfuse", "span-rows", "csv", "jsonl",
    "parquet", "ragtruth", "hf", "excel", "otlp", "wildchat", "ragas", "deepeval", "json-rows",
]  # fmt: skip
"""Formats that are asked after those of one tool, in this order, because a value may fit several."""
WRITTEN = [
    "openai", "sharegpt", "csv", "jsonl", "parquet", "ragtruth", "hf", "otlp", "ragas", "deepeval",
]  # fmt: skip


def test_formats_of_one_tool_are_asked_before_those_that_fit_many_files() -> None:
    assert OURS[-len(GENERAL) :] == GENERAL
    assert list_written_formats() == WRITTEN
    assert [find_format(name).name for name in OURS] == OURS


def test_the_documentation_has_a_row_for_each_of_ours() -> None:
    text = (ROOT / "docs" / "own-chats.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w-]+)`|, `([\w-]+)` \|", text, re.MULTILINE))
    assert set(OURS) <= {name for row in rows for name in row}


def check_two(folder: Path, name: str) -> None:
    path = folder / "mine.two"
    path.write_text("TWO A?|B.")
    assert format_of(path) == name
    assert [one.turns[0].reply for _, one in read_chats(path, name)] == ["B."]


def test_a_new_module_is_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two.py").write_text(CODE)
    monkeypatch.setattr(chats, "__path__", [*chats.__path__, str(tmp_path)])
    formats._import_own.cache_clear()
    try:
        assert (list_formats(), list_written_formats()) == ([*OURS, "two"], [*WRITTEN, "two"])
        check_two(tmp_path, "two")
    finally:
        formats._import_own.cache_clear()


def test_an_entry_point_is_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, CODE, chat_formats="mine = theirs:INFO")
    assert (list_formats(), list_written_formats()) == ([*OURS, "mine"], [*WRITTEN, "mine"])
    check_two(tmp_path, "mine")


def test_an_entry_point_that_gives_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "INFO = 3", chat_formats="mine = theirs:INFO")
    said = "format 'mine': its entry point gives a int. Let it give a ChatFormat."
    assert refusal(find_format, "mine") == said
