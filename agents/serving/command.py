"""`hallulab serve`: prepare a model, serve it, and stay until interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from agents.machine.stopping import run_until_stopped
from agents.serving.preparation import prepare
from agents.serving.server import STARTUP_TIMEOUT, serve_prepared
from agents.serving.terminal import shown_progress


def serve_command(
    model: str,
    *,
    port: int | None = None,
    prepare_only: bool = False,
    extra_flags: Sequence[str] = (),
    startup_timeout: float = STARTUP_TIMEOUT,
    quiet: bool = False,
) -> None:
    """Serve `model` until Ctrl-C; print the endpoint's base URL on stdout when it answers.

    Args:
        model: a catalogue name, a model folder, or a hub name.
        port: port on loopback; None: a free one.
        prepare_only: prepare environment and weights, and return.
        extra_flags: flags passed through to vLLM.
        startup_timeout: seconds until it must answer.
        quiet: show no progress on stderr.

    Raises:
        UsageError, OperationalError: as `serve` does.
        KeyboardInterrupt: on Ctrl-C, after the server has ended.
    """
    with shown_progress(quiet) as on_progress:
        prepared = prepare(model, on_progress=on_progress)
    if prepare_only:
        return

    async def stay() -> None:
        with ExitStack() as progress:
            async with serve_prepared(
                prepared,
                port=port,
                extra_flags=extra_flags,
                startup_timeout=startup_timeout,
                on_progress=progress.enter_context(shown_progress(quiet)),
            ) as server:
                progress.close()
                print(server.served.base_url, flush=True)
                await server.ended()

    run_until_stopped(stay())
