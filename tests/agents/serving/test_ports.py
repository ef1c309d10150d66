from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from hallulab.agents.serving.server import is_free, reserved_port
from hallulab.scenarios.errors import OperationalError


@pytest.fixture
def loading_server() -> Iterator[int]:
    """The port of a server that has bound and does not listen yet, as vLLM while it loads a model."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        yield server.getsockname()[1]


def test_our_server_can_bind_and_listen_on_a_reserved_port_and_nobody_else() -> None:
    with reserved_port(None) as port:
        assert not is_free(port)
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", port))
            server.listen()
    assert is_free(port)


def test_a_port_of_a_server_that_still_loads_is_taken(loading_server: int) -> None:
    with (
        pytest.raises(OperationalError, match=rf"port {loading_server} of 127\.0\.0\.1 is taken"),
        reserved_port(loading_server),
    ):
        raise AssertionError


def test_a_connection_that_lingers_leaves_the_port_free() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            # Whoever closes first keeps the lingering end.
            server.accept()[0].close()
    with socket.socket() as probe, pytest.raises(OSError, match="in use"):
        probe.bind(("127.0.0.1", port))
    assert is_free(port)
