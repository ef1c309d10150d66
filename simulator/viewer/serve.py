"""Serve the viewer on the loopback address until it is interrupted."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.viewer.annotating import ANYBODY, Labelling
from hallulab.simulator.viewer.app import make_app
from hallulab.simulator.viewer.closing import ClosingStreams
from hallulab.simulator.viewer.guard import Access
from hallulab.simulator.viewer.run_status import Launcher
from hallulab.simulator.viewer.runs import ShownRuns

if TYPE_CHECKING:
    import uvicorn

HOST = "127.0.0.1"
"""Where it listens. Pages show unpublished data, and later write: another machine has no business here."""

PORT = 8765
"""The port, if it is free and no other one is asked for."""


PAGES_AT_ONCE = 6
"""Pages that are made at a time: each takes a few times its size."""

END_S = 1.5
"""Seconds after Ctrl-C in which open answers may end."""


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
        runs: what is shown.
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
        # Clients that break off or send nonsense are no news; failures of ours are told by `ClosingStreams`.
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
        Whether nothing hangs. Else the process would not end by itself.
    """
    ended = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            server.run([listening.socket])
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that can tell it
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
