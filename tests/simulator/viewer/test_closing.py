"""The server ends although pages are open, and prints nothing of them."""

from __future__ import annotations

import socket
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builders import conversation
from tests.simulator.viewer.serving import append, serving


def test_a_page_that_follows_a_run_does_not_hold_up_the_server(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path / "run" / "conversations.jsonl", [conversation("a", ["x"])])
    with serving([tmp_path / "run"], tmp_path / "indices") as served:
        access = served.listening.access
        request = urllib.request.Request(
            f"{served.base}/runs/{served.runs.list()[0].id}/events",
            headers={"Cookie": f"{access.cookie}={access.token}"},
        )
        stream = urllib.request.urlopen(request, timeout=120)
        assert stream.readline() == b"event: grown\n"
        rest: list[bytes] = []
        reader = threading.Thread(target=lambda: rest.append(stream.read()))
        reader.start()
    reader.join(20)
    stream.close()
    assert rest[0].startswith(b"data: ")
    assert capfd.readouterr().err == ""


HEAD = "Host: {host}\r\nCookie: {cookie}\r\nOrigin: http://{host}\r\nx-hallulab: 1\r\n"
BROKEN = (
    "POST /start/check HTTP/1.1\r\n" + HEAD + "Content-Length: 100\r\n\r\nhalf",
    "POST /runs/none/marks HTTP/1.1\r\n" + HEAD + "Content-Length: 3\r\n\r\nmore than three",
    "POST /start/check HTTP/1.1\r\n" + HEAD + "Content-Length: -1\r\n\r\n",
    "POST /start/check HTTP/1.1\r\n" + HEAD + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "POST /start/check HTTP/1.1\r\n" + HEAD + "Content-Length: ٣\r\n\r\nabc",
    "POST /start/check HTTP/1.1\r\n" + HEAD + f"Content-Length: {'9' * 5000}\r\n\r\nab",
    "POST /start/check HTTP/1.1\r\n" + HEAD + "Transfer-Encoding: chunked\r\n\r\n5\r\nhal",
    "POST /start/check HTTP/1.1\r\n" + HEAD + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n0\r\n\r\n",
    "POST /start/check HTTP/1.1\r\n"
    + HEAD
    + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /%zz%ff%00 HTTP/1.1\r\n" + HEAD + "\r\n",
    "GET /\x00 HTTP/1.1\r\n" + HEAD + "\r\n",
    "GET / HTTP/1.1\r\n" + HEAD + f"Long: {'x' * 200_000}\r\n\r\n",
    f"GET /{'x' * 200_000} HTTP/1.1\r\n" + HEAD + "\r\n",
    "GET / HTTP/1.1\r\n" + HEAD + "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "GET / HTTP/9.9\r\n" + HEAD + "\r\n",
    "GET",
    "\x16\x03\x01\x02",
    "",
)
"""What clients send that break off or are wrong."""


def test_clients_that_break_off_or_send_nonsense_are_no_news(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path / "run" / "conversations.jsonl", [conversation("a", ["x"])])
    with serving([tmp_path / "run"], tmp_path / "indices") as served:
        access = served.listening.access
        told = {"host": f"127.0.0.1:{access.port}", "cookie": f"{access.cookie}={access.token}"}
        for text in BROKEN:
            # The server may have closed the connection.
            with (
                socket.create_connection(("127.0.0.1", access.port), timeout=20) as client,
                suppress(OSError),
            ):
                client.sendall(text.format(**told).encode())
                client.shutdown(socket.SHUT_WR)
                assert not client.recv(20).startswith(b"HTTP/1.1 500"), text[:80]
        assert served.get("/")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_large_page_comes_whole(tmp_path: Path) -> None:
    append(tmp_path / "run" / "conversations.jsonl", [conversation("a", ["₹ " * 400_000])])
    with serving([tmp_path / "run"], tmp_path / "indices") as served:
        status, page = served.get(f"/runs/{served.runs.list()[0].id}/conversations/a")
    assert status == 200
    assert page.count("₹ ") >= 400_000
    assert page.rstrip().endswith("</html>")
