"""End the streams that pages follow when the server ends, and tell failures in one sentence each.

A server waits for open answers, and cancels those that do not end: a traceback for each page that is open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from typing import Any

from hallulab.scenarios.components import describe_exception
from hallulab.simulator.viewer.guard import App, Receive, Scope, Send

_log = logging.getLogger(__name__)


class ClosingStreams:
    """Serves an application, whose open answers it can end.

    Args:
        app: the application.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Tell each open answer that nobody listens any more. Call it in the loop of the server."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of ASGI; what is written is left to its end."""
        try:
            await self._serve(scope, receive, send)
        except asyncio.CancelledError:
            if not self._closing.is_set():
                raise
        except Exception as error:  # noqa: BLE001 - the client has its answer; a traceback helps nobody
            _log.warning("the page %s cannot be made: %s", scope.get("path"), describe_exception(error))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "GET":
            await self._app(scope, receive, send)
            return
        state = "before"

        async def send_noted(message: MutableMapping[str, Any]) -> None:
            nonlocal state
            if message["type"] == "http.response.start":
                state = "begun"
            elif not message.get("more_body", False):
                state = "ended"
            await send(message)

        await self._app(scope, self._receive_until_closing(receive), send_noted)
        if state == "begun" and self._closing.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _receive_until_closing(self, receive: Receive) -> Receive:
        async def receive_some() -> MutableMapping[str, Any]:
            received = asyncio.ensure_future(receive())
            closing = asyncio.ensure_future(self._closing.wait())
            try:
                await asyncio.wait((received, closing), return_when=asyncio.FIRST_COMPLETED)
                return received.result() if received.done() else {"type": "http.disconnect"}
            finally:
                received.cancel()
                closing.cancel()

        return receive_some
