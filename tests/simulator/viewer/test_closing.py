"""The server ends although pages are open, and prints nothing of them."""

from __future__ import annotations

import threading
import urllib.request
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
