"""Which conversations of a very large run its page shows: whole cases, as good as drawn at random."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from hallulab.simulator.records.journals import Journals, LineHeader

SHOWN = 10_000
"""Conversations of a very large run that its page shows, and the rest of the last case."""

Case = tuple[str, str, int]
"""Scenario, persona and seed."""


def choose_shown(journals: Journals) -> Journals:
    """Return the cases with the lowest hashes. Those of all parts of a run hold those of the run."""
    chosen = choose_cases(journals.heads)
    return journals.about(lambda head: _case_of(head) in chosen)


def choose_cases(heads: Iterable[LineHeader]) -> set[Case]:
    """Return the cases with the lowest hashes that have `SHOWN` conversations; all if there are fewer."""
    sizes = Counter(map(_case_of, heads))
    chosen: set[Case] = set()
    shown = 0
    for case in sorted(sizes, key=_hash_case):
        if shown >= SHOWN:
            break
        chosen.add(case)
        shown += sizes[case]
    return chosen


def _case_of(head: LineHeader) -> Case:
    return head.scenario, head.persona, head.seed


def _hash_case(case: Case) -> bytes:
    return hashlib.sha256("\0".join(map(str, case)).encode()).digest()
