"""The viewer as an application, served on the loopback address until it is interrupted."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.components import describe_exception
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.viewer.chat_page import ChatPages
from hallulab.simulator.viewer.comparison_page import ComparisonPages
from hallulab.simulator.viewer.conversation_page import ConversationPages
from hallulab.simulator.viewer.guard import Access, App, Guard, Receive, Scope, Send, build_policy
from hallulab.simulator.viewer.label_page import LabelPages
from hallulab.simulator.viewer.labels import ANYBODY, Labelling
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.responses import (
    read_scripts,
    read_style,
    refuse,
    refuse_visit,
    register_turns,
)
from hallulab.simulator.viewer.runs import ShownRuns
from hallulab.simulator.viewer.runs_page import RunPages
from hallulab.simulator.viewer.start_page import StartPages

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response


_log = logging.getLogger(__name__)

HOST = "127.0.0.1"
"""Where it listens. Pages show unpublished data, and write: another machine has no business here."""

PORT = 8765
"""The port, if it is free and no other one is asked for."""

PAGES_AT_ONCE = 6
"""Pages that are made at a time: each takes a few times its size."""

END_S = 1.5
"""Seconds after Ctrl-C in which open answers may end."""


def make_app(
    runs: ShownRuns, access: Access, labelling: Labelling = ANYBODY, launcher: Launcher | None = None
) -> Guard:
    """Make the application.

    Args:
        labelling: who labels, and how.
        launcher: starts runs, and knows what may be started and talked to; None: nothing.
    """
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect

    register_turns()
    launcher = launcher or Launcher(Offer())
    app = Starlette(
        routes=[
            *RunPages(runs, launcher).list_routes(),
            *ConversationPages(runs, labelling).list_routes(),
            *LabelPages(runs, labelling).list_routes(),
            *ComparisonPages(runs).list_routes(),
            *ChatPages(runs, launcher.offer).list_routes(),
            *StartPages(runs, launcher).list_routes(),
        ],
        exception_handlers={
            UsageError: _error_response,
            OperationalError: _error_response,
            OSError: _answer_system_error,
            ClientDisconnect: _answer_unsent,
            404: _answer_missing,
        },
    )
    policy = build_policy([*read_scripts().values()], [read_style()])
    return Guard(app, access, policy)


async def _error_response(request: Request, error: Exception) -> Response:
    return refuse_visit(request, str(error), 500)


async def _answer_system_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    return refuse_visit(request, f"{error.filename or 'A file'}: {error.strerror or error}.", 500)


async def _answer_missing(request: Request, error: Exception) -> Response:
    return refuse_visit(request, "The run, conversation or turn was removed or renamed.", 404)


async def _answer_unsent(request: Request, error: Exception) -> Response:
    return refuse("The request was not sent to its end.")


@dataclass(frozen=True)
class Listening:
    """A socket that listens, and what requests must bring."""

    socket: socket.socket
    access: Access

    @property
    def address(self) -> str:
        """The address to open, with the token."""
        return f"http://{HOST}:{self.access.port}/?token={self.access.token}"


def listen(port: int | None) -> Listening:
    """Listen on a port; None: `PORT`, or any other one if somebody has it.

    Raises:
        OperationalError: the port that was asked for is taken.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Else the port of a viewer that has just ended stays taken for a minute.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for candidate in (PORT, 0) if port is None else (port,):
        try:
            found.bind((HOST, candidate))
            break
        except OSError as error:
            if candidate in (port, 0):
                found.close()
                raise OperationalError(
                    f"port {candidate} of {HOST} cannot be used ({error.strerror}). Give another --port."
                ) from error
    found.listen(128)
    return Listening(found, Access(found.getsockname()[1]))


def make_server(
    runs: ShownRuns,
    listening: Listening,
    when_ready: Callable[[], None],
    labelling: Labelling = ANYBODY,
    launcher: Launcher | None = None,
) -> uvicorn.Server:
    """Make the server; `serve` runs it.

    Args:
        listening: where.
        when_ready: is called when requests are answered.
        labelling: who labels, and how.
        launcher: see `make_app`. The caller closes it.
    """
    import anyio.to_thread
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            anyio.to_thread.current_default_thread_limiter().total_tokens = PAGES_AT_ONCE
            await super().startup(sockets)
            when_ready()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.close()
            await super().shutdown(sockets)

    app = ClosingStreams(make_app(runs, listening.access, labelling, launcher))
    config = uvicorn.Config(
        app,
        # Clients that break off or send nonsense are no news; `ClosingStreams` logs failures of ours.
        log_level="critical",
        http="h11",  # bounds the size of a request's head
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    return Server(config)


def serve(server: uvicorn.Server, listening: Listening) -> bool:
    """Serve until Ctrl-C or SIGTERM, and `END_S` longer at most.

    The server runs in a thread of its own: whatever hangs there, this one hears the signal.

    Returns:
        True if nothing hangs. Else the process would not end by itself.
    """
    ended = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            server.run([listening.socket])
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that reports it
            failed.append(error)
        finally:
            ended.set()

    with suppress(KeyboardInterrupt):  # how it is meant to end
        threading.Thread(target=run, name="viewer", daemon=True).start()
        ended.wait()
    server.should_exit = True
    with suppress(KeyboardInterrupt):  # whoever asks twice does not want to wait
        ended.wait(END_S)
    if failed:
        raise failed[0]
    return ended.is_set() and not any(
        not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()
    )


class ClosingStreams:
    """Serves an application, whose open answers it can end."""

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
