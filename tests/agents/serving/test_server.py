from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil
import pytest

from hallulab.agents.machine.cache import Listener, StepProgress, silent
from hallulab.agents.serving import command
from hallulab.agents.serving.server import (
    KEPT_LOGS,
    RunningServer,
    end_of_log,
    is_free,
    is_healthy,
    new_log,
    reserved_port,
    serve_prepared,
)
from hallulab.scenarios.errors import OperationalError
from hallulab.testing.endpoint import StubProtocol, serve_protocol
from tests.agents.serving.fake_server import ANSWERS, FAILS, HANGS, fake_prepared


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def serving(
    folder: Path, script: str, port: int | None = None, timeout_s: float = 30, on_progress: Listener = silent
) -> AbstractAsyncContextManager[RunningServer]:
    """A prepared model whose server is the script."""
    return serve_prepared(
        fake_prepared(folder, script),
        port=port,
        extra_flags=(),
        startup_timeout=timeout_s,
        on_progress=on_progress,
    )


async def test_a_server_that_answers_is_served_and_ended(tmp_path: Path) -> None:
    news: list[StepProgress] = []
    async with serving(tmp_path, ANSWERS, on_progress=news.append) as server:
        served = server.served
        assert await is_healthy(int(served.base_url.split(":")[2].removesuffix("/v1")))
    assert (served.model, served.revision) == ("toy", "sha256:1")
    assert news[0].step == "starting the model server"
    assert is_free(int(served.base_url.split(":")[2].removesuffix("/v1")))
    assert server.process.returncode == 128 + signal.SIGTERM


async def test_health_is_told_by_the_status_whatever_the_body_is() -> None:
    class Endless(StubProtocol):
        def respond(self, head: bytes, body: bytes) -> None:
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")

    with serve_protocol(Endless) as url:
        assert await is_healthy(int(url.split(":")[2].removesuffix("/v1")))


async def test_a_server_that_dies_shows_cause_and_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(OperationalError) as error:
        async with serving(tmp_path, FAILS):
            raise AssertionError
    (log,) = (tmp_path / "cache" / "logs").iterdir()
    assert str(error.value) == (
        "the model server ended with exit code 3 before it answered. "
        "Its first error: (EngineCore pid=7) ERROR 11-21 06:15:30 [core.py:9] "
        "ValueError: the model is too large\n"
        f"The end of its log, {log}:\n" + "\n".join(f"  line {number}" for number in range(25, 40))
    )


async def test_a_server_that_never_answers_is_ended_and_said(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match=r"did not answer within 0 seconds"):
        async with serving(tmp_path, HANGS, timeout_s=0):
            raise AssertionError


async def test_a_server_that_dies_later_is_noticed(tmp_path: Path) -> None:
    async with serving(tmp_path, ANSWERS) as server:
        server.process.terminate()
        with pytest.raises(OperationalError, match="the model server ended with exit code 143"):
            await server.ended()


async def test_a_taken_port_is_named_with_the_remedy(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(OperationalError) as error:
        async with serving(tmp_path, ANSWERS, taken_port):
            raise AssertionError
    assert str(error.value) == (
        f"port {taken_port} of 127.0.0.1 is taken or not yours to use. Stop what uses it, or choose another "
        "with --port (without it a free one is found)."
    )


def test_where_one_of_several_servers_fails_all_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    mark = tmp_path / "one-answers"
    script = (
        f"import os\ntry:\n    os.mkdir({str(mark)!r})\nexcept FileExistsError:\n    os._exit(3)\n{ANSWERS}"
    )
    monkeypatch.setattr(command, "prepare", lambda *_, **__: fake_prepared(tmp_path, script))
    with pytest.raises(OperationalError, match="the model server ended with exit code 3 before it answered"):
        command.serve_command("toy", replicas=2, quiet=True)
    assert mark.exists()
    assert psutil.Process().children(recursive=True) == []
    assert capfd.readouterr().out == ""


def test_only_the_newest_logs_are_kept(tmp_path: Path) -> None:
    for number in range(KEPT_LOGS + 5):
        (tmp_path / f"{number}.log").touch()
        os.utime(tmp_path / f"{number}.log", (number, number))
    new_log(tmp_path, "org/model-1").touch()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == KEPT_LOGS
    assert "5.log" not in names
    assert "6.log" in names
    assert any(name.endswith("-org-model-1.log") for name in names)


def test_an_empty_log_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.log").touch()
    assert end_of_log(tmp_path / "x.log") == f"The end of its log, {tmp_path / 'x.log'}:\n  (empty)"


COMMAND = """
    import signal
    from pathlib import Path
    from hallulab.agents.serving import command
    from tests.agents.serving.fake_server import ANSWERS, fake_prepared

    # A shell's background jobs ignore it, and so would what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command.prepare = lambda model, on_progress: fake_prepared(Path({folder!r}), ANSWERS)
    command.serve_command("toy", quiet=True, replicas={replicas})
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("replicas", [1, 2])
def test_the_command_prints_its_urls_and_however_it_ends_the_servers_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, replicas: int
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    script = textwrap.dedent(COMMAND).format(folder=str(tmp_path), replicas=replicas)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        urls = [process.stdout.readline().strip() for _ in range(replicas)]
        supervisors = _children_of(process.pid)
        process.send_signal(number)
        process.wait(120)
    assert len(supervisors) == len(set(urls)) == replicas
    for supervisor in supervisors:
        _wait_for_end(supervisor)
    for url in urls:
        assert url.startswith("http://127.0.0.1:")
        assert is_free(int(url.split(":")[2].removesuffix("/v1")))


def _children_of(process: int) -> list[int]:
    """Pidfds of the children of a process."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [os.pidfd_open(int(child)) for child in children]


def _wait_for_end(pidfd: int) -> None:
    import select

    try:
        readable, _, _ = select.select([pidfd], [], [], 30)
        assert readable
    finally:
        os.close(pidfd)


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
