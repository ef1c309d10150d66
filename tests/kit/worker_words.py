"""Word vectors in worker processes, where a `with` block of the test does not reach."""

from __future__ import annotations

from hallulab.testing.tiny_pack import words_for_vectors


def use_word_vectors() -> None:
    """Find passages by their words in this process from now on; pickled as `prepare_worker`."""
    words_for_vectors().__enter__()
