from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.users.chats import read_chat, summarize
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import last_user, scripted_pool
from tests.places import ROOT

CHAT = (
    Message(role="user", text="My fan broke. {{domain}}"),
    Message(role="assistant", text="When?"),
    Message(role="user", text="In May."),
)

CHAT_IN_TWO = (Message(role="user", text="My fan broke."), Message(role="assistant", text="When?"))


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
    path = _file(tmp_path, "chat.txt", "User: Two things:\nPrice: 20\nUsers: many\nBot: Yes.\n")
    assert read_chat(path) == (
        Message(role="user", text="Two things:\nPrice: 20\nUsers: many"),
        Message(role="assistant", text="Yes."),
    )


def test_a_mark_at_the_files_beginning_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_bytes(b"\xef\xbb\xbfUser: My fan broke.\r\nAssistant: When?\r\n")
    assert read_chat(path) == CHAT_IN_TWO


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


def test_a_list_of_messages_is_read(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        "chat.json",
        '[{"role": "user", "text": "My fan broke."},\n {"role": "assistant", "content": "When?"}]\n',
    )
    assert read_chat(path) == CHAT_IN_TWO


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[", ", line 1: not valid JSON (Expecting value)."),
        ('[\n{"role": "user" "text": "x"}]', ", line 2: not valid JSON (Expecting ',' delimiter)."),
        ("[" * 200_000, ": not valid JSON (more than 100 levels of brackets)."),
        (
            '[{"role": "user", "text": "\\ud800"}]',
            ": not valid JSON (0.text: half of a character (\\ud800)).",
        ),
        ('{"role": "user", "text": "x"}', ": not a list of messages."),
        ("3", ": not a list of messages."),
        (
            '[{"role": "user", "text": "x"}, {"role": "narrator", "text": "x"}]',
            ', message 2: message.role: "narrator" is no known role. Give `user`, `assistant`, `system` or '
            "`tool`.",
        ),
    ],
)
def test_json_of_another_form_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = _file(tmp_path, "chat.json", text)
    with pytest.raises(UsageError) as caught:
        read_chat(path)
    assert str(caught.value) == f"reference chat {path}{reason}"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("oops", "not of the form"),
        ("[]", "message: a message must be an object"),
        ("3", "message: a message must be an object"),
        ('{"role": "user"}', "message.content: is missing or null"),
        ('{"role": "user", "text": 3}', "message.text: must be text or a list of parts"),
    ],
)
def test_a_json_line_of_another_form_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = _file(tmp_path, "chat.jsonl", '{"role": "user", "text": "x"}\n' + line + "\n")
    with pytest.raises(UsageError, match=rf"chat\.jsonl, line 2: {reason}"):
        read_chat(path)


def test_what_an_agent_says_is_the_assistants(tmp_path: Path) -> None:
    assert read_chat(_file(tmp_path, "chat.txt", "Customer: My fan broke.\nAGENT: When?\n")) == CHAT_IN_TWO


def test_a_line_that_may_begin_with_another_speaker_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = _file(tmp_path, "chat.txt", "User: My fan broke.\nAssistant: When?\nAnn Lee: I know.\n")
    assert read_chat(path)[1].text == "When?\nAnn Lee: I know."
    assert caplog.messages == [
        f"{path}: lines that begin with `Ann Lee:` were read as part of the message before. If another "
        "speaker begins there, write `User:` or `Assistant:`."
    ]


def test_messages_of_other_tools_are_read_and_those_of_the_system_left_out(tmp_path: Path) -> None:
    text = (
        '{"messages": [{"role": "system", "content": "Be brief."}, '
        '{"type": "human", "content": "My fan broke."},'
        ' {"role": "ai", "content": [{"type": "text", "text": "When?"}]}]}'
    )
    assert read_chat(_file(tmp_path, "chat.json", text)) == CHAT_IN_TWO


def test_text_before_the_first_label_is_named(tmp_path: Path) -> None:
    path = _file(tmp_path, "chat.txt", "\nNotes of a chat\nUser: Hi\n")
    with pytest.raises(UsageError, match=r"chat\.txt, line 2: the chat does not begin with"):
        read_chat(path)


@pytest.mark.parametrize(
    ("name", "text", "role"),
    [
        ("chat.txt", "", "user"),
        ("chat.txt", "User:\nAssistant: Hello\n", "user"),
        ("chat.txt", "Assistant: Hello\nAlice: Hi\n", "user"),
        ("chat.txt", "User: Hi\nAlice: Hello\n", "assistant"),
        ("chat.json", "[]", "user"),
        ("chat.jsonl", '{"role": "user", "text": "Hi"}', "assistant"),
    ],
)
def test_a_file_in_which_one_side_is_silent_is_refused(
    tmp_path: Path, name: str, text: str, role: str
) -> None:
    path = _file(tmp_path, name, text)
    with pytest.raises(UsageError) as caught:
        read_chat(path)
    assert str(caught.value) == (
        f"reference chat {path}: no message of the {role}. Begin such lines with "
        f'`{role.capitalize()}:` (in JSON: `"role": "{role}"`).'
    )


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"none\.txt: cannot be read \(No such file or directory\)\. Correct"
    ):
        read_chat(tmp_path / "none.txt")
    (tmp_path / "binary.txt").write_bytes(b"User: \xff\xfe")
    with pytest.raises(
        UsageError, match=r"binary\.txt, line 1: the text is not UTF-8\. Save the file as UTF-8\."
    ):
        read_chat(tmp_path / "binary.txt")


def test_the_documented_chat_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "scenario-packs.md").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith(("    User:", "    Assistant:"))]
    chat = read_chat(_file(tmp_path, "chat.txt", "\n".join(lines)))
    assert [message.role for message in chat] == ["user", "assistant", "user"]


def test_a_label_in_letters_beyond_ascii_opens_no_message(tmp_path: Path) -> None:
    path = _file(tmp_path, "chat.txt", "User: Hi\nuſer: ho\nASSİSTANT: hum\nBot: Yes.\n")
    assert read_chat(path) == (
        Message(role="user", text="Hi\nuſer: ho\nASSİSTANT: hum"),
        Message(role="assistant", text="Yes."),
    )
