"""Serve a model on the machines of a Ray cluster, on the loopback address of each (`hallulab serve --ray`).

Workers of a run on the same cluster ask the server of their own machine, so no server listens to the network.
On each machine an actor prepares the model and starts the servers. They end with the actor, and it with the
command, however that ends.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from hallulab.agents.concurrency import run_until_stopped
from hallulab.agents.machine.cache import Listener, StepProgress
from hallulab.agents.machine.ray_cluster import CPU, GPU, LOCAL, join_cluster, read_resources, split_resources
from hallulab.agents.machine.ray_nodes import pin_to_node
from hallulab.agents.progress import shown_progress
from hallulab.agents.serving.command import (
    OnAnswer,
    count_cards,
    parts,
    print_urls,
    serve_parts,
    stay_together,
)
from hallulab.agents.serving.prepare import prepare
from hallulab.agents.serving.server import STARTUP_TIMEOUT
from hallulab.scenarios.errors import OperationalError, UsageError

FIRST_PORT = 8000
"""Port of the first server of each machine, if none is given. It must be the same on all."""

ROOM_S = 120.0
"""Seconds in which a machine must have room for its actor."""

STOP_S = 30.0
"""Seconds in which a machine must have ended its servers when the command ends."""


@dataclass(frozen=True)
class Order:
    """Work of every machine."""

    model: str
    """A catalogue name, a model folder, or a hub name."""
    replicas: int = 1
    prepare_only: bool = False
    """True if it only prepares environment and weights."""
    extra_flags: tuple[str, ...] = ()
    """Flags passed through to vLLM."""
    startup_timeout: float = STARTUP_TIMEOUT
    """Seconds until a server must answer."""


@dataclass(frozen=True)
class Place:
    """A machine that does it."""

    node: str
    address: str
    port: int
    """Port of its first server, on its loopback address."""


def serve_on_cluster(
    address: str, order: Order, *, resources: Sequence[str] = (), port: int | None = None, quiet: bool = False
) -> None:
    """Serve a model on each machine of a Ray cluster that has room; print the base URLs when all answer.

    Args:
        address: where the cluster is, such as `10.0.0.1:6379` or `auto`.
        resources: what the servers of a machine take, such as `GPU=1`; none: `choose_resources`.
        port: port of the first server of each machine; None: `FIRST_PORT`.

    Raises:
        UsageError: Ray is not installed, the machines have another hallulab, or none has the resources.
        OperationalError: the cluster cannot be joined, or a machine cannot serve; names it.
        KeyboardInterrupt: on Ctrl-C, after the servers have ended.
    """
    if address == LOCAL:
        raise UsageError("--ray local is this machine alone. Leave --ray out, or give a cluster's address.")
    given = read_resources(resources) if resources else None
    with join_cluster(address, 0, {}):
        nodes = importlib.import_module("ray").nodes()
        takes = given or choose_resources(nodes, order.replicas * count_cards(order.extra_flags))
        places = choose_places(nodes, takes, FIRST_PORT if port is None else port, order.replicas)
        if not places:
            wanted = ", ".join(f"{name}={amount:g}" for name, amount in takes.items())
            raise UsageError(
                f"--ray {address}: no machine of the cluster has {wanted}. Give another --ray-resources, or "
                "lower --replicas."
            )
        with ExitStack() as progress:
            on_progress = progress.enter_context(shown_progress(quiet))
            stays = [partial(_stay, place, order, takes, on_progress) for place in places]
            run_until_stopped(stay_together(stays, partial(print_urls, progress)))


def choose_resources(nodes: Sequence[Mapping[str, Any]], cards: int) -> dict[str, float]:
    """Return what the servers of a machine take: its cards if the cluster has any, else a core.

    Args:
        nodes: the machines, as Ray tells them.
        cards: how many cards they need.
    """
    with_gpu = any(node["Alive"] and node["Resources"].get(GPU) for node in nodes)
    return {CPU: 1.0, GPU: float(cards)} if with_gpu else {CPU: 1.0}


def choose_places(
    nodes: Sequence[Mapping[str, Any]], resources: Mapping[str, float], port: int, replicas: int
) -> list[Place]:
    """Return the machines that have the resources, with the port of the first server of each.

    It is the same for all. Only nodes that share a machine, and so its loopback address, have different ones.

    Args:
        nodes: the machines, as Ray tells them.
        resources: what the servers of one take.
        replicas: how many servers each has.
    """
    places: list[Place] = []
    before: Counter[str] = Counter()
    for node in nodes:
        there, machine = node["Resources"], node["NodeManagerAddress"]
        if node["Alive"] and all(there.get(name, 0) >= amount for name, amount in resources.items()):
            places.append(Place(node["NodeID"], machine, port + before[machine] * replicas))
            before[machine] += 1
    return places


async def _stay(
    place: Place, order: Order, resources: Mapping[str, float], on_progress: Listener, on_answer: OnAnswer
) -> None:
    """Have a machine serve until a server ends.

    Raises:
        OperationalError: it ended, or the machine has no room, or was lost.
    """
    ray = importlib.import_module("ray")
    there = pin_to_node(place.node)
    make = ray.remote(**split_resources(resources), max_restarts=0, scheduling_strategy=there)(_Servers)
    actor = make.remote()
    try:
        await asyncio.wait_for(actor.__ray_ready__.remote(), ROOM_S)
        stream = actor.serve.options(num_returns="streaming").remote(order, place.port)
        async for reference in stream:
            news = await reference
            if isinstance(news, StepProgress):
                on_progress(news.model_copy(update={"step": f"{place.address}: {news.step}"}))
            else:
                on_answer(news)
    except TimeoutError as error:
        raise OperationalError(
            f"machine {place.address} has no room for a server: something else takes its cores or cards."
        ) from error
    except ray.exceptions.RayTaskError as error:
        raise OperationalError(f"machine {place.address}: {error.cause}") from error
    except ray.exceptions.RayError as error:
        raise OperationalError(f"machine {place.address} was lost ({str(error).splitlines()[0]}).") from error
    finally:
        with suppress(ray.exceptions.RayError, TimeoutError):
            await asyncio.wait_for(actor.stop.remote(), STOP_S)
        ray.kill(actor)


class _Servers:
    """The servers of a machine, in an actor."""

    def __init__(self) -> None:
        self._serving: asyncio.Task[None] | None = None

    async def serve(self, order: Order, port: int) -> AsyncIterator[StepProgress | list[str]]:
        """Serve until a server ends; yield the steps, and the base URLs when all answer."""
        said: asyncio.Queue[StepProgress | list[str] | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def say(news: StepProgress | Sequence[str]) -> None:
            # From a thread, too: `prepare` blocks.
            loop.call_soon_threadsafe(said.put_nowait, news if isinstance(news, StepProgress) else [*news])

        async def stay() -> None:
            try:
                prepared = await asyncio.to_thread(prepare, order.model, on_progress=say)
                if not order.prepare_only:
                    await serve_parts(
                        parts(prepared, order.replicas, order.extra_flags),
                        port=port,
                        extra_flags=order.extra_flags,
                        startup_timeout=order.startup_timeout,
                        on_progress=say,
                        on_answer=say,
                    )
            finally:
                loop.call_soon(said.put_nowait, None)

        self._serving = asyncio.create_task(stay())
        while (news := await said.get()) is not None:
            yield news
        await self._serving

    async def stop(self) -> None:
        """End the servers."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
