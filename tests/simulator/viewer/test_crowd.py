"""Many slow clients, many followers and two annotators at once: little memory, and every label once."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from hallulab.simulator.viewer import runs_page
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns
from hallulab.simulator.viewer.runs_page import RunWatcher
from tests.builders import conversation, scored
from tests.simulator.viewer.serving import append

MEBIBYTE = 1 << 20
SLOW, FOLLOWERS, KEYS = 60, 200, 40


class Client:
    """A browser with the token of a viewer.

    Args:
        address: what `hallulab view` printed.
    """

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        self.place = parts.hostname or "", parts.port or 0
        self.base = f"http://{parts.netloc}"
        token = urllib.parse.parse_qs(parts.query)["token"][0]
        self.headers = {
            "Host": parts.netloc,
            "Cookie": f"hallulab-{parts.port}={token}",
            "Origin": self.base,
            "x-hallulab": "1",
        }

    def get(self, path: str) -> bytes:
        """The body of an answer."""
        request = urllib.request.Request(f"{self.base}{path}", headers=self.headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            body: bytes = answer.read()
        return body

    def press(self, run: str, annotator: str, turn: int) -> None:
        """Say that a turn is unknown."""
        key = {"annotator": annotator, "conversation": "a", "turn": turn, "kind": "unknown"}
        body = json.dumps(key).encode()
        request = urllib.request.Request(f"{self.base}/runs/{run}/marks", data=body, headers=self.headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()

    def open(self, path: str) -> socket.socket:
        """A connection on which a request was sent, whose answer nobody reads."""
        found = socket.create_connection(self.place, timeout=120)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lines = [
            f"GET {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in self.headers.items()),
            "",
            "",
        ]
        found.sendall("\r\n".join(lines).encode())
        return found

    def begin(self) -> socket.socket:
        """A connection on which a request is sent letter by letter, and never ends."""
        found = socket.create_connection(self.place, timeout=120)
        found.sendall(b"GET / HTTP/1.1\r\n")
        return found


@contextmanager
def viewing(folder: Path) -> Iterator[tuple[Client, psutil.Process]]:
    """A real viewer."""
    command = [sys.executable, "-m", "hallulab", "view", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Client(process.stdout.readline().strip()), psutil.Process(process.pid)
            process.terminate()
            rest, told = process.communicate(timeout=60)
            assert (process.returncode, rest, told) == (0, "", "")
        finally:
            process.kill()


@pytest.mark.slow
def test_a_crowd_takes_little_memory_and_loses_no_label(tmp_path: Path) -> None:
    run = tmp_path / "run"
    append(run / "conversations.jsonl", [conversation("a", ["The fee is Rs 500. " * 2000] * KEYS)])
    append(run / "verdicts.jsonl", [scored("a", turn, [(0, 1)]) for turn in range(KEYS)])
    id = ShownRuns([run], tmp_path / "indices").list()[0].id
    with viewing(tmp_path) as (client, viewer), ExitStack() as opened:
        pages = [f"/runs/{id}", f"/runs/{id}/conversations/a", f"/runs/{id}/labels", "/"]
        for page in pages:
            client.get(page)
        client.press(id, "first", 0)
        before = viewer.memory_info().rss
        slow = [opened.enter_context(client.begin()) for _ in range(SLOW // 2)]
        for number in range(SLOW // 2):
            opened.enter_context(client.open(pages[number % 2]))
        for _ in range(FOLLOWERS):
            opened.enter_context(client.open(f"/runs/{id}/events"))
        annotators = [
            threading.Thread(target=lambda name=name: [client.press(id, name, turn) for turn in range(KEYS)])
            for name in ("asha", "dev")
        ]
        for thread in annotators:
            thread.start()
        most = before
        while any(thread.is_alive() for thread in annotators):
            for one in slow:
                one.sendall(b"x")
            most = max(most, viewer.memory_info().rss)
            time.sleep(0.05)
        for page in pages:
            client.get(page)
        most = max(most, viewer.memory_info().rss)
    lines = [json.loads(line) for line in (run / "annotations.jsonl").read_text().splitlines()]
    labels = Counter((line["annotator"], line["turn"]) for line in lines)
    wanted = {(f"person:{name}", turn) for name in ("asha", "dev") for turn in range(KEYS)}
    assert labels == Counter(wanted | {("person:first", 0)})
    assert (most - before) / MEBIBYTE < 100


def test_all_who_follow_a_run_share_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path / "run" / "conversations.jsonl", [conversation("a", ["x"])])
    [run] = ShownRuns([tmp_path / "run"], tmp_path / "indices").list()
    looked: list[ShownRun] = []

    def look_and_count(run: ShownRun) -> str:
        looked.append(run)
        return str(len(looked))

    monkeypatch.setattr(runs_page, "LOOK_S", 3600)

    async def follow() -> list[str]:
        watch = RunWatcher(look_and_count)
        return [*await asyncio.gather(*(watch.look(run) for _ in range(200))), await watch.look(run)]

    assert asyncio.run(follow()) == ["1"] * 201
