"""Other machines are asked through the proxies of the usual environment variables; this one never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
import pytest

from hallulab.agents.models.network import find_proxy
from hallulab.agents.models.transport import make_network
from hallulab.scenarios.errors import UsageError

ALL = {"http": "http://p:1", "https": "http://p:2"}


@pytest.mark.parametrize(
    ("url", "proxies", "proxy"),
    [
        ("http://models.example/v1", ALL, "http://p:1"),
        ("https://models.example/v1", ALL, "http://p:2"),
        ("https://models.example/v1", {"all": "p:3"}, "http://p:3"),
        ("https://models.example/v1", {"http": "http://p:1"}, None),
        ("http://127.0.0.1:8000/v1", ALL, None),
        ("http://localhost:8000/v1", ALL, None),
        ("http://[::1]:8000/v1", ALL, None),
        ("https://models.example/v1", {**ALL, "no": "other.example, models.example"}, None),
        ("https://eu.models.example/v1", {**ALL, "no": ".models.example"}, None),
        ("https://models.example/v1", {**ALL, "no": "*"}, None),
        ("http://10.1.2.3/v1", {**ALL, "no": "10.0.0.0/8"}, None),
        ("http://11.1.2.3/v1", {**ALL, "no": "10.0.0.0/8"}, "http://p:1"),
    ],
)
def test_which_proxy_is_asked(url: str, proxies: Mapping[str, str], proxy: str | None) -> None:
    assert find_proxy(httpx2.URL(url), proxies) == proxy


@asynccontextmanager
async def proxy_saying(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], heard
    server.close()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_request_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    async with proxy_saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as (port, heard):
        monkeypatch.setenv(name, f"http://user:pass-word-1@127.0.0.1:{port}")
        network = make_network()
        response = await network.handle_async_request(
            httpx2.Request("GET", "http://models.invalid/v1/models")
        )
        assert await response.aread() == b"ok"
        await network.aclose()
    assert heard[0].startswith(b"GET http://models.invalid/v1/models HTTP/1.1")
    assert b"Proxy-Authorization: Basic" in heard[0]


async def test_an_error_of_the_proxy_names_it_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxy_saying(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n") as (port, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass-word-1@127.0.0.1:{port}")
        network = make_network()
        with pytest.raises(httpx2.ProxyError, match=f"^through the proxy 127.0.0.1:{port}: 407") as caught:
            await network.handle_async_request(httpx2.Request("GET", "https://models.invalid/v1/models"))
        await network.aclose()
    assert "pass-word" not in str(caught.value)


async def test_what_is_no_proxy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://p:1")
    network = make_network()
    with pytest.raises(UsageError, match="the proxy gopher://p:1 cannot be used"):
        await network.handle_async_request(httpx2.Request("GET", "http://models.invalid/v1"))
    await network.aclose()
