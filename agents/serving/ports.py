"""Ports of loopback: find a free one, and keep it for a server that listens late."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from hallulab.scenarios.errors import OperationalError

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
            return reuse == 0 or _only_lingers(port)
    return False


def _only_lingers(port: int) -> bool:
    """Return whether the port has ended connections and nothing else."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return False
    states = {one.status for one in connections if one.laddr and one.laddr.port == port}
    return states == {psutil.CONN_TIME_WAIT}
