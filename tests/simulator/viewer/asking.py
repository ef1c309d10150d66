"""Ask the application of a viewer without a network."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hallulab.simulator.viewer.app import make_app
from hallulab.simulator.viewer.guard import MARKER, Access, Guard
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.runs import ShownRuns


@dataclass(frozen=True)
class Answer:
    """What a client got."""

    status: int
    """The status; 0: nothing was answered."""
    body: str
    """The body, as far as it came."""


class Asker:
    """Asks the application as a browser with the token does.

    Args:
        paths: the folders that are shown.
        indices: folder for indices.
        offer: what can be started and talked to; None: nothing.
    """

    def __init__(self, paths: Sequence[Path], indices: Path, offer: Offer | None = None) -> None:
        self.access = Access(80)
        self.runs = ShownRuns(paths, indices)
        self.app: Guard = make_app(self.runs, self.access, launcher=Launcher(offer or Offer()))
        self.routes: list[Any] = self.app._app.routes  # type: ignore[attr-defined]

    def ask(self, method: str, target: str, *received: MutableMapping[str, Any], **headers: str) -> Answer:
        """Send a request, and return the answer; an open stream is left after its first words.

        Args:
            method: of HTTP.
            target: path and query, as they stand in a request.
            received: what comes of the body; behind it, the client is gone.
            headers: others than a browser sends by itself.
        """
        path, _, query = target.partition("?")
        given = {
            "host": "127.0.0.1:80",
            "cookie": f"{self.access.cookie}={self.access.token}",
            "origin": "http://127.0.0.1:80",
            MARKER: "1",
            "content-length": str(sum(len(one.get("body", b"")) for one in received)),
            **headers,
        }
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        }
        waiting = list(received or [{"type": "http.request", "body": b""}])
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            if waiting:
                return waiting.pop(0)
            if method == "GET" and not any(one.get("body") for one in sent):
                await asyncio.sleep(3600)  # until the answer is there
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        status = next((one["status"] for one in sent if one["type"] == "http.response.start"), 0)
        return Answer(status, b"".join(one.get("body", b"") for one in sent).decode())

    def post(self, target: str, body: bytes, **headers: str) -> Answer:
        """Send a request that writes."""
        return self.ask("POST", target, {"type": "http.request", "body": body}, **headers)
