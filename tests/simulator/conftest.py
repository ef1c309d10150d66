from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.simulator.records.folder import RunFolder
from tests.simulator.compare.altered import with_another_prompt


@pytest.fixture
def changed_demo(demo_replay: RunFolder, tmp_path: Path) -> RunFolder:
    """The demo after a change of a prompt, in the folder `after`."""
    return with_another_prompt(demo_replay, tmp_path / "after")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run folder in which nothing is yet."""
    return RunFolder(tmp_path)
