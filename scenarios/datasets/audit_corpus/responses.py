"""The responses of the audit corpus: facts of a source, some with one value replaced by a false one.

The plan says how many hallucinate; they are spread evenly over the splits, and at random within them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hallulab.scenarios.datasets.audit_corpus.sources import (
    CorpusPlan,
    Fact,
    Forms,
    Source,
    fill,
    list_slots,
    read_pools,
)
from hallulab.scenarios.labelled import GoldSpan


class Response(NamedTuple):
    """A response and its gold annotation."""

    text: str
    """The sentences, separated by spaces."""
    spans: tuple[GoldSpan, ...]
    """The replaced values, labelled with their kind."""
    sentences: tuple[tuple[int, int, int | None], ...]
    """[start, end) of each sentence and the position of the supporting passage; None: there is none."""


def write_response(
    source: Source, sentences: int, hallucinated: int, elsewhere: float, rng: random.Random
) -> Response:
    """Write a response of `sentences` different facts of the source; falsify `hallucinated` of them."""
    facts = sorted(rng.sample(range(len(source.blueprint.facts)), sentences))
    false = set(rng.sample(facts, hallucinated))
    text = ""
    spans: list[GoldSpan] = []
    bounds: list[tuple[int, int, int | None]] = []
    for number in facts:
        fact = source.blueprint.facts[number]
        text += " " if text else ""
        start = len(text)
        sentence, replaced, kind = _render_sentence(source, fact, number in false, elsewhere, rng)
        spans += [GoldSpan(start=start + a, end=start + b, label=kind) for a, b in replaced]
        text += sentence
        names = [passage.id.removeprefix(f"{source.id}#") for passage in source.passages]
        bounds.append((start, len(text), None if replaced else names.index(fact.evidence)))
    return Response(text, tuple(spans), tuple(bounds))


def _render_sentence(
    source: Source, fact: Fact, falsify: bool, elsewhere: float, rng: random.Random
) -> tuple[str, Sequence[tuple[int, int]], str]:
    """Return the sentence, its false places, and the kind of the replaced value."""
    template = rng.choice(fact.texts)
    if not falsify:
        return fill(template, source.values).text, (), ""
    slot = rng.choice([name for name in fact.replace if name in list_slots(template)])
    value = _choose_false_value(source, slot, fact.also, elsewhere, rng)
    sentence = fill(template, source.values | {slot: value})
    return sentence.text, sentence.places[slot], source.blueprint.slots[slot]


def _choose_false_value(
    source: Source, slot: str, also: Sequence[str], elsewhere: float, rng: random.Random
) -> Forms:
    """Return another value of the slot's kind: one of the source's own, or one that the source lacks."""
    kind = source.blueprint.slots[slot]
    others = [name for name, its_kind in source.blueprint.slots.items() if its_kind == kind and name != slot]
    if others and rng.random() < elsewhere:
        # Drawn among all of them, so that the corpus of the published seed does not change.
        other = rng.choice(others)
        if other not in also:
            return source.values[other]
    pools = read_pools()
    forms = pools[pools[kind].instead or kind].all_forms()
    return next(
        value
        for value in rng.sample(forms, len(forms))
        if not any(re.search(rf"\b{re.escape(form)}\b", source.text, re.IGNORECASE) for form in value if form)
    )


def schedule_hallucinations(
    plan: CorpusPlan, sources: Sequence[Source], rng: random.Random
) -> Counter[tuple[str, str]]:
    """Return (source, generator) → number of sentences with a hallucination; 0 for all others.

    Raises:
        ValueError: the plan's numbers of responses and of sentences contradict each other.
    """
    counts: Counter[tuple[str, str]] = Counter()
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
    plan: CorpusPlan,
    sources: Sequence[Source],
    total: int,
    counts: Counter[tuple[str, str]],
    rng: random.Random,
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
