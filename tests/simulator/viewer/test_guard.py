"""Requests that must not reach the viewer, and what every answer says to browsers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping
from typing import Any

import pytest

from hallulab.simulator.viewer import guard
from hallulab.simulator.viewer.guard import LARGEST_BODY, Access, Guard, Scope, build_policy

PORT = 8765
TOKEN = "right-token-0123456789"
ACCESS = Access(PORT, token=TOKEN)
HOST = ("host", f"127.0.0.1:{PORT}")
COOKIE = ("cookie", f"hallulab-{PORT}={TOKEN}")
ORIGIN = ("origin", f"http://127.0.0.1:{PORT}")
LENGTH = ("content-length", "2")
MARKED = ("x-hallulab", "1")
Header = tuple[str, str]


def ask(
    *headers: Header, method: str = "GET", path: str = "/", query: str = "", body: bytes = b"{}"
) -> tuple[int, dict[str, str], bytes, bytes | None]:
    """The status, headers and body of an answer, and the body that the application got; None: nothing."""
    reached: list[bytes] = []
    sent: list[MutableMapping[str, Any]] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        message = await receive()
        reached.append(message.get("body", b"cut"))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"secret"})

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
    }
    asyncio.run(Guard(app, ACCESS, build_policy(["a"], ["b"]))(scope, receive, send))
    start, end = sent
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], found, end["body"], reached[0] if reached else None


READ = (HOST, COOKIE)
WRITE = (HOST, COOKIE, ORIGIN, MARKED, LENGTH)


def without(headers: Iterable[Header], *names: str) -> list[Header]:
    return [header for header in headers if header[0] not in names]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_a_reader_with_the_token_comes_in(name: str) -> None:
    assert ask(("host", f"{name}:{PORT}"), COOKIE)[0] == 200


def test_a_writer_with_all_that_is_needed_comes_in() -> None:
    assert ask(*WRITE, method="POST")[::3] == (200, b"{}")


FOREIGN_HOSTS = [
    *(
        "",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:80",
        f"127.0.0.2:{PORT}",
        f"0.0.0.0:{PORT}",
        f" 127.0.0.1:{PORT}",
    ),
    *(f"evil.example:{PORT}", f"localhost.evil.example:{PORT}", f"127.0.0.1.evil.example:{PORT}"),
    *(f"evil.example@127.0.0.1:{PORT}", f"127.0.0.1:{PORT}@evil.example", f"127.0.0.1:{PORT}.evil.example"),
    *(f"127.0.0.1:{PORT},evil.example", f"127.0.0.1:{PORT}/", f"LOCALHOST:{PORT}", f"localhost.:{PORT}"),
    *(f"[::]:{PORT}", f"[::ffff:127.0.0.1]:{PORT}", f"2130706433:{PORT}", f"0x7f.1:{PORT}"),
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused(host: str) -> None:
    status, _, body, reached = ask(("host", host), COOKIE)
    assert (status, reached) == (421, None)
    assert b"secret" not in body


def test_no_host_and_two_hosts_are_refused() -> None:
    assert ask(COOKIE)[0] == 421
    assert ask(HOST, HOST, COOKIE)[0] == 421
    assert ask(HOST, ("host", "evil.example"), COOKIE)[0] == 421


FOREIGN_ORIGINS = [
    *("null", "", "http://evil.example", "https://127.0.0.1:8765", "http://127.0.0.1", "http://127.0.0.1:80"),
    *("http://127.0.0.1:87650", "http://localhost:8765.evil.example", "http://localhost:8765@evil.example"),
    *("http://evil.example:8765", "http://LOCALHOST:8765", "http://127.0.0.1:8765/"),
    *("http://127.0.0.1:8765 http://evil.example", "file://", "chrome-extension://abc"),
]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_foreign_origin_is_refused(origin: str, method: str) -> None:
    status, _, _, reached = ask(*without(WRITE, "origin"), ("origin", origin), method=method)
    assert (status, reached) == (403, None)


WRONG_TOKENS = ["", "wrong", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), f" {TOKEN}", f"{TOKEN}%00", "é", "*"]


@pytest.mark.parametrize("token", WRONG_TOKENS)
def test_a_wrong_token_in_the_address_is_refused(token: str) -> None:
    assert ask(HOST, query=f"token={token}")[::3] == (403, None)


def test_a_wrong_token_is_refused_although_the_cookie_is_right_and_none_writes() -> None:
    assert ask(*READ, query="token=wrong")[::3] == (403, None)
    assert ask(*READ, query=f"token={TOKEN}&token=wrong")[::3] == (403, None)
    assert ask(*without(WRITE, "cookie"), method="POST", query=f"token={TOKEN}")[::3] == (403, None)


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        f"hallulab-{PORT}=wrong",
        f"hallulab-{PORT}={TOKEN}0",
        f"hallulab-{PORT + 1}={TOKEN}",
        f"hallulab={TOKEN}",
        f"HALLULAB-{PORT}={TOKEN}",
        f"x=hallulab-{PORT}={TOKEN}",
        f'hallulab-{PORT}="{TOKEN}\\073"',
        "\x00\x01;;;=",
    ],
)
def test_a_wrong_cookie_is_refused(cookie: str) -> None:
    assert ask(HOST, ("cookie", cookie))[::3] == (403, None)


def test_the_token_becomes_a_cookie_and_leaves_the_address() -> None:
    status, headers, _, reached = ask(HOST, path="/runs/a b", query=f"page=2&token={TOKEN}&persona=%C3%A9+x")
    assert (status, reached) == (303, None)
    assert headers["location"] == "/runs/a%20b?page=2&persona=%C3%A9+x"
    assert headers["set-cookie"] == f"hallulab-{PORT}={TOKEN}; HttpOnly; SameSite=Strict; Path=/"


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example"])
def test_leaving_out_the_token_leads_to_no_other_host(path: str) -> None:
    location = ask(HOST, path=path, query=f"token={TOKEN}")[1]["location"]
    assert location.startswith("/evil.example")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "target"),
    [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("navigate", "embed")],
)
def test_another_page_embeds_nothing(site: str, mode: str, target: str) -> None:
    fetched = (("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", target))
    assert ask(*READ, *fetched)[::3] == (403, None)


def test_a_link_from_another_page_may_be_followed() -> None:
    fetched = {"site": "cross-site", "mode": "navigate", "dest": "document"}
    assert ask(*READ, *((f"sec-fetch-{name}", value) for name, value in fetched.items()))[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("lacking", ["host", "origin", "cookie", "x-hallulab", "content-length"])
def test_a_writer_needs_everything(lacking: str, method: str) -> None:
    status, _, _, reached = ask(*without(WRITE, lacking), method=method)
    assert status in (403, 413, 421)
    assert reached is None


@pytest.mark.parametrize("length", ["", "-1", "1e3", str(LARGEST_BODY + 1), "9" * 30, "9" * 5_000])
def test_a_body_of_another_length_is_refused(length: str) -> None:
    headers = (*without(WRITE, "content-length"), ("content-length", length))
    assert ask(*headers, method="POST")[::3] == (413, None)


def test_a_body_that_is_longer_than_it_said_is_cut() -> None:
    assert ask(*WRITE, method="POST", body=b"x" * (LARGEST_BODY + 1))[3] == b"cut"


def test_too_many_fields_bring_no_token() -> None:
    assert ask(HOST, query="&".join(["a=1"] * 99 + [f"token={TOKEN}"]))[::3] == (403, None)


@pytest.mark.parametrize("headers", [READ, (HOST,), (COOKIE,)])
def test_every_answer_carries_the_policy(headers: tuple[Header, ...]) -> None:
    found = ask(*headers)[1]
    assert found["content-security-policy"] == (
        "default-src 'none'; script-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; "
        "style-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    assert found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer"
    assert found["cross-origin-resource-policy"] == "same-origin"
    assert found["cache-control"] == "no-store"


def test_tokens_are_long_and_differ() -> None:
    assert len({Access(PORT).token for _ in range(20)}) == 20
    assert len(Access(PORT).token) >= 32


def refuse(parts: Iterable[bytes], ends: bool = True) -> tuple[int, int]:
    """Refuse a request whose body comes in parts; the status, and how many bytes were read of it."""
    read = 0
    waiting = [*parts]
    sent: list[MutableMapping[str, Any]] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        raise AssertionError("a refused request reached the application")

    async def receive() -> MutableMapping[str, Any]:
        nonlocal read
        if not waiting:
            assert not ends
            await asyncio.Event().wait()
        part = waiting.pop(0)
        read += len(part)
        return {"type": "http.request", "body": part, "more_body": bool(waiting) or not ends}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    headers = [(name.encode(), value.encode()) for name, value in (HOST, COOKIE, MARKED, LENGTH)]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(Guard(app, ACCESS, build_policy(["a"], ["b"]))(scope, receive, send))
    return sent[0]["status"], read


def test_the_body_of_a_refused_request_is_read_before_the_answer() -> None:
    assert refuse([b"x" * 1000] * 50) == (403, 50_000)


def test_no_more_than_the_largest_body_is_read_of_a_refused_request() -> None:
    part = LARGEST_BODY // 4
    assert refuse([b"x" * part] * 100) == (403, LARGEST_BODY + part)


def test_a_refused_request_whose_body_never_ends_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "DISCARD_S", 0.01)
    assert refuse([b"x"], ends=False) == (403, 1)
