"""Join a Ray cluster, or start one on this machine (`--ray`). Ray is imported when it is asked for."""

from __future__ import annotations

import importlib
import logging
import math
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from hallulab.agents.machine.ray_nodes import require_same_installed
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.extras import require_extra

LOCAL = "local"
"""The address of a cluster that is started here, and ends with the run."""

ANSWER_S = 5.0
"""Seconds in which a cluster's first machine must take a connection."""

LEAVE_S = 10.0
"""Seconds in which the processes of a cluster of our own let go of its folder."""

CPU = "CPU"
"""Ray's name for a processor core."""

GPU = "GPU"

_log = logging.getLogger(__name__)


@contextmanager
def join_cluster(address: str, workers: int, resources: Mapping[str, float]) -> Iterator[None]:
    """Join a Ray cluster while the block runs, or start one on the loopback address.

    Args:
        address: `local`, or where the cluster is, such as `10.0.0.1:6379` or `auto`.
        workers: how many actors there will be.
        resources: what each takes, by Ray's names.

    Raises:
        UsageError: Ray is not installed, the cluster has not so much, or its machines have another
            hallulab.
        OperationalError: the cluster cannot be started or joined.
    """
    ray = _import_ray()
    if ray.is_initialized():
        raise UsageError(f"--ray {address}: this process has joined a Ray cluster already. Leave it first.")
    here: dict[str, Any] = {"address": address}
    with ExitStack() as until_the_end:
        if address == LOCAL:
            own = {name: workers * amount for name, amount in split_resources(resources)["resources"].items()}
            here |= {
                "include_dashboard": False,
                "num_cpus": max(os.cpu_count() or 1, math.ceil(workers * resources.get(CPU, 0))),
                "resources": own,
                "_temp_dir": str(until_the_end.enter_context(_own_folder())),
            }
        else:
            _require_answer(address)
        until_the_end.callback(ray.shutdown)
        try:
            with _keeping_sigterm(), _on_loopback() if address == LOCAL else nullcontext():
                ray.init(**here, log_to_driver=False, logging_level="CRITICAL")
            _require_room(address, ray.cluster_resources(), workers, resources)
            if address != LOCAL:
                require_same_installed(address)
            yield
        except (ConnectionError, RuntimeError, ValueError) as error:
            if ray.is_initialized():
                raise
            reason = str(error).splitlines()[0]
            raise OperationalError(f"--ray {address}: no Ray cluster can be used there ({reason})") from error


def read_resources(given: Sequence[str]) -> dict[str, float]:
    """Read what each actor takes, such as `CPU=1` and `GPU=0.5`; without CPU, a core each.

    Raises:
        UsageError: one is not NAME=AMOUNT.
    """
    found: dict[str, float] = {CPU: 1.0}
    for one in given:
        name, _, amount = one.partition("=")
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = -1.0
        if not name or not 0 <= found[name] < 1e6:
            raise UsageError(f"--ray-resources {one}: give NAME=AMOUNT, such as CPU=1 or GPU=0.25.")
    return found


def split_resources(resources: Mapping[str, float]) -> dict[str, Any]:
    """Return what an actor takes as `ray.remote` wants it: cores and GPUs have arguments of their own."""
    return {
        "num_cpus": resources.get(CPU, 0),
        "num_gpus": resources.get(GPU, 0),
        "resources": {name: amount for name, amount in resources.items() if name not in (CPU, GPU)},
    }


def _import_ray() -> Any:
    """Import Ray, without what it does to this process.

    Raises:
        UsageError: it is not installed.
    """
    require_extra("ray", "ray", use="--ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with _keeping_sigterm():
        ray = importlib.import_module("ray")
    # There is no option for this: Ray prints what befalls nodes on standard output, where our results stand.
    driver: Any = importlib.import_module("ray._private.worker")
    driver.print_to_stdstream = _warn_of_event
    return ray


@contextmanager
def _own_folder() -> Iterator[Path]:
    """Yield a folder for what Ray writes, and remove it. Its path is short, as the paths of sockets must be.

    Ray's own place is shared with other clusters, and Ray leaves logs of each there for ever.
    """
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir=os.environ.get("RAY_TMPDIR")))
    try:
        yield folder
    finally:
        deadline = time.monotonic() + LEAVE_S
        # A process of the cluster that has not ended yet may write a file while the folder is emptied.
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.05)


@contextmanager
def _keeping_sigterm() -> Iterator[None]:
    """Put back who hears SIGTERM: Ray's import and its start set others, which print a stack and exit."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Have what Ray starts listen on the loopback address, as it does on a Mac.

    Elsewhere Ray takes the machine's own address and all interfaces, also where it is told 127.0.0.1.
    """
    constants: Any = importlib.import_module("ray._private.ray_constants")
    usual, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = usual


def _require_answer(address: str) -> None:
    """Raise an error unless somebody answers there: Ray would try for two minutes, and print each try.

    Raises:
        UsageError: it is the address of a Ray client, which gets no streams.
        OperationalError: nobody answers.
    """
    if address.startswith("ray://"):
        raise UsageError(
            f"--ray {address}: this is for Ray's client. Give HOST:PORT of the cluster, port 6379."
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise OperationalError(
            f"--ray {address}: nobody answers there. Start a cluster with `ray start --head`, or correct the "
            "address."
        ) from error


def _warn_of_event(data: Mapping[str, Any], ignore_prefix: bool) -> None:
    """Log the first sentence of what Ray would print, in the place of its own function."""
    for line in data["lines"][:1]:
        _log.warning("Ray: %s", str(line).splitlines()[0].partition(". ")[0])


def _require_room(
    address: str, there: Mapping[str, float], workers: int, resources: Mapping[str, float]
) -> None:
    """Raise UsageError if a cluster has less than all workers take: they would wait for ever."""
    for name, amount in resources.items():
        if workers * amount > there.get(name, 0) + 1e-9:
            raise UsageError(
                f"--ray {address}: {workers} workers take {workers * amount:g} {name}, and the cluster has "
                f"{there.get(name, 0):g}. Lower --workers, or give another --ray-resources."
            )
