"""A batch API on loopback, beside the endpoint that answers at once: files, batches, and what came of them.

It knows as much of OpenAI's `/v1/files` and `/v1/batches` as their client asks for.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hallulab.testing.endpoint import StubProtocol, completion, http_response, models, serve_protocol

Line = dict[str, Any]


class BatchApi:
    """A batch API's requests, and its answers.

    Args:
        answer: makes the body of an answer from that of a request.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]] = completion) -> None:
        self.answer = answer
        self.url = ""
        """Its base URL."""
        self.one_by_one: list[dict[str, Any]] = []
        """Bodies of requests that were not in a batch."""
        self.batches: list[list[Line]] = []
        """Lines of each batch that was submitted."""
        self.looks = 0
        """How often a batch must be looked at before it has ended."""
        self.ended_as = "completed"
        """The state in which batches end."""
        self.change: Callable[[Line, Line], Line | None] = lambda asked, line: line
        """From a line of the input and one of the output to the line that comes; None: none comes."""
        self.refuses: int | None = None
        """Status of the answer to every request about files and batches; None: it answers them."""
        self.complaint = "no batches for you"
        """Its message then, and the reason of failed batches."""
        self.endless: tuple[str, bytes] | None = None
        """End of a path, and what answers to requests for it repeat without end; None: all answers end."""
        self._files: dict[str, bytes] = {}
        self._made: list[dict[str, Any]] = []
        self._looked: dict[str, int] = {}

    @property
    def asked(self) -> list[str]:
        """The requests of all batches, by identifier."""
        return [line["custom_id"] for batch in self.batches for line in batch]

    def forget(self) -> None:
        """Forget all files, batches and requests."""
        self.one_by_one.clear()
        self.batches.clear()
        self._files.clear()
        self._made.clear()
        self._looked.clear()

    def respond(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Return status and body of an answer; bytes are the content of a file."""
        path, _, _ = path.partition("?")
        if path == "/v1/models":
            return 200, models()
        if path == "/v1/chat/completions":
            self.one_by_one.append(json.loads(body))
            return 200, self.answer(json.loads(body))
        if self.refuses is not None:
            return self.refuses, {"error": {"message": self.complaint}}
        if path == "/v1/files":
            name = f"file-{len(self._files)}"
            self._files[name] = _read_form(body)["file"]
            return 200, {"id": name, "object": "file", "bytes": len(body), "created_at": 0, "filename": name,
                         "purpose": "batch", "status": "processed"}  # fmt: skip
        if path.startswith("/v1/files/") and path.endswith("/content"):
            return 200, self._files[path.split("/")[3]]
        if path == "/v1/batches" and method == "post":
            return 200, self._make(json.loads(body))
        if path == "/v1/batches":
            return 200, {"object": "list", "data": self._made[::-1], "has_more": False}
        return 200, self._look(path.removeprefix("/v1/batches/"))

    def _make(self, request: dict[str, Any]) -> dict[str, Any]:
        lines = [json.loads(line) for line in self._files[request["input_file_id"]].splitlines()]
        self.batches.append(lines)
        batch = {"id": f"batch_{len(self._made)}", "object": "batch", "created_at": 0, "status": "validating",
                 "completion_window": "24h", **request}  # fmt: skip
        self._made.append(batch)
        return batch

    def _look(self, id: str) -> dict[str, Any]:
        number = int(id.removeprefix("batch_"))
        batch = self._made[number]
        self._looked[id] = self._looked.get(id, 0) + 1
        if self._looked[id] <= self.looks:
            return {**batch, "status": "in_progress"}
        if self.ended_as == "failed":
            errors = {"object": "list", "data": [{"code": "limit", "message": self.complaint}]}
            return {**batch, "status": "failed", "errors": errors}
        name = f"output-{id}"
        if name not in self._files:
            answers = (self.change(asked, self._answer_line(asked)) for asked in self.batches[number])
            lines = [json.dumps(line) for line in answers if line is not None]
            self._files[name] = "\n".join(lines).encode()
        return {**batch, "status": self.ended_as, "output_file_id": name}

    def _answer_line(self, asked: Line) -> Line:
        response = {"status_code": 200, "request_id": "r", "body": self.answer(asked["body"])}
        return {"id": "l", "custom_id": asked["custom_id"], "response": response, "error": None}


@contextmanager
def serve_batch_api(answer: Callable[[dict[str, Any]], dict[str, Any]] = completion) -> Iterator[BatchApi]:
    """Serve a model called `stub` that answers at once and in batches.

    Args:
        answer: makes the body of an answer from that of a request.
    """
    api = BatchApi(answer)

    class Protocol(StubProtocol):
        def respond(self, head: bytes, body: bytes) -> None:
            method, path, _ = head.decode().split(" ", 2)
            if api.endless is not None and path.partition("?")[0].endswith(api.endless[0]):
                self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
                self._repeat(api.endless[1])
                return
            status, said = api.respond(method, path, body)
            payload = said if isinstance(said, bytes) else json.dumps(said).encode()
            self._transport.write(http_response(payload, status))

        def _repeat(self, part: bytes) -> None:
            if not self._transport.is_closing():
                self._transport.write(part)
                asyncio.get_running_loop().call_later(0.005, self._repeat, part)

    with serve_protocol(Protocol) as url:
        api.url = url
        yield api


def _read_form(body: bytes) -> dict[str, bytes]:
    """Return the parts of a form by name."""
    boundary = body[: body.index(b"\r\n")]
    parts = {}
    for part in body.split(boundary)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        if name is not None:
            parts[name[1].decode()] = content.removesuffix(b"\r\n")
    return parts
