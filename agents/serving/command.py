"""`hallulab serve`: prepare a model, serve it, and stay until interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from hallulab.agents.machine.progress_events import Listener
from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.agents.serving.preparation import prepare
from hallulab.agents.serving.replicas import parts
from hallulab.agents.serving.server import STARTUP_TIMEOUT, serve_prepared
from hallulab.agents.serving.terminal import shown_progress
from hallulab.scenarios.errors import get_first_error


def serve_command(
    model: str,
    *,
    port: int | None = None,
    replicas: int = 1,
    prepare_only: bool = False,
    extra_flags: Sequence[str] = (),
    startup_timeout: float = STARTUP_TIMEOUT,
    quiet: bool = False,
) -> None:
    """Serve `model` until Ctrl-C; print the base URL of each server on stdout when all answer.

    Args:
        model: a catalogue name, a model folder, or a hub name.
        port: port on loopback, of the first server; the others have the next ones. None: free ones.
        replicas: servers, each with its part of the machine.
        prepare_only: prepare environment and weights, and return.
        extra_flags: flags passed through to vLLM.
        startup_timeout: seconds until it must answer.
        quiet: show no progress on stderr.

    Raises:
        UsageError, OperationalError: as `serve` does; or the machine is too small for so many servers.
        KeyboardInterrupt: on Ctrl-C, after the server has ended.
    """
    with shown_progress(quiet) as on_progress:
        prepared = prepare(model, on_progress=on_progress)
    if prepare_only:
        return
    servers = parts(prepared, replicas, extra_flags)
    urls: dict[int, str] = {}

    async def stay(place: int, progress: ExitStack, on_progress: Listener) -> None:
        async with serve_prepared(
            servers[place],
            port=None if port is None else port + place,
            extra_flags=extra_flags,
            startup_timeout=startup_timeout,
            on_progress=on_progress,
        ) as server:
            urls[place] = server.served.base_url
            if len(urls) == len(servers):
                progress.close()
                print(*(urls[number] for number in range(len(servers))), sep="\n", flush=True)
            await server.ended()

    async def stay_all() -> None:
        with ExitStack() as progress:
            on_progress = progress.enter_context(shown_progress(quiet))
            try:
                async with asyncio.TaskGroup() as tasks:
                    for place in range(len(servers)):
                        tasks.create_task(stay(place, progress, on_progress))
            except BaseExceptionGroup as group:
                raise get_first_error(group) from group

    run_until_stopped(stay_all())
