"""How the answer of a bot behind an HTTP interface is read: texts, events, passages and errors."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from hallulab.chatbots import http_answer
from hallulab.chatbots.evidence import lacks_evidence
from hallulab.chatbots.protocol import ChatbotError
from hallulab.scenarios.errors import UsageError
from tests.chatbots.http_service import OPENS, URL, Service, accepted, ask, make, say, stream
from tests.chatbots.stage import LATER


async def test_passages_are_read_where_they_are() -> None:
    found = [{"page_content": "Opens at 7.", "metadata": {"source": "hours.md"}}, ""]
    reply = await ask(Service({**OPENS, "docs": found}), passages="docs")
    assert [(one.document, one.text) for one in reply.passages] == [("hours.md", "Opens at 7.")]
    assert not lacks_evidence(reply)


async def test_fields_of_a_services_passage_that_are_not_read_are_left_out() -> None:
    found = [
        {"id": 7, "content": "Opens at 7.", "chunk_no": 3, "score": "high", "topic": None, "title": "Hours"}
    ]
    reply = await ask(Service({**OPENS, "docs": found}), passages="docs")
    [passage] = reply.passages
    assert (passage.id, passage.document, passage.text, passage.score) == ("7", "Hours", "Opens at 7.", None)


async def test_events_of_texts_in_json_are_those_texts() -> None:
    assert (await ask(Service(stream('data: "It opens"', "", 'data: " at \\u0037."', "")))).text == (
        "It opens at 7."
    )
    chain = stream("event: metadata", 'data: {"run": 1}', "", "event: data", 'data: "It opens"', "")
    assert (await ask(Service(chain))).text == "It opens"
    begun = stream("event: data", 'data: "It opens"', "", "event: end", "data:", "")
    assert (await ask(Service(begun), event="@")).text == "It opens"
    assert (await ask(Service(stream('data: "At 7"', "", "data:  it opens.", "")))).text == '"At 7" it opens.'


async def test_the_data_stream_of_vercel_is_joined() -> None:
    lines = 'f:{"messageId":"m"}\n0:"It opens"\ng:"Hm."\n0:" at 7."\nd:{"finishReason":"stop"}\n'
    assert (await ask(Service(httpx2.Response(200, text=lines)), reply=None)).text == "It opens at 7."
    failed = httpx2.Response(200, text='0:"It opens"\n3:"upstream died"\n')
    with pytest.raises(ChatbotError, match="broke off its reply: upstream died"):
        await ask(Service(failed), reply=None)


async def test_an_answer_without_the_passages_gets_evidence_like_a_bot_that_names_none() -> None:
    assert lacks_evidence(await ask(Service(), passages="docs"))


async def test_events_are_joined_and_have_passages() -> None:
    events = stream(
        ": comment",
        'data: {"delta": "It opens"}',
        "",
        "event: source",
        'data: {"docs": ["Opens at 7."]}',
        "",
        'data: {"delta": " at 7."}',
        "",
        "data: [DONE]",
        "",
        'data: {"delta": " Never mind."}',
        "",
    )
    reply = await ask(Service(events), event="delta", passages="docs")
    assert (reply.text, [one.text for one in reply.passages]) == ("It opens at 7.", ["Opens at 7."])


async def test_passages_of_all_events_are_there_once() -> None:
    events = say(
        '{"docs": ["A."]}', '{"delta": "It opens at 7."}', '{"docs": ["A.", "B."]}', '{"docs": "C."}'
    )
    reply = await ask(Service(events), event="delta", passages="docs")
    assert [one.text for one in reply.passages] == ["A.", "B."]
    none = await ask(Service(say('{"docs": [], "delta": "It opens at 7."}')), event="delta", passages="docs")
    assert not lacks_evidence(none)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({**OPENS, "choices": [{"finish_reason": "length"}]}, "length"),
        ({**OPENS, "candidates": [{"finishReason": "SAFETY"}]}, "SAFETY"),
        ({**OPENS, "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({**OPENS, "messages": [{"stop_reason": "max_tokens"}, {"stop_reason": "end_turn"}]}, None),
        ({**OPENS, "finish_reason": "blue"}, None),
        (say('{"answer": {"text": "It opens"}}', '{"done_reason": "length"}'), "length"),
    ],
)
async def test_a_reply_that_was_cut_is_told(answer: Any, reason: str | None) -> None:
    reply = await ask(Service(answer), event="answer.text")
    told = [step.text for step in reply.steps if step.name == "cut"]
    assert told == ([] if reason is None else [f"The answer says that its text ended by `{reason}`."])


async def test_a_path_that_finds_no_passages_is_told_once_a_run(caplog: pytest.LogCaptureFixture) -> None:
    mute, other = (
        make(Service(), passages="docs"),
        make(Service(OPENS, {**OPENS, "docs": []}, OPENS), passages="docs"),
    )
    for bot in (mute, other):
        for _ in range(5):
            await bot.reply(LATER)
    told = "its first 3 answers have nothing at `docs` (the option `passages`). Replies without passages are"
    assert [one.getMessage() for one in caplog.records] == [f"{URL}: {told} judged by the knowledge base."]


async def test_events_of_plain_text_keep_their_spaces() -> None:
    events = stream("data: It opens", "", "data:  at", "data: 7.")
    assert (await ask(Service(events))).text == "It opens at\n7."


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            accepted(),
            r"accepted the request \(status 202\) .*no header `Location`\. Name the place in .*`job`",
        ),
        (httpx2.Response(401, json={"detail": "no key"}), "refused the request with status 401: no key"),
        (httpx2.Response(500, text="oops"), "refused the request with status 500: oops"),
        (httpx2.Response(301, headers={"Location": "https://a.example/"}), "redirects"),
        (
            {"answer": {"text": ["Hello.", "It opens at 7."]}},
            r"a list of texts at `answer.text` .*: `join\(' ', answer.text\)`\.",
        ),
        ({"mood": "tired"}, r"no text at `answer.text` \(the option `reply`\): '.*tired.*'"),
        ({"error": "tired", **OPENS}, "answered with status 200 and an error: tired"),
        ({"success": False, **OPENS}, "answered with status 200 and an error"),
        ({"result": {"isError": True, "message": "tired"}, **OPENS}, "status 200 and an error: tired"),
        (httpx2.Response(200, text="<html>"), r"gave a web page and no reply\."),
        (httpx2.Response(204), r"gave an empty answer \(status 204\)"),
        (
            httpx2.Response(302, headers={"Location": "/login?next=/chat"}),
            r"redirects \(status 302\) to http://127.0.0.1:9000/login\. If that is the bot, give it in "
            r"`url`; if it is a login, send what that gives in `headers`\.",
        ),
        ({"answer": {"text": " \u200b"}}, "the bot's reply is empty"),
        (stream('data: {"delta": "x"}', ""), "its events are JSON. Say where each has its piece in `event`"),
        (httpx2.ConnectError("no"), "cannot be reached"),
        (httpx2.Response(200, content=b"x" * (17 << 20)), "gave an answer of more than 16 MiB"),
    ],
)
async def test_what_goes_wrong_is_one_sentence(answer: Any, reason: str) -> None:
    with pytest.raises(ChatbotError, match=reason) as caught:
        await ask(Service(answer))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"status": "error", "message": "Rate limit exceeded"}, "message"),
        ({"error": True, "message": "Rate limit exceeded"}, "message"),
        ({"code": 429, "msg": "Rate limit exceeded"}, "msg"),
    ],
)
async def test_an_error_with_a_status_of_success_is_no_reply(body: dict[str, Any], path: str) -> None:
    with pytest.raises(ChatbotError, match="status 200 and an error: Rate limit exceeded"):
        await ask(Service(body), reply=path)


@pytest.mark.parametrize(
    "body",
    [
        {"status": "ok", "message": "It opens at 7."},
        {"code": 200, "error": None, "message": "It opens at 7."},
        {"type": "internal", "detail": "desk", "message": "It opens at 7."},
    ],
)
async def test_an_answer_that_tells_its_success_is_a_reply(body: dict[str, Any]) -> None:
    assert (await ask(Service(body), reply="message")).text == "It opens at 7."


async def test_a_login_page_is_no_reply_in_text() -> None:
    page = httpx2.Response(200, html="<!DOCTYPE html><html><head><title>Sign in</title></head></html>")
    with pytest.raises(ChatbotError, match=r"gave a web page \('Sign in'\) and no reply"):
        await ask(Service(page), reply=None)
    piece = httpx2.Response(200, html="<p>It opens at 7.</p>")
    assert (await ask(Service(piece), reply=None)).text == "<p>It opens at 7.</p>"


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/json", "text/plain"])
async def test_json_lines_are_events(kind: str) -> None:
    lines = '{"delta": "It opens"}\n{"docs": ["Opens at 7."]}\n{"delta": " at 7."}\n'
    answer = httpx2.Response(200, content=lines.encode(), headers={"Content-Type": kind})
    reply = await ask(Service(answer), reply=None, event="delta", passages="docs")
    assert (reply.text, [one.text for one in reply.passages]) == ("It opens at 7.", ["Opens at 7."])


@pytest.mark.parametrize("kind", ["application/x-ndjson", "text/plain"])
async def test_json_lines_without_a_place_of_the_piece_are_told(kind: str) -> None:
    answer = httpx2.Response(200, content=b'{"t": "It"}\n{"t": "opens"}\n', headers={"Content-Type": kind})
    with pytest.raises(ChatbotError, match=r"its events are JSON\. Say where each has its piece in `event`"):
        await ask(Service(answer), reply=None)


async def test_events_are_read_whatever_they_are_called() -> None:
    text = 'data: {"delta": "It opens"}\n\ndata: {"delta": " at 7."}\n\n'
    assert (await ask(Service(httpx2.Response(200, text=text)), event="delta")).text == "It opens at 7."
    said = httpx2.Response(200, text="data: the fee is 3 €.")
    assert (await ask(Service(said), reply=None)).text == "data: the fee is 3 €."


@pytest.mark.parametrize(
    "broken",
    [
        ["event: error", 'data: {"message": "upstream died"}', ""],
        ["event: error", "data: upstream died", ""],
        ['data: {"error": {"message": "upstream died"}}', ""],
    ],
)
async def test_half_a_reply_and_an_error_are_no_reply(broken: list[str]) -> None:
    with pytest.raises(ChatbotError, match=f"{URL} broke off its reply: upstream died"):
        await ask(Service(stream('data: {"delta": "It opens"}', "", *broken)), event="delta")


async def test_a_text_that_is_told_again_is_there_once() -> None:
    events = stream(*(f'data: {{"delta": "{one}"}}\n' for one in ("It", "It opens", "It opens at 7.")))
    assert (await ask(Service(events), event="delta")).text == "It opens at 7."


async def test_a_text_in_place_of_a_stream_is_told() -> None:
    answer = httpx2.Response(200, text='{"t": "It opens"}{"t": " at 7."}')
    with pytest.raises(ChatbotError, match=r"its answer is no stream of events \(the option `event`\)"):
        await ask(Service(answer), event="t")


async def test_events_without_a_piece_are_told_with_the_path() -> None:
    with pytest.raises(
        ChatbotError, match=r"none of its events has a text at `delta` \(the option `event`\)"
    ):
        await ask(Service(stream('data: {"token": "It opens"}', "")), event="delta")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Ab 7 Uhr geöffnet: 3 €".encode("cp1252"), "text/plain; charset=windows-1252"),
        ("Ab 7 Uhr geöffnet: 3 €".encode(), "text/plain; charset=windows-1252"),
        ("data: Ab 7 Uhr geöffnet: 3 €\n\n".encode("cp1252"), "text/event-stream; charset=cp1252"),
    ],
)
async def test_letters_are_read_as_they_were_written(content: bytes, kind: str) -> None:
    answer = httpx2.Response(200, content=content, headers={"Content-Type": kind})
    assert (await ask(Service(answer), reply=None)).text == "Ab 7 Uhr geöffnet: 3 €"


@pytest.mark.parametrize("letters", ["gbk", "cp1251"])
async def test_letters_of_which_nobody_says_what_they_are_are_refused(letters: str) -> None:
    written = {"gbk": "我们七点开门", "cp1251": "Мы открываемся в семь"}[letters].encode(letters)
    answer = httpx2.Response(200, content=written, headers={"Content-Type": "text/plain"})
    with pytest.raises(ChatbotError, match="names no charset that they are in"):
        await ask(Service(answer), reply=None)


async def test_json_without_a_place_of_the_reply_is_told() -> None:
    with pytest.raises(ChatbotError, match=r"its answer is JSON: .*\. Say where the reply is in `reply`"):
        await ask(Service(), reply=None)


async def test_more_events_than_a_reply_can_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_answer, "_MOST_EVENTS", 2)
    with pytest.raises(ChatbotError, match="more than 2 events"):
        await ask(Service(say("x", "y", "z")), reply=None)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("[" * 900, "too deep|is no JMESPath"),
        ("a" + ".a" * 600, "more than 1,000 characters"),
        ("|".join(["[@, @][]"] * 20), "makes 1,048,576 copies"),
    ],
)
def test_a_path_that_would_take_the_memory_is_refused(path: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(Service(), reply=path)


@pytest.mark.parametrize(
    "path", ["ceil(to_number(answer.text))", "answer.text[::0]", "contains(answer.text, `1`)"]
)
async def test_a_function_that_does_not_take_the_value_finds_nothing(path: str) -> None:
    with pytest.raises(ChatbotError, match="its answer has no text at"):
        await ask(Service({"answer": {"text": "Infinity"}}), reply=path)
