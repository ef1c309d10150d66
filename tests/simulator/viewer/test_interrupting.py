"""Ctrl-C ends a real viewer, whatever hangs in it, and nothing is printed of what hung."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.viewer import app
from hallulab.simulator.viewer.guard import Access
from hallulab.simulator.viewer.runs import ShownRuns
from tests.builders import conversation
from tests.simulator.viewer.serving import append

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
