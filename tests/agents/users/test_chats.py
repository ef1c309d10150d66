from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.users.chats import ChatCase, numbers, parts, read_case, read_chat, read_manner, summarize
from hallulab.agents.users.personas import MANNERS
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import last_user, scripted_pool
from tests.kit.refusals import refusal
from tests.places import ROOT

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


IN_TWO = ("My fan broke.", "When?")
FORMS = {
    "labels": (
        "chat.txt",
        "\nuser: My fan broke.\nIt smoked.\n\nASSISTANT: When: which day?\nCustomer:  In May.\n",
        ("My fan broke.\nIt smoked.", "When: which day?", "In May."),
    ),
    "a word with a colon": (
        "chat.txt",
        "User: Two things:\nPrice: 20\nUsers: many\nBot: Yes.\n",
        ("Two things:\nPrice: 20\nUsers: many", "Yes."),
    ),
    "a label in letters beyond ASCII": (
        "chat.txt",
        "User: Hi\nuſer: ho\nASSİSTANT: hum\nBot: Yes.\n",
        ("Hi\nuſer: ho\nASSİSTANT: hum", "Yes."),
    ),
    "an agent": ("chat.txt", "Customer: My fan broke.\nAGENT: When?\n", IN_TWO),
    "byte order mark and CRLF": ("chat.txt", "\ufeffUser: My fan broke.\r\nAssistant: When?\r\n", IN_TWO),
    "JSON lines": (
        "chat.jsonl",
        '{"role": "user", "text": "My fan\u2028broke."}\n\n{"role": "assistant", "content": "When?"}\n',
        ("My fan\u2028broke.", "When?"),
    ),
    "a list of messages": (
        "chat.json",
        '[{"role": "user", "text": "My fan broke."},\n {"role": "assistant", "content": "When?"}]\n',
        IN_TWO,
    ),
    "messages of other tools, and of the system": (
        "chat.json",
        '{"messages": [{"role": "system", "content": "Be brief."}, '
        '{"type": "human", "content": "My fan broke."},'
        ' {"role": "ai", "content": [{"type": "text", "text": "When?"}]}]}',
        IN_TWO,
    ),
}


@pytest.mark.parametrize(("name", "text", "said"), FORMS.values(), ids=FORMS)
def test_a_chat_is_read_in_each_form(tmp_path: Path, name: str, text: str, said: tuple[str, ...]) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    read = read_chat(path)
    assert tuple(message.text for message in read) == said
    assert [message.role for message in read] == ["user", "assistant", "user"][: len(said)]


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
    assert refusal(read_chat, path) == f"reference chat {path}{reason}"


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


def test_a_line_that_may_begin_with_another_speaker_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = _file(tmp_path, "chat.txt", "User: My fan broke.\nAssistant: When?\nAnn Lee: I know.\n")
    assert read_chat(path)[1].text == "When?\nAnn Lee: I know."
    assert caplog.messages == [
        f"{path}: lines that begin with `Ann Lee:` were read as part of the message before. If another "
        "speaker begins there, write `User:` or `Assistant:`."
    ]


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
    assert refusal(read_chat, path) == (
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


GOALS = ["Learn what a card costs.", "learn What a card costs", "how long a card lasts?"]


def answer(grievance: str = "She lost a card.", goals: object = GOALS, facts: object = ()) -> str:
    return json.dumps({"grievance": grievance, "goals": goals, "facts": facts})


async def test_a_case_has_different_goals_and_facts_that_are_not_empty() -> None:
    pool, transport = scripted_pool(lambda _: answer("She\nlost a card.", facts=["It was in\nMay", " "]))
    session = pool.session("personas")
    assert await read_case(session, "cards", "Ada Moss", "The user lost\na card {{name}}.", 0) == ChatCase(
        grievance="She lost a card.",
        goals=("Learn what a card costs", "Learn how long a card lasts"),
        facts=("It was in May",),
    )
    assert [call.purpose for call in session.calls] == ["personas.case"]
    assert last_user(transport.requests[0]) == "Name: Ada Moss\nSummary: The user lost a card {{name}}."
    assert transport.requests[0]["temperature"] == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (answer(" "), "told of no grievance"),
        (
            answer(goals=["Learn how long lost things are kept"]),
            "the model copied an example: 'Learn how long",
        ),
        (answer(goals=["Learn"]), "the model wrote no goal: 'Learn'"),
        (answer(goals=[]), "case"),
        (answer(goals=[f"Learn who paid {number}" for number in range(5)]), "case"),
    ],
)
async def test_what_is_no_case_is_refused(given: str, told: str) -> None:
    pool, _ = scripted_pool(lambda _: given)
    with pytest.raises(UnparseableAnswer, match=told):
        await read_case(pool.session("personas"), "cards", "Ada Moss", "The user lost a card.", 0)


CARDS = (
    Message(role="user", text="Card?\nNow!"),
    Message(role="assistant", text="It costs 5."),
    Message(role="user", text="x" * 300),
)


@pytest.mark.parametrize(
    ("share", "manner"), [({"B": 0.6, "F": 0.4}, MANNERS[1]), ({"B": 0.4, "F": 0.6}, None)]
)
async def test_the_manner_is_the_likeliest_one_or_none(share: dict[str, float], manner: str | None) -> None:
    pool, transport = scripted_pool(lambda _: share)
    assert await read_manner(pool.session("personas"), CARDS) == manner
    asked = last_user(transport.requests[0])
    assert asked.startswith(f"Descriptions:\nA. {MANNERS[0]}\n")
    assert asked.endswith(
        f"F. None of these\n\nMessages:\n- Card? Now!\n- {'x' * 199}…\n\nWhich one fits? Letter:"
    )


@pytest.mark.parametrize(
    ("goal", "found"),
    [
        ("Learn what a card costs", ["Learn what a card costs"]),
        ("Learn what bread and butter cost", ["Learn what bread and butter cost"]),
        (
            "Learn what it costs and Who pays, and when",
            ["Learn what it costs", "Learn Who pays", "Learn when"],
        ),
    ],
)
def test_a_goal_is_cut_where_another_question_begins(goal: str, found: list[str]) -> None:
    assert parts(goal) == found


def test_numbers_are_equal_however_they_are_written() -> None:
    assert (
        numbers("Rs 1,000 on 3 May 2026") == numbers("1000 rupees, 3rd of May, 2026") == {"1000", "3", "2026"}
    )
    assert numbers("sixty days") == {"60"}
    assert numbers("Her umbrella is green") == frozenset()
