from __future__ import annotations

from pathlib import Path

import pytest

from agents.errors import UnparseableAnswer
from agents.summarizer import read_chat, summarize
from scenarios.errors import UsageError
from scenarios.transcript import Message
from tests.scripted import last_user, scripted_pool

CHAT = (
    Message(role="user", text="My fan broke. {{domain}}"),
    Message(role="assistant", text="When?"),
    Message(role="user", text="In May."),
)


async def test_a_chat_becomes_a_summary() -> None:
    pool, transport = scripted_pool(lambda _: " The user had a broken fan. ")
    session = pool.session("summarizer")
    assert await summarize(session, CHAT, "fans") == "The user had a broken fan."
    assert [call.purpose for call in session.calls] == ["summarizer.summary"]
    assert last_user(transport.requests[0]) == (
        "User: My fan broke. {{domain}}\nAssistant: When?\nUser: In May.\n\nSummary of the user's side:"
    )
    assert "an assistant for fans." in transport.requests[0]["messages"][0]["content"]


async def test_an_empty_summary_is_an_error() -> None:
    pool, _ = scripted_pool(lambda _: " ")
    with pytest.raises(UnparseableAnswer, match="empty summary"):
        await summarize(pool.session("summarizer"), CHAT, "fans")


async def test_a_chat_without_a_user_is_a_mistake() -> None:
    pool, _ = scripted_pool(lambda _: "The user …")
    with pytest.raises(ValueError, match="without a user message"):
        await summarize(pool.session("summarizer"), CHAT[1:2], "fans")


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_plain_text_is_read_by_labels(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        "chat.txt",
        "\nuser: My fan broke.\nIt smoked.\n\nASSISTANT: When: which day?\nCustomer:  In May.\n",
    )
    assert read_chat(path) == (
        Message(role="user", text="My fan broke.\nIt smoked."),
        Message(role="assistant", text="When: which day?"),
        Message(role="user", text="In May."),
    )


def test_a_word_with_a_colon_opens_no_message(tmp_path: Path) -> None:
    path = _file(tmp_path, "chat.txt", "User: Two things:\nPrice: 20\nUsers: many\n")
    assert read_chat(path) == (Message(role="user", text="Two things:\nPrice: 20\nUsers: many"),)


def test_json_lines_are_read(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        "chat.jsonl",
        '{"role": "user", "text": "My fan\u2028broke."}\n\n{"role": "assistant", "content": "When?"}\n',
    )
    assert read_chat(path) == (
        Message(role="user", text="My fan\u2028broke."),
        Message(role="assistant", text="When?"),
    )


@pytest.mark.parametrize(
    "line",
    ["oops", "[]", "3", '{"role": "user"}', '{"role": "system", "text": "x"}', '{"role": "user", "text": 3}'],
)
def test_a_json_line_of_another_form_is_named(tmp_path: Path, line: str) -> None:
    path = _file(tmp_path, "chat.jsonl", '{"role": "user", "text": "x"}\n' + line + "\n")
    with pytest.raises(UsageError, match=r"chat\.jsonl, line 2: not of the form"):
        read_chat(path)


def test_text_before_the_first_label_is_named(tmp_path: Path) -> None:
    path = _file(tmp_path, "chat.txt", "\nNotes of a chat\nUser: Hi\n")
    with pytest.raises(UsageError, match=r"chat\.txt, line 2: the chat does not begin with"):
        read_chat(path)


@pytest.mark.parametrize("text", ["", "Assistant: Hello\n"])
def test_a_file_in_which_no_user_speaks_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="no message of a user"):
        read_chat(_file(tmp_path, "chat.txt", text))


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.txt: cannot be read \(No such file or directory\)\."):
        read_chat(tmp_path / "none.txt")
    (tmp_path / "binary.txt").write_bytes(b"User: \xff\xfe")
    with pytest.raises(UsageError, match=r"binary\.txt: cannot be read \(it is not UTF-8 text\)\."):
        read_chat(tmp_path / "binary.txt")
