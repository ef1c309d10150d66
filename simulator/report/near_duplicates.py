"""Conversations that are nearly the same: by MinHash over runs of words (Broder 1997), with datasketch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

from hallulab.scenarios.transcript import Conversation

ALIKE = 0.8
"""Share of common runs of words (Jaccard) from which two conversations are near duplicates."""
RUN = 5
"""Words of a run."""
_HASHES = 128


class NearDuplicates:
    """Remembers conversations by signatures of half a kilobyte each; their texts are not kept."""

    def __init__(self) -> None:
        self._index = MinHashLSH(threshold=ALIKE, num_perm=_HASHES)
        self._signatures: list[NDArray[np.uint32]] = []

    def has(self, conversation: Conversation) -> bool:
        """Return whether an earlier one is nearly the same; else remember this one."""
        signature = MinHash(num_perm=_HASHES)
        signature.update_batch([run.encode() for run in set(_extract_runs(conversation))])
        own = signature.hashvalues.astype(np.uint32)
        # The index only proposes.
        if any(np.mean(self._signatures[place] == own) >= ALIKE for place in self._index.query(signature)):
            return True
        self._index.insert(len(self._signatures), signature)
        self._signatures.append(own)
        return False


def _extract_runs(conversation: Conversation) -> Iterator[str]:
    said = conversation.history(len(conversation.turns))
    words = [word for message in said for word in message.text.lower().split()]
    for start in range(max(1, len(words) - RUN + 1)):
        yield " ".join(words[start : start + RUN])
