"""`hallulab serve`: prepare a model, share the machine among its servers, and serve until interrupted."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from hallulab.agents.concurrency import gather_results, run_until_stopped
from hallulab.agents.machine.cache import Listener
from hallulab.agents.progress import shown_progress
from hallulab.agents.serving.flags import (
    GIB,
    RESERVED_GIB,
    as_ranges,
    choose_cpu_variables,
    count_usable_cores,
    list_gpu_cards,
    measure_available_memory,
)
from hallulab.agents.serving.prepare import PreparedModel, prepare
from hallulab.agents.serving.server import STARTUP_TIMEOUT, serve_prepared
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.text.words import parse_whole_number

OnAnswer = Callable[[Sequence[str]], None]
"""Is told the base URLs of servers that answer."""

Stay = Callable[[OnAnswer], Coroutine[Any, Any, None]]
"""Runs servers until one ends."""

_PARALLEL = {"--tensor-parallel-size": "-tp", "--pipeline-parallel-size": "-pp"}
"""Flags of vLLM whose product is the number of cards of a server, and their short forms."""

_LEAST_GIB = RESERVED_GIB + 1
"""GiB of memory that a server on a CPU needs besides its weights."""


def parts(
    prepared: PreparedModel,
    number: int,
    extra_flags: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> list[PreparedModel]:
    """Return the model as each of so many servers starts it; a single one has the whole machine.

    Args:
        number: how many servers, at least 1.
        extra_flags: flags passed through to vLLM, which may give a server several cards.
        environ: this process's environment, which may hide cards.

    Raises:
        UsageError: the machine is too small for so many; says what is there.
    """
    if number == 1:
        return [prepared]
    updates = _on_cpu(prepared, number) if prepared.cpu else _on_cards(number, extra_flags, environ)
    return [prepared.model_copy(update=update) for update in updates]


def _on_cpu(prepared: PreparedModel, number: int) -> list[dict[str, Any]]:
    cores, free = sorted(count_usable_cores()), measure_available_memory()
    needed = prepared.weights + _LEAST_GIB * GIB
    _require(number, len(cores), "core", 1)
    if number > free // needed:
        raise UsageError(
            f"--replicas {number}: each server needs {-(-needed // GIB)} GiB of memory, and "
            f"{free // GIB} are free. Lower --replicas, or free memory."
        )
    shares = [
        set(cores[place * len(cores) // number : (place + 1) * len(cores) // number])
        for place in range(number)
    ]
    return [
        {
            "variables": choose_cpu_variables(share, free // number, prepared.weights),
            "part": {"VLLM_CPU_OMP_THREADS_BIND": as_ranges(share)},
        }
        for share in shares
    ]


def _on_cards(number: int, extra_flags: Sequence[str], environ: Mapping[str, str]) -> list[dict[str, Any]]:
    cards, each = list_gpu_cards(environ), count_cards(extra_flags)
    _require(number, len(cards), "card", each)
    return [
        {"part": {"CUDA_VISIBLE_DEVICES": ",".join(cards[place * each : (place + 1) * each])}}
        for place in range(number)
    ]


def count_cards(extra_flags: Sequence[str]) -> int:
    """Return how many cards a server takes by its flags.

    Raises:
        UsageError: a flag gives no number.
    """
    return math.prod(_given(extra_flags, name, short) for name, short in _PARALLEL.items())


def _require(number: int, there: int, what: str, each: int) -> None:
    if number * each > there:
        raise UsageError(
            f"--replicas {number}: each server needs {format_count(each, what)}, and there "
            f"{choose_noun(there, 'is', 'are')} {there} for all. Lower --replicas."
        )


def _given(flags: Sequence[str], name: str, short: str) -> int:
    """Return the number that a flag gives, in any of its spellings; 1 without it."""
    found = 1
    for place, flag in enumerate(flags):
        spelt, _, value = flag.partition("=")
        if spelt.replace("_", "-") in (name, short):
            text = value or (flags[place + 1] if place + 1 < len(flags) else "")
            number = parse_whole_number(text)
            if not number:
                raise UsageError(f"{flag}: give the number of cards, such as {name}=2.")
            found = number
    return found


async def stay_together(stays: Sequence[Stay], on_answer: OnAnswer) -> None:
    """Run servers until one of them ends, which ends the others.

    Args:
        stays: each runs servers, and is told whom to tell their base URLs.
        on_answer: told all base URLs, in the order of `stays`, when all answer.

    Raises:
        UsageError, OperationalError: why the first one ended.
    """
    told: dict[int, Sequence[str]] = {}

    def note(place: int, urls: Sequence[str]) -> None:
        told[place] = urls
        if len(told) == len(stays):
            on_answer([url for number in range(len(stays)) for url in told[number]])

    await gather_results(stay(partial(note, place)) for place, stay in enumerate(stays))


async def serve_parts(
    servers: Sequence[PreparedModel],
    *,
    port: int | None,
    extra_flags: Sequence[str],
    startup_timeout: float,
    on_progress: Listener,
    on_answer: OnAnswer,
) -> None:
    """Run servers on this machine until one ends; see `stay_together`.

    Args:
        servers: the model, as each server starts it.
        port: port of the first; the others have the next ones. None: free ones.
        startup_timeout: seconds until each must answer.
        on_answer: told their base URLs when all answer.
    """

    async def stay(place: int, tell: OnAnswer) -> None:
        async with serve_prepared(
            servers[place],
            port=None if port is None else port + place,
            extra_flags=extra_flags,
            startup_timeout=startup_timeout,
            on_progress=on_progress,
        ) as server:
            tell([server.served.base_url])
            await server.ended()

    await stay_together([partial(stay, place) for place in range(len(servers))], on_answer)


def serve_command(
    model: str,
    *,
    port: int | None = None,
    replicas: int = 1,
    prepare_only: bool = False,
    extra_flags: Sequence[str] = (),
    quiet: bool = False,
) -> None:
    """Serve `model` until Ctrl-C; print the base URL of each server on stdout when all answer.

    Args:
        model: a catalogue name, a model folder, or a hub name.
        port: port on loopback, of the first server; the others have the next ones. None: free ones.
        replicas: servers, each with its part of the machine.
        prepare_only: prepare environment and weights, and return.

    Raises:
        UsageError, OperationalError: as `serve` does; or the machine is too small for so many servers.
        KeyboardInterrupt: on Ctrl-C, after the server has ended.
    """
    with shown_progress(quiet) as on_progress:
        prepared = prepare(model, on_progress=on_progress)
    if prepare_only:
        return
    with ExitStack() as progress:
        run_until_stopped(
            serve_parts(
                parts(prepared, replicas, extra_flags),
                port=port,
                extra_flags=extra_flags,
                startup_timeout=STARTUP_TIMEOUT,
                on_progress=progress.enter_context(shown_progress(quiet)),
                on_answer=partial(print_urls, progress),
            )
        )


def print_urls(progress: ExitStack, urls: Sequence[str]) -> None:
    """Take the progress from the terminal, and print base URLs, each once."""
    progress.close()
    print(*dict.fromkeys(urls), sep="\n", flush=True)
