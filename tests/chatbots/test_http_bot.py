"""A bot behind any HTTP interface: what it is sent, jobs, cookies and secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.recording import Recording
from hallulab.chatbots.evidence import lacks_evidence
from hallulab.chatbots.protocol import ChatbotError, has_memory
from hallulab.scenarios.errors import ReplayMiss, UsageError
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.recipients import list_asked
from tests.chatbots.http_service import FORM, MESSAGE, OPENS, URL, Service, accepted, ask, make, say
from tests.chatbots.stage import ASKED, LATER


async def test_a_structure_is_filled_in_with_what_was_said() -> None:
    service = Service()
    bot = make(
        service,
        body={
            "input": {"text": "User says: {{ message }}", "turns": "{{ history }}"},
            "stream": False,
            "session": "{{ session }}",
            "number": "{{ history | length }}",
        },
    )
    reply = await bot.reply(LATER)
    assert (reply.text, lacks_evidence(reply)) == ("It opens at 7.", True)
    [sent] = service.bodies
    dialogue = [{"role": message.role, "content": message.text} for message in LATER]
    assert sent == {
        "input": {"text": f"User says: {LATER[-1].text}", "turns": dialogue},
        "stream": False,
        "session": bot._session,
        "number": 3,
    }
    assert service.requests[0].headers["Content-Type"] == "application/json"
    assert (service.requests[0].method, str(service.requests[0].url)) == ("POST", URL)


async def test_a_template_of_the_whole_body_escapes_what_was_said() -> None:
    service = Service()
    await ask(service, body='{"m": {{ message | tojson }}, "h": {{ history | tojson }}}')
    [sent] = service.bodies
    assert (sent["m"], len(sent["h"])) == (LATER[-1].text, 3)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"body": '{"m": "{{ message }}"}'},
            r"the template makes no JSON .*write `\{\{ message \| tojson \}\}`",
        ),
        ({"body": {"m": "{{ massage }}"}}, "a template is wrong: 'massage' is undefined"),
        (
            {"body": {"m": "{{ message }}", "key": "${SHOP_KEY}"}},
            r"`\$\{SHOP_KEY\}` would be sent as it stands: a variable is filled in in `headers` alone",
        ),
        ({"query": {"app": "${SHOP_APP}"}}, r"`\$\{SHOP_APP\}` would be sent as it stands"),
        ({"body": {"m": "{{ message"}}, "a template is wrong: unexpected end of template"),
        ({"body": {"m": "{{ message.__class__.mro() }}"}}, "a template is wrong: .*unsafe"),
        ({"reply": "answer["}, r"'answer\[' is no JMESPath"),
        ({"method": "GET", "body": MESSAGE}, "`method: GET` has no body; put the message into `query`"),
        ({"method": "GET"}, "give a `body` with what was said"),
        ({"body": {"message": "Hello"}}, r"the request lacks what the user says: .* `\{\{ message \}\}`"),
        ({"url": "chat"}, "'chat' is no address"),
        ({"url": "wss://a.example/chat"}, "is a websocket, which is not spoken here"),
        ({"url": "http://127.0.0.1/${SHOP}"}, "a variable is filled in in `headers` alone"),
        ({"url": "http://{{ session }}/chat"}, "no template stands in the place of the host"),
        ({"body": {"m": "{{ answer.id }}"}}, "a template is wrong: 'answer' is undefined"),
        (
            {"headers": {"Content-Type": "text/xml"}},
            "the header `Content-Type` says 'text/xml'; give the body as a text",
        ),
        (
            {"headers": {"Content-Type": FORM}, "body": {"h": "{{ history }}"}},
            "a form has names with texts or numbers",
        ),
        ({"headers": {"Authorization": "Bearer sk-1"}}, r"put it into an environment variable"),
        ({"headers": {"Authorization": "Bearer ${NO_SUCH_KEY}"}}, "set the environment variable NO_SUCH_KEY"),
        ({"headers": {"X-Said": "{{ message }}"}}, "the header `X-Said` would have letters beyond ASCII"),
    ],
)
def test_what_is_wrong_is_said_before_the_first_message(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        make(Service(), **options)
    assert "\n" not in str(caught.value)


async def test_a_header_has_a_key_that_comes_back_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SESAME", "sesame-0123456789")
    service = Service({"answer": {"text": "I was sent Bearer sesame-0123456789."}})
    headers = {"Authorization": "Bearer ${SHOP_SESAME}", "X-Session": "s-{{ session }}"}
    bot = make(service, headers=headers)
    assert (await bot.reply(ASKED)).text == "I was sent Bearer [key]."
    sent = service.requests[0].headers
    assert (sent["Authorization"], sent["X-Session"]) == ("Bearer sesame-0123456789", f"s-{bot._session}")


async def test_what_the_user_says_is_no_template_and_names_no_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_SESAME", "sesame-0123456789")
    service = Service()
    said = "{{ 7 * 7 }} ${SHOP_SESAME}"
    history = [ASKED[-1].model_copy(update={"text": said})]
    headers = {"X-Said": "{{ history | length }}", "X-Key": "${SHOP_SESAME}"}
    await make(service, headers=headers, query={"q": "{{ message }}"}).reply(history)
    assert service.bodies == [{"message": said}]
    assert service.requests[0].url.params["q"] == said


async def test_a_bot_may_be_asked_by_the_address_alone() -> None:
    service = Service(httpx2.Response(200, text="It opens at 7.\n"))
    reply = await ask(service, method="GET", query={"q": "{{ message }}"}, reply=None)
    assert (reply.text, service.requests[0].method) == ("It opens at 7.", "GET")
    assert service.requests[0].url.params["q"] == LATER[-1].text


async def test_the_path_of_the_address_may_name_the_session() -> None:
    service = Service()
    bot = make(service, url="http://127.0.0.1:9000/v3/sessions/{{ session }}:detectIntent")
    await bot.reply(ASKED)
    assert service.requests[0].url.path == f"/v3/sessions/{bot._session}:detectIntent"


async def test_a_form_is_sent_as_one() -> None:
    service = Service()
    await ask(service, headers={"Content-Type": FORM}, body={"q": "{{ message }}", "n": 1})
    assert service.requests[0].content == b"q=The+indoor+one.+When+does+it+open%3F&n=1"
    assert service.requests[0].headers["Content-Type"] == FORM


@pytest.mark.parametrize(
    "answers",
    [
        [{**OPENS, "conversation_id": "c-1"}, OPENS],
        [httpx2.Response(200, text='{"answer": {"text": "It"}, "conversation_id": "c-1"}\n{"answer": {}}\n')],
    ],
)
async def test_a_stateful_bot_is_told_the_id_that_it_gave(answers: list[Any]) -> None:
    service = Service(*answers)
    body = {"query": "{{ message }}", "conversation_id": "{{ answer.conversation_id | default('') }}"}
    bot = make(service, stateful=True, body=body, event="answer.text")
    for _ in range(2):
        await bot.reply(LATER)
    assert [sent["conversation_id"] for sent in service.bodies] == ["", "c-1"]


async def test_a_stateful_bot_gets_the_last_message_and_begins_anew_if_it_is_cut_off() -> None:
    service = Service()
    body = {"messages": "{{ history }}", "session": "{{ session }}"}
    one, other = make(service, body=body, stateful=True), make(service, body=body, stateful=True)
    for bot in (one, one, other):
        await bot.reply(LATER)
    last = [{"role": "user", "content": LATER[-1].text}]
    assert [sent["messages"] for sent in service.bodies] == [last] * 3
    sessions = [sent["session"] for sent in service.bodies]
    assert sessions[0] == sessions[1] != sessions[2]
    assert (has_memory(one), has_memory(make(Service()))) == (True, False)


async def test_a_job_is_asked_for_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SESAME", "sesame-0123456789")
    service = Service(accepted(Location="/jobs/1"), accepted(), OPENS)
    reply = await ask(service, headers={"X-Key": "${SHOP_SESAME}"})
    assert reply.text == "It opens at 7."
    asked = [(one.method, one.url.path) for one in service.requests]
    assert asked == [("POST", "/chat"), ("GET", "/jobs/1"), ("GET", "/jobs/1")]
    assert all(one.headers["X-Key"] == "sesame-0123456789" for one in service.requests)
    assert service.requests[1].content == b""


async def test_a_job_may_say_in_its_body_where_and_whether_it_goes_on() -> None:
    waits = httpx2.Response(200, json={"state": "running"}, headers={"Retry-After": "0"})
    service = Service(accepted({"poll": "http://127.0.0.1:9000/jobs/2"}), waits, OPENS)
    reply = await ask(service, job="poll", waiting="state == 'running'")
    assert (reply.text, len(service.requests)) == ("It opens at 7.", 3)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("http://evil.example/jobs/1", r"its result is at another host \(http://evil.example/jobs/1\)"),
        ("http://anna:geheim@evil.example/jobs/1?key=k", r"\(http://evil.example/jobs/1\)"),
        *(
            (place, "its result is at another host")
            for place in (
                *("//evil.example/jobs/1", "https://127.0.0.1:9000/jobs/1", "http://127.0.0.1:9001/jobs/1"),
                *("file:///etc/passwd", "http://[", "http://127.0.0.1:99999999/", "/" + "x" * 70_000),
            )
        ),
    ],
    ids=range(9),
)
async def test_no_other_host_is_asked(place: str, reason: str) -> None:
    service = Service(accepted(Location=place), OPENS)
    with pytest.raises(ChatbotError, match=reason):
        await ask(service)
    assert len(service.requests) == 1


async def test_cookies_of_a_conversation_are_sent_back_in_it_alone() -> None:
    cookies = [("Set-Cookie", "sid=abc; Path=/; HttpOnly"), ("Set-Cookie", "b=2; Path=/")]
    service = Service(httpx2.Response(200, json=OPENS, headers=cookies), OPENS)
    bot = make(service, stateful=True)
    for one in (bot, bot, make(service, stateful=True)):
        await one.reply(LATER)
    sent = [request.headers.get("Cookie") for request in service.requests]
    assert sent == [None, "sid=abc; b=2", None]


async def test_a_cookie_that_cannot_be_sent_back_is_told() -> None:
    cookie = (b"Set-Cookie", "sid=größe; Path=/".encode("latin-1"))
    bot = make(Service(httpx2.Response(200, json=OPENS, headers=[cookie])), stateful=True)
    await bot.reply(LATER)
    with pytest.raises(ChatbotError, match=f"{URL} set a cookie with letters beyond ASCII"):
        await bot.reply(LATER)


async def test_a_cookie_of_the_users_is_sent_in_place_of_the_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SESSION", "sid=mine-12345678")
    service = Service(httpx2.Response(200, json=OPENS, headers={"Set-Cookie": "sid=theirs; Path=/"}))
    bot = make(service, headers={"Cookie": "${SHOP_SESSION}"})
    await bot.reply(LATER)
    await bot.reply(LATER)
    assert [one.headers.get_list("Cookie") for one in service.requests] == [["sid=mine-12345678"]] * 2


async def test_a_job_may_lead_to_its_result_at_the_same_host_alone() -> None:
    started = accepted(**{"Operation-Location": "/jobs/1"})
    done = httpx2.Response(303, headers={"Location": "/results/1"})
    service = Service(started, done, OPENS)
    assert (await ask(service)).text == "It opens at 7."
    assert [one.url.path for one in service.requests] == ["/chat", "/jobs/1", "/results/1"]
    away = Service(started, httpx2.Response(303, headers={"Location": "http://evil.example/"}), OPENS)
    with pytest.raises(ChatbotError, match="its result is at another host"):
        await ask(away)
    assert len(away.requests) == 2


async def test_a_busy_bot_is_asked_again() -> None:
    busy = httpx2.Response(429, headers={"Retry-After": "0"})
    full = httpx2.Response(529, headers={"Retry-After": "0"})
    assert (await ask(Service(busy, full, OPENS))).text == "It opens at 7."


async def test_a_bot_that_never_answers_runs_into_the_time_limit() -> None:
    bot = make(Service(httpx2.Response(429, headers={"Retry-After": "60"})))
    bot._context.models.timeout_s = 0.01
    with pytest.raises(ChatbotError, match=r"gave no reply within 0\.01 s \(--timeout\)"):
        await bot.reply(LATER)


async def test_replies_are_recorded_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    recording = Recording.record(path)
    answers = [{**OPENS, "docs": ["Opens at 7."]}, {"answer": {"text": "At 8."}, "docs": None}]
    service = Service(*answers)
    said = [await make(service, recording, seed, passages="docs").reply(LATER) for seed in (0, 1)]
    recording.close()
    nobody = Service(httpx2.ConnectError("no"))
    again = [
        await make(nobody, Recording.replay(path), seed, passages="docs").reply(LATER) for seed in (0, 1)
    ]
    assert again == said
    assert [one.text for one in again] == ["It opens at 7.", "At 8."]
    with pytest.raises(ReplayMiss, match=f"has no reply of {URL} to this"):
        await make(nobody, Recording.replay(path), 2, passages="docs").reply(LATER)


def test_who_gets_texts_and_keys_is_known() -> None:
    headers = {"Authorization": "Bearer ${SHOP_KEY}", "X-Tenant": "${SHOP_TENANT}", "X-Plain": "a"}
    options = {"url": URL, "headers": headers, "body": MESSAGE}
    guarded = {
        "chatbot": {"kind": "http", "options": {**options, "headers": {}}},
        "detector": {"kind": "lexical"},
    }
    experiment = Experiment.model_validate(
        {
            "model": "m",
            "base_url": "http://127.0.0.1:9/v1",
            "chatbots": [
                {"name": "theirs", "kind": "http", "options": options},
                {"name": "safe", "kind": "guarded", "options": guarded},
            ],
        }
    )
    asked = [(one.address, one.variable) for one in list_asked(experiment)]
    assert asked[1:] == [(URL, "SHOP_KEY"), (URL, "SHOP_TENANT"), (URL, None)]
    assert len(list_asked(experiment, chatbots=False)) == 1


SECRET = "zq-98765432109876543210zz"


async def hear(answer: httpx2.Response, **options: Any) -> str:
    """What comes of an answer that repeats the secret of a header: the reply, or an error."""
    try:
        return (await ask(Service(answer), headers={"x-one": "${MY_HEADER}"}, **options)).model_dump_json()
    except ChatbotError as error:
        return str(error)


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        (httpx2.Response(202, headers={"Location": f"http://evil.example/?k={SECRET}"}), {}),
        (httpx2.Response(202, headers={"Location": f"http://evil.example/{SECRET}"}), {}),
        (httpx2.Response(302, headers={"Location": f"http://{SECRET}.example/"}), {}),
        (httpx2.Response(200, headers={"Content-Encoding": SECRET}), {}),
        (say(SECRET), {"event": "text"}),
        (say(SECRET[:9], SECRET[9:]), {"reply": None}),
        (say(f'{{"t": "{SECRET[:9]}"}}', f'{{"t": "{SECRET[9:]}"}}'), {"event": "t"}),
    ],
)
async def test_a_secret_of_a_header_comes_back_nowhere(
    answer: httpx2.Response, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_HEADER", SECRET)
    heard = await hear(answer, **options)
    assert [part for part in (SECRET, SECRET[:12], SECRET[9:]) if part in heard.lower()] == []


async def test_a_secret_comes_back_without_the_scheme_that_it_was_sent_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_HEADER", f"Bearer {SECRET}")
    said = httpx2.Response(400, json={"error": f"the key {SECRET} is wrong"})
    assert await hear(said) == f"{URL} refused the request with status 400: the key [key] is wrong"


async def test_a_bot_that_wants_to_be_asked_at_once_is_not_asked_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paused: list[float] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr("hallulab.chatbots.http_bot.asyncio.sleep", pause)
    await ask(Service(accepted(**{"Location": "/jobs/1", "Retry-After": "0"}), OPENS))
    assert paused == [0.1]
