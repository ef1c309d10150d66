"""An OpenAI-compatible endpoint that answers at once, to measure everything but the model.

`python -m benchmarks.stub_endpoint [SECONDS]` listens on a free loopback port, prints it, and serves until
stdin closes. With SECONDS, each answer takes that long.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import zlib
from typing import Any

MODEL = "stub"


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
        text = "Yes"
        top = [
            {"token": word, "logprob": math.log(p), "bytes": list(word.encode())}
            for word, p in (
                ("Yes", 0.5),
                ("No", 0.2),
                ("A", 0.1),
                ("B", 0.05),
                ("C", 0.04),
                ("1", 0.03),
                ("5", 0.03),
            )
        ]
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


class StubProtocol(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, just enough of it for the openai client."""

    answer = staticmethod(completion)
    """Makes the body of the answer from a request."""
    seconds = 0.0
    """How long an answer takes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
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
        answer = models() if head.startswith(b"get") else self.answer(json.loads(body))
        response = http_response(json.dumps(answer).encode())
        if self.seconds:
            asyncio.get_running_loop().call_later(self.seconds, self._transport.write, response)
        else:
            self._transport.write(response)


async def serve(seconds: float) -> None:
    """Listen until stdin closes; each answer takes so long."""
    StubProtocol.seconds = seconds
    loop = asyncio.get_running_loop()
    server = await loop.create_server(StubProtocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0))
