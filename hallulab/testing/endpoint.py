"""An OpenAI-compatible endpoint on loopback that answers at once: everything but the model is real.

It streams where it is asked to. `python -m hallulab.testing.endpoint [SECONDS]` listens on a free loopback
port, prints it, and serves until stdin closes. With SECONDS, each answer takes that long.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import threading
import zlib
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from hallulab.scenarios.arguments import check_arguments

MODEL = "stub"

Result = TypeVar("Result")


def models() -> dict[str, Any]:
    """Return the list of models."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model"}]}


def completion(request: dict[str, Any]) -> dict[str, Any]:
    """Answer in the requested form: an instance of a schema, a Yes or No, or a text."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is not None:
        text = json.dumps(instance(schema, schema.get("$defs", {})))
    elif request.get("logprobs"):
        asks_for_letter = request["messages"][-1]["content"].endswith("Letter:")
        likely = (("A", 0.5), ("B", 0.25), ("C", 0.2)) if asks_for_letter else (("Yes", 0.7), ("No", 0.28))
        text = likely[0][0]
        top = [{"token": word, "logprob": math.log(p), "bytes": list(word.encode())} for word, p in likely]
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
    else:
        text = reply(request)
    choice["message"] = {"role": "assistant", "content": text}
    return {
        "id": "stub",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [choice],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def reply(request: dict[str, Any]) -> str:
    """Return three sentences that differ from request to request, so no two conversations are alike.

    Where YES, NO or NOT SURE is asked for (in the system message), it is one of these.
    """
    number = zlib.crc32(json.dumps(request["messages"]).encode())
    if "NOT SURE" in str(request["messages"][0].get("content")):
        return ("YES", "NO", "NOT SURE")[number % 3]
    return (
        f"Complaint {number} goes to the District Commission. It was filed within {number % 700} days. "
        f"The fee for it is {number % 5000} rupees."
    )


def instance(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Make a small value that a JSON schema allows."""
    if "$ref" in schema:
        return instance(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], definitions)
    kind = schema.get("type")
    if kind == "object":
        return {name: instance(value, definitions) for name, value in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {"type": "string"}), definitions)] * max(
            2, schema.get("minItems", 1)
        )
    return {"integer": schema.get("minimum", 3), "number": 0.5, "boolean": True}.get(
        str(kind), "The fee is 200 rupees."
    )


def http_response(payload: bytes, status: int = 200, headers: bytes = b"") -> bytes:
    """Return an HTTP answer in JSON; each of `headers` ends its line."""
    head = b"HTTP/1.1 %d Said\r\nContent-Type: application/json\r\n" % status
    return head + headers + b"Content-Length: %d\r\n\r\n" % len(payload) + payload


def split_completion(whole: dict[str, Any], usage: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the objects of a stream that give a chat completion word by word, the last one with its usage."""
    about = {key: value for key, value in whole.items() if key not in ("choices", "usage", "object")}
    about["object"] = "chat.completion.chunk"
    [choice] = whole["choices"]
    message = dict(choice["message"])
    text = message.pop("content") or ""
    yield {**about, "choices": [{"index": 0, "delta": {**message, "content": ""}, "finish_reason": None}]}
    logprobs = choice.get("logprobs")
    for word in re.findall(r"\S*\s*", text)[:-1]:
        yield {**about, "choices": [{"index": 0, "delta": {"content": word}, "logprobs": logprobs}]}
        logprobs = None
    yield {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    if usage:
        yield {**about, "choices": [], "usage": whole["usage"]}


def format_events(objects: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield objects as server-sent events, and the one that ends a stream."""
    for one in objects:
        yield b"data: " + json.dumps(one).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


class StubProtocol(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, just enough of it for the openai client."""

    answer: Callable[[dict[str, Any]], dict[str, Any]] = staticmethod(completion)
    """Makes the body of the answer from a request."""
    seconds = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        """Respond to each request that is whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            length = 0
            for line in head.split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            self.respond(head, body)

    def respond(self, head: bytes, body: bytes) -> None:
        """Answer a request.

        Args:
            head: its first line and headers, in lower case.
            body: its JSON; nothing if the list of models is asked for.
        """
        asked = None if head.startswith(b"get") else json.loads(body)
        answer = models() if asked is None else self.answer(asked)
        if asked is not None and asked.get("stream"):
            self._stream(answer, bool(asked.get("stream_options", {}).get("include_usage")))
            return
        response = http_response(json.dumps(answer).encode())
        if self.seconds:
            asyncio.get_running_loop().call_later(self.seconds, self._transport.write, response)
        else:
            self._transport.write(response)

    def _stream(self, answer: dict[str, Any], usage: bool) -> None:
        """Give an answer word by word, all of it in `seconds`."""
        head = b"HTTP/1.1 200 Said\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        events = [b"%x\r\n%b\r\n" % (len(one), one) for one in format_events(split_completion(answer, usage))]
        parts = [head, *events, b"0\r\n\r\n"]
        if not self.seconds:
            self._transport.write(b"".join(parts))
            return
        for number, part in enumerate(parts):
            at = self.seconds * number / len(parts)
            asyncio.get_running_loop().call_later(at, self._write, part)

    def _write(self, part: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(part)


async def serve(seconds: float, protocol: type[StubProtocol] = StubProtocol) -> None:
    """Listen until stdin closes; each answer takes so long."""
    protocol.seconds = seconds
    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server, but first finish the connections that it has accepted.

    Python 3.11 makes a connection one turn of the loop after it was accepted. If the server is closed in
    between, an assertion fails in silence and nobody ever closes the socket.
    """
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(3):
        await asyncio.sleep(0)
    server.close()


@contextmanager
def run_loop_in_thread() -> Iterator[Callable[[Coroutine[Any, Any, Result]], Result]]:
    """Run an event loop in a thread while the block runs; yield what has a coroutine awaited there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield lambda coroutine: asyncio.run_coroutine_threadsafe(coroutine, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def serve_protocol(protocol: type[StubProtocol]) -> Iterator[str]:
    """Serve on loopback, in a thread; yield the base URL. Connections are ended at the end of the block."""
    connections: list[asyncio.Transport] = []

    # The checker knows no class that is an argument.
    class Protocol(protocol):  # type: ignore[valid-type,misc]
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            connections.append(self._transport)

    async def begin() -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0)

    async def end(server: asyncio.Server) -> None:
        await stop_listening(server)
        for connection in connections:
            connection.abort()
        await asyncio.sleep(0)  # `connection_lost` is called in the next turn of the loop

    with run_loop_in_thread() as wait_for:
        server = wait_for(begin())
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        finally:
            wait_for(end(server))


@check_arguments
@contextmanager
def serve_stub(answer: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Iterator[str]:
    """Serve a model called `MODEL` that answers at once; yield the base URL.

    Args:
        answer: makes the body of an answer from that of a request; None: `completion`.
    """

    class Protocol(StubProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.answer = answer or completion

    with serve_protocol(Protocol) as url:
        yield url


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0))
