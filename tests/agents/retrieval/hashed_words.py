"""Embedders without a model: texts that share words are near."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray


class WordVectors:
    """Counts words in hashed buckets."""

    def __init__(self, name: str = "hashed-words", dimensions: int = 256) -> None:
        self.name = name
        self._dimensions = dimensions

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """Return a vector a text."""
        return numpy.stack([self._vector(text) for text in texts])

    def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        """Return a vector a text."""
        return self.passages(texts)

    def _vector(self, text: str) -> NDArray[numpy.float32]:
        vector = numpy.zeros(self._dimensions, dtype=numpy.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % self._dimensions] += 1
        return vector / max(1.0, float(numpy.linalg.norm(vector)))


class HashedWords(WordVectors):
    """Keeps what it was asked to embed."""

    def __init__(self, name: str = "hashed-words", dimensions: int = 256) -> None:
        super().__init__(name, dimensions)
        self.batches: list[list[str]] = []
        self.asked: list[list[str]] = []

    def passages(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        self.batches.append(list(texts))
        return super().passages(texts)

    def queries(self, texts: Sequence[str]) -> NDArray[numpy.float32]:
        self.asked.append(list(texts))
        return super().passages(texts)
