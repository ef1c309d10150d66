"""Plant errors into clean replies by rule: known kinds, exact places, and for each the clean twin."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.text.edits import SentenceBank, is_clean_edit
from hallulab.scenarios.text.items import find_items
from hallulab.scenarios.text.spans import normalize_text
from hallulab.simulator.planting.kinds import KINDS, PlantedError, Rule
from hallulab.simulator.planting.material import Clean
from hallulab.simulator.planting.moved_citation import KIND, move_citation

RULES: Mapping[str, Rule] = {**KINDS, KIND: move_citation}
"""All kinds; the last one is planted only if it is named, for detectors do not read citations."""

TRIES = 100
"""Clean replies of a stream that are tried for one error."""
_VALUES = frozenset({"number", "date", "name", "unit", "reference"})
"""Kinds whose new value must not stand anywhere in the evidence."""


@dataclass
class Planting:
    """The planted errors, and those that found no place."""

    replies: list[LabelledReply] = field(default_factory=list)
    """Each error, followed by its clean twin."""
    lacking: Counter[str] = field(default_factory=Counter)
    """Kind → number of errors asked for that found no place in this material."""
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Kind and reason → number of errors that a model wrote, and that are none."""


def plant(
    streams: Sequence[Iterator[Clean]], library: SentenceBank, kinds: Sequence[str], count: int, seed: int
) -> Planting:
    """Plant errors of the kinds in turn; those of one kind go into the streams in turn.

    Equal arguments give equal errors. Every error is checked (`is_sound`).

    Args:
        streams: endless replies to plant into: one stream for each number of turns and of passages.
        kinds: names of `RULES`.
        count: errors wanted, over all kinds.
    """
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    done = Planting()
    seen: set[tuple[str, str]] = set()
    for name, kind, turn in take_turns(kinds, streams, count, done.lacking):
        tried = (_find_sound_error(kind, stream, library, generator, seen) for stream in turn)
        planted = next((one for one in tried if one is not None), None)
        if planted is None:
            done.lacking[kind] += 1
        else:
            done.replies += build_labelled_pair(name, kind, planted, "rules")
    return done


def take_turns(
    kinds: Sequence[str], streams: Sequence[Iterator[Clean]], count: int, lacking: Mapping[str, int]
) -> Iterator[tuple[str, str, Sequence[Iterator[Clean]]]]:
    """Yield name, kind and streams of each error wanted, the stream to try first at the head.

    A kind that found no place before (`lacking`, which may grow meanwhile) is not tried again: no stream.
    """
    for number in range(count):
        kind = kinds[number % len(kinds)]
        # By rounds over the kinds: by the number alone, a kind could always meet the same stream.
        first = number // len(kinds) % len(streams)
        yield f"{kind}-{number}", kind, () if lacking.get(kind) else (*streams[first:], *streams[:first])


def _find_sound_error(
    kind: str,
    stream: Iterator[Clean],
    library: SentenceBank,
    generator: random.Random,
    seen: set[tuple[str, str]],
) -> PlantedError | None:
    for clean in islice(stream, TRIES):
        planted = RULES[kind](clean, library, generator)
        if planted is not None and (kind, planted.reply) not in seen and is_sound(kind, planted):
            seen.add((kind, planted.reply))
            return planted
    return None


def is_sound(kind: str, planted: PlantedError) -> bool:
    """Check that an error is sound: false by the evidence, at its place, and good English.

    - The sentence with the error does not stand in the evidence, even in other letters.
    - Of a changed value, and of a made-up fact of the case, the new amount, date, name or reference stands
      nowhere in evidence, question and history.
    - The edit left no doubled word, blank or full stop.
    """
    clean = planted.clean
    wrong = planted.reply[planted.start : planted.end]
    if not wrong.strip() or planted.reply == clean.reply:
        return False
    if not is_clean_edit(clean.reply, planted.reply):
        return False
    # The wrong words with five words on either side.
    before = " ".join(planted.reply[: planted.start].split(" ")[-6:])
    after = " ".join(planted.reply[planted.end :].split(" ")[:6])
    if normalize_text(f"{before}{wrong}{after}") in normalize_text(clean.evidence):
        return False
    new = collect_items(planted.reply) - collect_items(clean.reply)
    if kind in _VALUES:
        return bool(new) and new.isdisjoint(collect_items(clean.known))
    return kind != "case-fact" or new.isdisjoint(collect_items(clean.known))


def collect_items(text: str) -> set[tuple[str, str]]:
    """Return kind and key of each item in a text."""
    return {(item.kind, item.key) for item in find_items(text)}


def build_labelled_pair(
    name: str, kind: str, planted: PlantedError, by: str
) -> tuple[LabelledReply, LabelledReply]:
    """Return an error, planted by `rules` or `model`, and its clean twin as labelled replies."""
    clean = planted.clean
    meta: dict[str, str | int] = {
        "kind": kind,
        "turn": clean.turn,
        "context": len(clean.passages),
        "source": clean.id,
        "by": by,
    }
    twin = f"{name}-clean"
    wrong = LabelledReply(
        id=name,
        dataset="planted",
        task="dialogue",
        question=clean.question,
        history=clean.history,
        passages=clean.passages,
        reply=planted.reply,
        label=True,
        spans=(GoldSpan(start=planted.start, end=planted.end, label=kind),),
        group=clean.group,
        meta={**meta, "twin": twin},
    )
    right = {"id": twin, "reply": clean.reply, "label": False, "spans": (), "meta": {**meta, "twin": name}}
    return wrong, wrong.model_copy(update=right)
