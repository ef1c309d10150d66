"""A viewer ends whatever hangs, its streams end with it, and clients that break off are no news."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.viewer import app
from hallulab.simulator.viewer.guard import Access
from hallulab.simulator.viewer.runs import ShownRuns
from tests.builders import conversation
from tests.simulator.viewer.serving import append, serving

HANGING = """
import threading
from hallulab.simulator.viewer.conversation_page import ConversationPages

def hang(*given):
    threading.Event().wait()

async def hang_in_the_loop(*given):
    hang()

ConversationPages.show_list = hang
ConversationPages.find_flagged = hang_in_the_loop
from hallulab.simulator.cli.main import main
main()
"""
"""The command, with a page that hangs in a thread and one that hangs in the loop of the server."""


@contextmanager
def viewing(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A viewer's process, which does not outlive the block, and its address."""
    command = [sys.executable, "-c", HANGING, "view", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def connect(address: str, request: str, body: str = "") -> socket.socket:
    """A connection on which a client with the token has sent this beginning of a request."""
    parts = urllib.parse.urlsplit(address)
    token = urllib.parse.parse_qs(parts.query)["token"][0]
    head = {
        "Host": parts.netloc,
        "Cookie": f"hallulab-{parts.port}={token}",
        "Origin": f"http://{parts.netloc}",
        "x-hallulab": "1",
        **({"Content-Length": "100"} if body else {}),
    }
    found = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20)
    lines = [f"{request} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", body]
    found.sendall("\r\n".join(lines).encode())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("hanging", ["conversations", "conversations/a/next/0"], ids=["thread", "loop"])
def test_a_viewer_ends_whatever_hangs(tmp_path: Path, number: signal.Signals, hanging: str) -> None:
    append(tmp_path / "run" / "conversations.jsonl", [conversation("a", ["x " * 1000] * 1000)])
    run = f"/runs/{ShownRuns([tmp_path], tmp_path / 'indices').list()[0].id}"
    with viewing(tmp_path) as (process, address), ExitStack() as opened:
        events = opened.enter_context(connect(address, f"GET {run}/events"))
        opened.enter_context(connect(address, "POST /start/check", "half"))
        opened.enter_context(connect(address, "GET"))
        opened.enter_context(connect(address, f"GET {run}/conversations/a"))  # is not read
        assert events.recv(15) == b"HTTP/1.1 200 OK"
        opened.enter_context(connect(address, f"GET {run}/{hanging}"))
        time.sleep(0.2)  # the last request may come later than the signal; the test is then an easier one
        process.send_signal(number)
        rest, told = process.communicate(timeout=240)
    assert (process.returncode, rest, told) == (0, "", "")


class HangingServer:
    """Stands for a server in which something hangs."""

    should_exit = False

    def run(self, sockets: list[socket.socket]) -> None:
        """Interrupt the process, and never return."""
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait()


def test_a_server_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "END_S", 0.01)
    server: Any = HangingServer()
    with socket.socket() as listening:
        assert not app.serve(server, app.Listening(listening, Access(1)))
    assert server.should_exit


def test_the_time_to_end_is_short() -> None:
    """The tests above would pass with a long one."""
    assert app.END_S <= 1.5


class FailingServer(HangingServer):
    """Stands for a server that cannot begin."""

    def run(self, sockets: list[socket.socket]) -> None:
        """Fail."""
        raise BrokenPipeError


def test_a_failure_of_the_server_is_raised_to_the_command() -> None:
    server: Any = FailingServer()
    with socket.socket() as listening, pytest.raises(BrokenPipeError):
        app.serve(server, app.Listening(listening, Access(1)))


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
