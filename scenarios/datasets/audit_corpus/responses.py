"""The responses of the audit corpus: facts of a source, some with one value replaced by a false one."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from hallulab.scenarios.datasets.audit_corpus.sources import Fact, Forms, Source, fill, list_slots, read_pools
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
