"""A viewer that serves in a thread, and run folders for it."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from pydantic import BaseModel

from hallulab.simulator.viewer import results
from hallulab.simulator.viewer.app import Listening, listen, make_server
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.runs import ShownRuns


@dataclass(frozen=True)
class Served:
    """A viewer that serves."""

    listening: Listening
    """Where, and what requests must bring."""
    runs: ShownRuns
    """What it shows."""

    @property
    def base(self) -> str:
        """Its address without the token."""
        return f"http://127.0.0.1:{self.listening.access.port}"

    def get(self, path: str, **headers: str | None) -> tuple[int, str]:
        """The status and the body of an answer, as it was sent."""
        return self._send(urllib.request.Request(f"{self.base}{path}"), headers)

    def post(self, path: str, body: bytes, **headers: str | None) -> tuple[int, str]:
        """The status and the body of an answer to a request that writes, as the page sends it.

        Args:
            path: of the address.
            body: the request's.
            headers: others than those of the page; None: it is left out.
        """
        usual = {"origin": self.base, "x-hallulab": "1"}
        given = {name.lower(): value for name, value in headers.items()}
        return self._send(urllib.request.Request(f"{self.base}{path}", data=body), usual | given)

    def _send(self, request: urllib.request.Request, headers: Mapping[str, str | None]) -> tuple[int, str]:
        access = self.listening.access
        for name, value in {"cookie": f"{access.cookie}={access.token}", **headers}.items():
            if value is not None:
                request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=240) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@contextmanager
def serving(paths: Sequence[Path], indices: Path, launcher: Launcher | None = None) -> Iterator[Served]:
    """Serve run folders while the block runs."""
    ready = threading.Event()
    listening = listen(0)
    runs = ShownRuns(paths, indices)
    server = make_server(runs, listening, ready.set, launcher=launcher)
    thread = threading.Thread(target=server.run, args=([listening.socket],), daemon=True)
    thread.start()
    assert ready.wait(120)
    try:
        with patch.object(results, "WAIT_S", 60):  # a slow machine shall not change what a page has
            yield Served(listening, runs)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def append(path: Path, lines: Sequence[BaseModel]) -> None:
    """Add lines to a journal."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write("".join(f"{line.model_dump_json()}\n" for line in lines))
