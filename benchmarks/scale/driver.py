"""A process to measure: `python -m benchmarks.scale.driver URL USERS DIR` runs an experiment with many users.

Passages are found by their words, without an embedding model: its libraries would hide what the run itself
needs. The users' messages are made up without a model, which would take most of the time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hallulab.agents.models.model import ModelPool
from hallulab.agents.users.user import UserMove
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Message
from hallulab.simulator.experiment.config import Experiment
from hallulab.simulator.experiment.models import RunSettings
from hallulab.simulator.experiment.run import run_experiment
from hallulab.simulator.runs.folder import RunFolder
from hallulab.testing.tiny_pack import WordVectors

CHATBOT = "vanilla"
DETECTORS = ("first", "second", "third")
"""Names of three lexical detectors, which ask no model."""
TURNS = 3
_QUESTIONS = (
    "What does it cost to complain?",
    "Who reads my letter, and where is that office?",
    "How long may the seller take until the goods are replaced?",
)


class Asker:
    """A simulated user without a model."""

    def __init__(self, persona: Persona, domain: str, pool: ModelPool, seed: int, **_: Any) -> None:
        self._who = f"{persona.id} {seed}"

    async def next(self, history: Sequence[Message]) -> UserMove:
        """Return the next message."""
        return UserMove(text=f"{_QUESTIONS[len(history) // 2]} I am {self._who}.")


def words_for_vectors() -> None:
    """Find passages by their words, from now on."""
    embedder = WordVectors("words", dimensions=64)
    patch("hallulab.agents.retrieval.knowledge.SentenceEmbedder", lambda *_, **__: embedder).start()


def experiment(base_url: str, users: int) -> Experiment:
    """Return the experiment: so many users, three turns each, three detectors."""
    values: dict[str, Any] = {
        "base_url": base_url,
        "model": "stub",
        "chatbots": [CHATBOT],
        "detectors": [{"name": name, "kind": "lexical"} for name in DETECTORS],
        "count": users,
        "min_turns": TURNS,
        "max_turns": TURNS,
    }
    return Experiment.model_validate(values)


def main() -> None:
    """Run it."""
    base_url, users, folder = sys.argv[1:]
    words_for_vectors()
    with patch("hallulab.simulator.experiment.participants.SimulatedUser", Asker):
        wanted = experiment(base_url, int(users))
        asyncio.run(run_experiment(wanted, RunFolder(Path(folder)), RunSettings(quiet=True), simulate=True))


if __name__ == "__main__":
    main()
