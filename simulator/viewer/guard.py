"""Who may talk to the viewer: exact hosts and origins, a token, and the headers of every page.

Loopback is no boundary. Any page that a browser has open can send requests here, and a name of its own can be
made to lead here (DNS rebinding). So a request must be addressed to us by a name that we have, must not come
from another page, and must bring the token: once in the address, from then on in a cookie.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from hallulab.scenarios.text.words import parse_whole_number

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MARKER = "x-hallulab"
"""Header of requests that write. No form and no link of another page can set it."""

LARGEST_BODY = 1 << 20
"""Bytes of a request at most."""

DISCARD_S = 5.0
"""Seconds in which the body of a refused request is read at most."""

READING = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Access:
    """Host, origin and token that a request must have."""

    port: int
    hosts: tuple[str, ...] = _LOOPBACK
    """Names by which the viewer is called, without the port."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies are shared by all ports of a host, so it has the port in it."""
        return f"hallulab-{self.port}"

    @property
    def authorities(self) -> frozenset[str]:
        """Values of `Host` that are ours."""
        return frozenset(f"{host}:{self.port}" for host in self.hosts)

    @property
    def origins(self) -> frozenset[str]:
        """Values of `Origin` that are ours."""
        return frozenset(f"http://{authority}" for authority in self.authorities)

    def knows(self, given: str) -> bool:
        """Return whether this is the token, in a time that depends on no part of it."""
        return hmac.compare_digest(given.encode(), self.token.encode())


def hash_source(text: str) -> str:
    """Return the source of a content security policy that allows exactly this script or style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def build_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the content security policy of pages with these scripts and style sheets, and no others."""
    allowed = {
        "default-src": ["'none'"],
        "script-src": [*map(hash_source, scripts)],
        "style-src": [*map(hash_source, styles)],
        "connect-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
    return "; ".join(f"{name} {' '.join(sources)}" for name, sources in allowed.items())


class Guard:
    """Refuses what must not reach the application, and adds to each answer what browsers must know."""

    def __init__(self, app: App, access: Access, policy: str) -> None:
        self._app = app
        self._access = access
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket has no use here
            return

        async def send_marked(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        refusal = self._find_refusal(scope)
        if refusal is not None:
            status, reason = refusal
            await _discard_body(receive)
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send_marked({"type": "http.response.start", "status": status, "headers": headers})
            await send_marked({"type": "http.response.body", "body": f"{reason}\n".encode()})
        elif (address := self._drop_token(scope)) is not None:
            await self._let_in(send_marked, address)
        elif scope["method"] in READING:
            await self._app(scope, receive, send_marked)
        else:
            await self._app(scope, _limit(receive), send_marked)

    def _find_refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the reason why a request is refused; None: it is not."""
        access = self._access
        if _get_all(scope, "host") not in ([name] for name in access.authorities):
            return 421, "This address is not the viewer's. Open the one that `hallulab view` printed."
        origins = _get_all(scope, "origin")
        if origins and origins not in ([origin] for origin in access.origins):
            return 403, "This request comes from another page."
        if _get_all(scope, "sec-fetch-site") in (["cross-site"], ["same-site"]) and not _is_navigation(scope):
            return 403, "This request comes from another page."
        if not self._has_token(scope):
            return 403, "The token is missing or wrong. Open the address that `hallulab view` printed."
        if scope["method"] not in READING:
            if not origins:
                return 403, "A request that writes must name its origin."
            if _get_all(scope, MARKER) != ["1"]:
                return 403, f"A request that writes must have the header {MARKER}."
            length = _get_all(scope, "content-length")
            size = parse_whole_number(length[0]) if len(length) == 1 else None
            if size is None or size > LARGEST_BODY:
                return 413, f"A request that writes must have a length, of at most {LARGEST_BODY} bytes."
        return None

    def _has_token(self, scope: Scope) -> bool:
        given = [value for name, value in _read_query(scope) if name == "token"]
        if given:
            return scope["method"] in READING and all(map(self._access.knows, given))
        return any(map(self._access.knows, _read_cookies(scope, self._access.cookie)))

    def _drop_token(self, scope: Scope) -> str | None:
        """Return the address without the token, so that it is in no history; None: it has none."""
        query = _read_query(scope)
        others = [pair for pair in query if pair[0] != "token"]
        if len(others) == len(query):
            return None
        path = "/" + quote(scope["path"].lstrip("/\\"))  # with two slashes, it would be another host's
        return f"{path}?{urlencode(others)}" if others else path

    async def _let_in(self, send: Send, address: str) -> None:
        cookie = f"{self._access.cookie}={self._access.token}; HttpOnly; SameSite=Strict; Path=/"
        await send(
            {
                "type": "http.response.start",
                "status": 303,
                "headers": [(b"location", address.encode()), (b"set-cookie", cookie.encode())],
            }
        )
        await send({"type": "http.response.body", "body": b""})


def _get_all(scope: Scope, name: str) -> list[str]:
    wanted = name.encode()
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == wanted]


def _is_navigation(scope: Scope) -> bool:
    """Return whether somebody followed a link or typed the address: no other page learns the answer."""
    mode, target = _get_all(scope, "sec-fetch-mode"), _get_all(scope, "sec-fetch-dest")
    return scope["method"] in READING and mode == ["navigate"] and target == ["document"]


def _read_query(scope: Scope) -> list[tuple[str, str]]:
    try:
        return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=50)
    except ValueError:  # more fields than any page of ours sends
        return []


_COOKIE = re.compile(r"[A-Za-z0-9_-]{1,200}")


def _read_cookies(scope: Scope, name: str) -> list[str]:
    found = []
    for header in _get_all(scope, "cookie"):
        try:
            morsel = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if morsel is not None and _COOKIE.fullmatch(morsel.value):
            found.append(morsel.value)
    return found


def _limit(receive: Receive) -> Receive:
    """Return what receives a body of at most `LARGEST_BODY` bytes, whatever its header said."""
    got = 0

    async def receive_some() -> MutableMapping[str, Any]:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        return {"type": "http.disconnect"} if got > LARGEST_BODY else message

    return receive_some


async def _discard_body(receive: Receive) -> None:
    """Read the body of a refused request, as far as one may be large.

    A connection that is closed while its client still sends is reset, and the client sees no answer.
    """
    got = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while got <= LARGEST_BODY:
                message = await receive()
                got += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
