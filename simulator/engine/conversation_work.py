"""What workers of a run do: hold conversations and judge their turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hallulab.agents.machine.cache import building, replacing, silent
from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.model import ModelPool
from hallulab.scenarios.files.opening import read_file
from hallulab.scenarios.packs.pack import Scenario
from hallulab.simulator.engine.executors import LocalExecutor
from hallulab.simulator.engine.participants import build_participants, make_knowledge
from hallulab.simulator.records.config import Experiment


@dataclass(frozen=True)
class ConversationWork:
    """Conversations are held and judged (a `Work`)."""

    scenario: Scenario
    """The experiment's pack, with what an attack changed."""
    judge: bool
    """Whether replies are judged."""
    max_turns: int
    vectors: Mapping[str, bytes] | None = None
    """The files of the documents' vectors, for machines that lack them; None: nobody may."""

    def make_executor(
        self, experiment: Experiment, pool: ModelPool, limits: AdaptiveLimits | None
    ) -> LocalExecutor:
        """See `Work`."""
        knowledge = make_knowledge(experiment, self.scenario, pool)
        if self.vectors is not None:
            place_vectors(knowledge.folder, self.vectors)
        return LocalExecutor(
            build_participants(experiment, self.scenario, pool, knowledge, self.judge, self.max_turns, limits)
        )


def place_vectors(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the documents' vectors where they belong, unless they are there.

    Raises:
        OperationalError: the cache cannot be written.
    """
    with building(folder, silent):
        if not folder.exists():
            with replacing(folder) as partial:
                for name, content in files.items():
                    path = partial / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)


def read_vectors(folder: Path) -> dict[str, bytes] | None:
    """Return the files of the documents' vectors by their names; None if nobody has made them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): read_file(path) for path in files} or None
