"""A test's endpoint leaves no connection behind, whenever it ends."""

from __future__ import annotations

import gc
import socket
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import pytest

from hallulab.testing.endpoint import completion, serve_stub
from tests.kit.faulty_endpoint import faulty_endpoint


def faulty() -> AbstractContextManager[object]:
    """An endpoint of which no request fails."""
    return faulty_endpoint(0.0)


@pytest.mark.parametrize("opened", [lambda: serve_stub(completion), faulty])
def test_a_connection_that_comes_when_the_endpoint_ends_is_closed(
    opened: Callable[[], AbstractContextManager[object]],
) -> None:
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(2):
            with opened() as endpoint:
                port = urlsplit(str(getattr(endpoint, "url", endpoint))).port
                clients = [socket.create_connection(("127.0.0.1", port or 0)) for _ in range(2)]
            for client in clients:
                client.close()
        gc.collect()
    assert [str(one.message) for one in caught] == []
