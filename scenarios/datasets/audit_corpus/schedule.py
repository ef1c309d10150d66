"""Choose the responses of the audit corpus that hallucinate, and their numbers of such sentences.

The numbers of the plan hold exactly. They are spread evenly over the splits, and at random within them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from hallulab.scenarios.datasets.audit_corpus.sources import CorpusPlan, Source

Response = tuple[str, str]
"""Source identifier and generator."""


def schedule_hallucinations(
    plan: CorpusPlan, sources: Sequence[Source], rng: random.Random
) -> Counter[Response]:
    """Return (source, generator) → number of sentences with a hallucination; 0 for all others.

    Raises:
        ValueError: the plan's numbers of responses and of sentences contradict each other.
    """
    counts: Counter[Response] = Counter()
    for generator, row in plan.hallucinated.items():
        for collection, number in row.items():
            chosen = _choose_sources([s for s in sources if s.collection == collection], number, rng)
            counts.update((source.id, generator) for source in chosen)
    for split, total in plan.hallucinated_sentences.items():
        _add_sentences(plan, [source for source in sources if source.split == split], total, counts, rng)
    return counts


def _choose_sources(sources: Sequence[Source], number: int, rng: random.Random) -> list[Source]:
    """Choose `number` of the sources, from each split in proportion."""
    if not number:
        return []
    ordered = sorted(sources, key=lambda source: (source.split, rng.random()))
    offset = rng.random()
    return [ordered[int((place + offset) * len(ordered) / number)] for place in range(number)]


def _add_sentences(
    plan: CorpusPlan, sources: Sequence[Source], total: int, counts: Counter[Response], rng: random.Random
) -> None:
    """Raise the counts of responses to Data2txt sources until those of `sources` add up to `total`."""
    limits = {
        (source.id, generator): plan.collections[source.collection].sentences
        for source in sources
        if plan.collections[source.collection].task == "data2txt"
        for generator in plan.hallucinated
        if counts[source.id, generator]
    }
    names = {source.id for source in sources}
    missing = total - sum(number for (source, _), number in counts.items() if source in names)
    while missing > 0:
        able = [response for response, limit in limits.items() if counts[response] < limit]
        if not able:
            break
        raised = rng.sample(able, min(missing, len(able)))
        counts.update(raised)
        missing -= len(raised)
    if missing:
        raise ValueError(f"{total} hallucinated sentences cannot be had from {len(names)} sources")
