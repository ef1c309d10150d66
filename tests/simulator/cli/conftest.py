"""Fixtures of the commands that write packs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hallulab.testing.scripted import ScriptedTransport, pool_through
from tests.kit.forked_runs import Ended
from tests.simulator.cli.every_command import Workshop, open_workshop
from tests.simulator.cli.pack_writer import ENDPOINT, WritePack, Writer, twelve_documents, without_weights
from tests.simulator.command_line import CommandLine


@pytest.fixture
def words() -> Iterator[None]:
    """Searches and comparisons are by words, without weights."""
    with without_weights():
        yield


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder of twelve documents."""
    return twelve_documents(tmp_path / "docs")


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    """The scripted model that answers every request."""
    writer = Writer()
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(ScriptedTransport(writer)))
    return writer


@pytest.fixture
def write_pack(hallulab: CommandLine, documents: Path, writer: Writer, tmp_path: Path) -> WritePack:
    """Writes the folder `pack` from the documents, by `init-scenario` with other flags."""

    def write(*flags: str | Path) -> Ended:
        return hallulab("init-scenario", tmp_path / "pack", "--documents", documents, *flags, *ENDPOINT)

    return write


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    """Runs every command that writes, in processes of their own."""
    with open_workshop() as made:
        yield made
