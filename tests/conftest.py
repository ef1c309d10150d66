"""What holds for every test: no network but loopback, no cache but a test's own where it asks, one thread."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.simulator.command_line import CodeAndError, CommandLine

if TYPE_CHECKING:
    from hallulab.simulator.records.folder import RunFolder

pytest_plugins = ["tests.edited_code"]

# A busy machine makes no test wrong, and no input slow to make. The tests that one waits for try the same
# examples every time, so that a change fails them or nothing does; the other tiers try new ones.
settings.register_profile(
    "test", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("slow", settings.get_profile("test"), derandomize=False, print_blob=True)
settings.register_profile("soak", settings.get_profile("slow"), database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))


def pytest_configure(config: pytest.Config) -> None:
    """Make this process and those that it starts as every machine has them: one thread, and SIGINT heard.

    Each core has a process that tests. More threads of scikit-learn and torch wait for one another, spinning:
    to train `combined` on twenty replies took five times as long. The libraries read the variable when they
    are loaded. A real model server would inherit it.
    """
    if config.option.markexpr != "live":
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A shell has what it starts in the background ignore SIGINT, and so would every command that a test
    # interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connections leave this machine in no test that is not marked `live`."""
    if "live" in request.keywords:
        yield
        return
    connect = socket.socket.connect

    def loopback_only(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(str(address[0])):
            raise AssertionError(f"a test connects to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", loopback_only)
    yield


@pytest.fixture(autouse=True)
def no_calibrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test judges by a threshold that the machine's user has fitted. A test that fits one has a cache."""
    monkeypatch.setattr(
        "hallulab.detectors.base.thresholds.locate_cache",
        lambda: Path(os.environ.get("HALLULAB_CACHE", Path(os.devnull, "cache"))),
    )


@pytest.fixture(autouse=True)
def no_first_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints does not depend on how busy the machine is."""
    monkeypatch.setattr("hallulab.agents.progress.FIRST_LINE_AFTER", 86_400.0)


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder of a user who has fitted nothing yet."""
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(scope="session")
def demo_replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFolder]:
    """The recorded demo, replayed once for all processes that test. Who changes it copies it first."""
    from tests.demo import shared_replay  # its imports take a second, also where no test asks for it

    with shared_replay(tmp_path_factory.getbasetemp()) as run:
        yield run


@pytest.fixture(scope="session")
def live_model() -> Iterator[str]:
    """Base URL of the default CPU model, served for all live tests that ask for it."""
    command = [str(Path(sys.executable).with_name("hallulab")), "serve", "qwen2.5-coder-1.5b", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            assert url, "the server did not start"
            yield url
        finally:
            server.terminate()


@pytest.fixture
def hallulab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    """Runs a command in this process, with a cache of its own and 120 columns."""
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def code_and_error(hallulab: CommandLine) -> CodeAndError:
    """Runs `hallulab`; gives exit code and standard error."""
    return hallulab.code_and_error
