"""A process to measure: `python -m benchmarks.scale.driver URL USERS DIR` runs an experiment with many users.

Passages are found without an embedding model: its libraries would hide what the run itself needs. The users'
messages are made up without a model, which would take most of the time.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from hallulab.agents.models.model import ModelPool
from hallulab.agents.users.user import UserMove
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Message
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder

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


class TextVectors:
    """Embeds a text as a vector that depends on it alone, without a model. See `Embedder`."""

    name = "texts"

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (texts, 64)."""
        seeds = [zlib.crc32(text.encode()) for text in texts]
        return np.stack([np.random.default_rng(seed).normal(size=64) for seed in seeds]).astype(np.float32)

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (texts, 64)."""
        return self.passages(texts)


def embed_without_model() -> None:
    """Find passages without an embedding model, from now on."""
    embedder = TextVectors()
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
    embed_without_model()
    with patch("hallulab.simulator.engine.participants.SimulatedUser", Asker):
        wanted = experiment(base_url, int(users))
        asyncio.run(run_experiment(wanted, RunFolder(Path(folder)), RunSettings(quiet=True), simulate=True))


if __name__ == "__main__":
    main()
