"""An endpoint on loopback that repeats the key that it was sent, in every way that it can."""

from __future__ import annotations

import base64
import html
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from hallulab.testing.scripted import completion

Way = Callable[[str], bytes]
"""From a key to a whole HTTP answer."""


def http(
    body: bytes | str, status: int = 200, headers: dict[str, str] | None = None, reason: str = "Said"
) -> bytes:
    """An HTTP answer as it goes over the wire."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} {reason}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def in_json_escapes(key: str) -> str:
    """The key as the JSON text of a zealous server, without quotes."""
    return "".join(f"\\u{ord(char):04x}" for char in key)


def saying(text: str) -> str:
    """A completion with that text."""
    return json.dumps(completion(text))


def _everywhere(key: str) -> str:
    body = completion("It takes three minutes.")
    body["choices"][0]["message"] |= {key: [{key: key}], "reasoning_content": key}
    return json.dumps({**body, "id": key, "model": key, key: {"a": [[[key]]]}, "usage": {key: key}})


def _spelled(key: str) -> str:
    body = completion({"Yes": 0.5, "No": 0.5})
    tokens = [{"token": char, "logprob": -0.5, "bytes": list(char.encode())} for char in key]
    body["choices"][0]["logprobs"]["content"] += tokens
    return json.dumps(body)


def _in_a_list(key: str) -> str:
    body = completion("It takes three minutes.")
    body["choices"][0]["logprobs"] = {"tokens": [key[place : place + 4] for place in range(0, len(key), 4)]}
    return json.dumps(body)


def _complaint(key: str) -> str:
    return json.dumps({"error": {"message": f"Incorrect API key provided: {key}.", "code": key}})


WAYS: dict[str, Way] = {
    "200, no JSON": lambda key: http(f"You sent Authorization: Bearer {key}"),
    "200, HTML": lambda key: http("".join(f"&#{ord(char)};" for char in key)),
    "200, a stream": lambda key: http(f'data: {{"choices": [{{"delta": {{"content": "{key}"}}}}]}}\n\n'),
    "200, deep brackets": lambda key: http(f'["{key}", ' + "[" * 200_000),
    "200, endless": lambda key: http(f'"{key}' + " " * (17 << 20)),
    "said": lambda key: http(saying(f"The header is Bearer {key}, which you sent.")),
    "said in JSON": lambda key: http(saying(json.dumps({"key": key, "again": in_json_escapes(key)}))),
    "said in JSON escapes": lambda key: http(saying("KEY").replace("KEY", in_json_escapes(key))),
    "said in percent signs": lambda key: http(saying(quote(key, safe="") + " " + quote(quote(key, safe="")))),
    "said in base64": lambda key: http(saying(base64.b64encode(f"user:{key}".encode()).decode())),
    "said in base64 of several lines": lambda key: http(
        saying(base64.encodebytes(f"Authorization: Bearer {key}, and so on and on and on".encode()).decode())
    ),
    "said in HTML": lambda key: http(
        saying(html.escape(key) + "".join(f"&#{ord(char):04};" for char in key))
    ),
    "said in hexadecimal": lambda key: http(saying(key.encode().hex())),
    "said in a list": lambda key: http(_in_a_list(key)),
    "said in pieces": lambda key: http(_spelled(key)),
    "in every field": lambda key: http(_everywhere(key)),
    "in a header": lambda key: http(saying("Fine."), headers={"X-Echo": key, "Set-Cookie": key}),
    "in a broken header": lambda key: f"HTTP/1.1 200 OK\r\n{key} is what you sent\r\n\r\n".encode(),
    "in the reason": lambda key: http("", 401, reason=key),
    "in a broken status": lambda key: f"{key} 200 OK\r\n\r\n".encode(),
    "redirected": lambda key: http("", 302, {"Location": f"http://127.0.0.1:9/{key}"}),
    "to come again": lambda key: http(_complaint(key), 429, {"Retry-After": key}),
    **{
        f"{status}, {name}": lambda key, status=status, text=text: http(text(key), status)  # type: ignore[misc]
        for status in (400, 401, 500)
        for name, text in (
            ("JSON", _complaint),
            ("JSON escapes", lambda key: _complaint("KEY").replace("KEY", in_json_escapes(key))),
            ("text", lambda key: f"wrong: {key}"),
        )
    },
}
"""Name → how the key is repeated."""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    # As many as ask at once and more: one that finds the queue full is asked again a second later.
    request_queue_size = 128


@contextmanager
def endpoint(answer: Callable[[dict[str, Any] | None], bytes]) -> Iterator[str]:
    """Serve answers to requests (their JSON, None for a GET); gives the base URL."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b"".join(iter(self.rfile.readline, b"\r\n")).decode()
            lengths = [line for line in head.splitlines() if line.lower().startswith("content-length:")]
            length = int(lengths[0].split(":")[1]) if lengths else 0
            asked = json.loads(self.rfile.read(length)) if length else None
            self.wfile.write(answer(asked))

        def finish(self) -> None:
            with suppress(OSError):  # who asked does not read such a long answer to its end
                super().finish()

    with _Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
