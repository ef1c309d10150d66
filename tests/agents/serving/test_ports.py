from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.serving.ports import is_free, reserved_port
from scenarios.errors import OperationalError

TABLE = "header\n   0: 0100007F:{port:04X} 0100007F:1F91 {state} 0 0\n"


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


@pytest.mark.parametrize(("state", "free"), [("06", True), ("0A", False)])
def test_only_ended_connections_leave_a_port_free(
    loading_server: int, tmp_path: Path, state: str, free: bool
) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(TABLE.format(port=loading_server, state=state))
    assert is_free(loading_server, tmp_path) is free
