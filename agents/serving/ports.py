"""Ports of loopback: free ones, and keeping one for a server that takes its time to listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from scenarios.errors import OperationalError

LOOPBACK = "127.0.0.1"


@contextmanager
def reserved_port(port: int | None) -> Iterator[int]:
    """Keep a port of loopback for a server of ours until the block ends.

    A model server binds its port seconds after its start and listens minutes later. Until then another
    program could take it, and its answer be mistaken for our server's. We hold it bound with SO_REUSEADDR:
    our server, which sets the same, can bind and listen, and `is_free` is false for every other start.

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
    """Whether nobody has bound the port; connections of an ended server that linger on it do not count."""
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
    """Whether the system shows ended connections on the port, and nothing but those."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return False
    states = {one.status for one in connections if one.laddr and one.laddr.port == port}
    return states == {psutil.CONN_TIME_WAIT}
