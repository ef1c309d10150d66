"""The smallest run that is one: a pack of one document and one persona, and the flags to run it with."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

import numpy
from numpy.typing import NDArray

from hallulab.scenarios.arguments import check_arguments

FILES = {
    "scenario.yaml": "schema: 1\nname: tiny\ntitle: Tiny\ndescription: A tiny pack.\ndomain: tea\n"
    "assistant: help with tea\ndocuments: documents\npersonas: personas.yaml\n",
    "personas.yaml": "personas:\n  - {id: ann, name: Ann, grievance: Her tea is cold., goals: [Warm tea], "
    "manner: Brief., summary: She asked for warm tea.}\n",
    "documents/kettle.md": "# The kettle\n\nWater boils at 100 degrees. A kettle takes three minutes.\n",
}

URL = "http://127.0.0.1:9/v1"


@check_arguments
def make_pack(folder: Path) -> Path:
    """Write the pack into a new folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def flags(pack: Path, *more: str | Path, url: str = URL, detectors: str = "lexical,halludetect") -> list[str]:
    """Arguments of `run`: two turns at most with one chatbot, judged."""
    return [
        *("run", "--scenario", str(pack), "--model", "m", "--base-url", url, "--chatbots", "vanilla"),
        *("--detectors", detectors, "--min-turns", "1", "--max-turns", "2", "--quiet"),
        *map(str, more),
    ]


def words_for_vectors() -> AbstractContextManager[object]:
    """Let passages be found by their words in the block, so that no weights are loaded."""
    return patch("hallulab.agents.retrieval.knowledge.SentenceEmbedder", lambda *_, **__: HashedWords())


class HashedWords:
    """An embedder that counts words in hashed buckets, and keeps the texts it embedded.

    Args:
        name: the embedder's name, which is part of the name of a cached index.
    """

    def __init__(self, name: str = "hashed-words", dimensions: int = 256) -> None:
        self.name = name
        self._dimensions = dimensions
        self.batches: list[list[str]] = []
        self.asked: list[list[str]] = []

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """Return vectors, shape (texts, dimensions), and keep the texts in `batches`."""
        self.batches.append(list(texts))
        return numpy.stack([self._vector(text) for text in texts])

    def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """Return vectors, shape (texts, dimensions), and keep the texts in `asked`."""
        self.asked.append(list(texts))
        return numpy.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> NDArray[numpy.float32]:
        vector = numpy.zeros(self._dimensions, dtype=numpy.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % self._dimensions] += 1
        return vector / max(1.0, float(numpy.linalg.norm(vector)))
