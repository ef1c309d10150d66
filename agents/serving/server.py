"""Run a model server: start it on a free loopback port, wait for it, and end it."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from hallulab.agents.machine.cache import Listener, StepProgress, disk_errors, silent
from hallulab.agents.machine.supervised import start_supervised
from hallulab.agents.serving.prepare import PreparedModel, prepare
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.files.opening import read_file
from hallulab.scenarios.transcript import Frozen

LOOPBACK = "127.0.0.1"


@contextmanager
def reserved_port(port: int | None) -> Iterator[int]:
    """Keep a port of loopback for our server until the block ends.

    A model server binds its port seconds after its start and listens minutes later. Meanwhile another program
    could take the port, and its answer could be mistaken for our server's. So we bind the port with
    SO_REUSEADDR: our server, which sets it too, can bind and listen, and `is_free` is False for every other
    start.

    Args:
        port: the port; None: any free one.

    Raises:
        OperationalError: the port is taken, or not ours to use.
    """
    if port is not None and not is_free(port):
        raise OperationalError(
            f"port {port} of {LOOPBACK} is taken or not yours to use. Stop what uses it, or choose another "
            "with --port (without it a free one is found)."
        )
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((LOOPBACK, port or 0))
        yield int(holder.getsockname()[1])


def is_free(port: int) -> bool:
    """Return whether the port is not bound. Lingering connections of an ended server do not count."""
    for reuse in (0, 1):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            if reuse == 0:
                return True
            try:
                connections = psutil.net_connections("tcp")
            except psutil.AccessDenied:
                return False
            # Connections that have ended may linger there, and nothing else.
            states = {one.status for one in connections if one.laddr and one.laddr.port == port}
            return states == {psutil.CONN_TIME_WAIT}
    return False


STARTUP_TIMEOUT = 900.0
"""Seconds until a server must answer. Loading and compiling a large model on a slow machine takes long."""

LOG_TAIL = 15
"""Lines of the server's log that an error shows."""

KEPT_LOGS = 20
"""Logs of earlier starts that are kept."""

POLL_SECONDS = 0.5

_RAISED = re.compile(r"(\([^)]*\) )?(ERROR [\d-]+ [\d:]+ \[[^\]]*\] )?[\w.]*(Error|Exception): ")
"""A log line with an exception's last line, with or without vLLM's process and logger before it."""


class ServedModel(Frozen):
    """A model that answers."""

    base_url: str
    """OpenAI-compatible endpoint, ending in /v1."""
    model: str
    revision: str | None
    """Which weights these are; None: not known (local folder, hub)."""
    log: Path


@dataclass(frozen=True)
class RunningServer:
    """A server that answers, with its process."""

    served: ServedModel
    process: subprocess.Popen[bytes]

    async def ended(self) -> None:
        """Wait until the server ends by itself.

        Raises:
            OperationalError: it ended; with the end of its log.
        """
        code = await asyncio.to_thread(self.process.wait)
        raise OperationalError(f"the model server ended with exit code {code}. {end_of_log(self.served.log)}")


@asynccontextmanager
async def serve(
    model: str,
    *,
    port: int | None = None,
    extra_flags: Sequence[str] = (),
    startup_timeout: float = STARTUP_TIMEOUT,
    on_progress: Listener = silent,
    cache: Path | None = None,
) -> AsyncIterator[ServedModel]:
    """Serve `model` with vLLM while the block runs; first prepare what is missing, which blocks the loop.

    Args:
        model: a catalogue name, a model folder, or a hub name.
        port: port on loopback; None: a free one.
        extra_flags: flags passed through to vLLM; each replaces ours of the same name.
        startup_timeout: seconds until it must answer.
        cache: cache folder; None: the user's.

    Raises:
        UsageError: there is no such model, or a flag cannot be passed through.
        OperationalError: preparation failed, the port is taken, or the server died or did not answer in time.
    """
    prepared = prepare(model, cache=cache, on_progress=on_progress)
    async with serve_prepared(
        prepared, port=port, extra_flags=extra_flags, startup_timeout=startup_timeout, on_progress=on_progress
    ) as server:
        yield server.served


@asynccontextmanager
async def serve_prepared(
    prepared: PreparedModel,
    *,
    port: int | None,
    extra_flags: Sequence[str],
    startup_timeout: float,
    on_progress: Listener,
) -> AsyncIterator[RunningServer]:
    """Serve a prepared model while the block runs; see `serve`."""
    with ExitStack() as reservation:
        chosen = reservation.enter_context(reserved_port(port))
        command = prepared.command(chosen, extra_flags)
        with disk_errors(prepared.cache):
            log = new_log(prepared.cache / "logs", f"{prepared.name}-{chosen}")
            with log.open("wb") as output:
                process = start_supervised(command, output=output, environ=prepared.environ(dict(os.environ)))
        try:
            await wait_until_healthy(process, chosen, log, startup_timeout, on_progress)
            reservation.close()
            served = ServedModel(
                base_url=f"http://{LOOPBACK}:{chosen}/v1",
                model=prepared.name,
                revision=prepared.revision,
                log=log,
            )
            yield RunningServer(served, process)
        finally:
            # Closing our end stops it, even if the waiting is interrupted.
            if process.stdin is not None:
                process.stdin.close()
            await asyncio.to_thread(process.wait)


async def wait_until_healthy(
    process: subprocess.Popen[bytes], port: int, log: Path, limit: float, on_progress: Listener
) -> None:
    """Ask `/health` until it answers.

    Raises:
        OperationalError: the server ended, or did not answer within `limit` seconds; with the end of its log.
    """
    started = time.monotonic()
    while True:
        waited = time.monotonic() - started
        on_progress(
            StepProgress(step="starting the model server", done=int(waited), total=None, unit="seconds")
        )
        if await is_healthy(port):
            return
        if process.poll() is not None:
            raise OperationalError(
                f"the model server ended with exit code {process.returncode} before it answered. "
                + end_of_log(log)
            )
        if waited > limit:
            raise OperationalError(
                f"the model server did not answer within {limit:g} seconds. " + end_of_log(log)
            )
        await asyncio.sleep(POLL_SECONDS)


async def is_healthy(port: int) -> bool:
    """Return whether `GET /health` on loopback answers 200, without proxies of the environment."""
    with suppress(httpx2.HTTPError, TimeoutError):
        async with (
            asyncio.timeout(10),
            httpx2.AsyncClient(trust_env=False, timeout=None) as client,
            client.stream("GET", f"http://{LOOPBACK}:{port}/health") as answer,
        ):
            return answer.status_code == 200
    return False


def end_of_log(log: Path) -> str:
    """Return the log's path and last lines, after the error that seems to be the cause."""
    lines = [line for line in read_file(log).decode(errors="replace").splitlines() if line.strip()]
    # vLLM's processes fail one after another; the last one only says that another failed before.
    causes = [line for line in lines if _RAISED.match(line)]
    cause = f"Its first error: {causes[0].strip()}\n" if causes and causes[0] not in lines[-LOG_TAIL:] else ""
    tail = "\n".join(f"  {line}" for line in lines[-LOG_TAIL:]) or "  (empty)"
    return f"{cause}The end of its log, {log}:\n{tail}"


def new_log(folder: Path, name: str) -> Path:
    """Return a path for a new log, and delete all but the newest of the older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in logs[KEPT_LOGS - 1 :]:
        old.unlink(missing_ok=True)
    safe = re.sub(r"[^\w.-]+", "-", name)
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{safe}.log"
