"""Plant errors in fluent words: a model rewrites sentences of clean replies (`rewriting`)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hallulab.agents.models.errors import ModelError
from hallulab.agents.models.model import ModelPool, Session
from hallulab.agents.models.prompt import load_prompt
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.text.library import find_whole_sentences
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.simulator.stress.kinds import PlantedError, ask_again
from hallulab.simulator.stress.material import Clean
from hallulab.simulator.stress.planting import Planting, build_labelled_pair, is_sound
from hallulab.simulator.stress.rewriting import ORDERS, find_difference, find_flaw

_TRIES = 100
"""Clean replies of a stream that are looked at for one sentence."""
_TEMPERATURES = (0.0, 0.7)
"""Temperature of the first try and of the second."""
_MAX_TOKENS = 120
"""Limit of a rewriting; sentences of replies have at most 45 words."""
NO_ANSWER = "the model gave no answer"
"""Why an error is dropped: a request failed."""
UNSOUND = "bad grammar, or true after all"
"""Why an error is dropped: `is_sound` refuses it."""


@dataclass(frozen=True)
class _Place:
    """A sentence to rewrite."""

    name: str
    kind: str
    clean: Clean
    region: Region


async def plant_fluently(
    streams: Sequence[Iterator[Clean]],
    kinds: Sequence[str],
    count: int,
    seed: int,
    pool: ModelPool,
    on_done: Callable[[], object] = lambda: None,
) -> Planting:
    """Let a model write errors of the kinds in turn, into the streams in turn.

    What fails its checks is written once more with another seed, and then dropped.

    Args:
        streams: endless replies to plant into.
        kinds: names of `ORDERS`.
        count: sentences to rewrite, over all kinds.
        seed: of the choice of sentences, and of the model's answers.
        pool: its default model writes.
        on_done: called after every sentence.

    Raises:
        OperationalError: no request had an answer.
    """
    done = Planting()
    places = list(_draw_places(streams, kinds, count, seed, done))
    session = pool.session("planter", seed)

    async def written(place: _Place) -> PlantedError | str:
        found = await _generate_error(place, session)
        on_done()
        return found

    outcomes = await asyncio.gather(*map(written, places))
    for place, outcome in zip(places, outcomes, strict=True):
        if isinstance(outcome, PlantedError):
            done.replies += build_labelled_pair(place.name, place.kind, outcome, "model")
        else:
            done.dropped[place.kind, outcome] += 1
    if places and all(outcome == NO_ANSWER for outcome in outcomes):
        error = next(call.error for call in session.calls if call.error is not None)
        raise OperationalError(f"the model rewrote no sentence: {error}")
    return done


def _draw_places(
    streams: Sequence[Iterator[Clean]], kinds: Sequence[str], count: int, seed: int, done: Planting
) -> Iterator[_Place]:
    """Yield sentences, each once for a kind; count in `done` what finds none."""
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    seen: set[tuple[str, str]] = set()
    for number in range(count):
        kind = kinds[number % len(kinds)]
        first = number // len(kinds) % len(streams)
        turn = () if done.lacking[kind] else (*streams[first:], *streams[:first])
        offered = (
            (clean, region)
            for stream in turn
            for given in islice(stream, _TRIES)
            if (clean := ask_again(given) if kind == "contradiction" else given) is not None
            for region in _shuffle_sentences(clean.reply, generator)
            if (kind, region.of(clean.reply)) not in seen
        )
        found = next(offered, None)
        if found is None:
            done.lacking[kind] += 1
            continue
        clean, region = found
        seen.add((kind, region.of(clean.reply)))
        yield _Place(f"{kind}-{number}", kind, clean, region)


def _shuffle_sentences(reply: str, generator: random.Random) -> list[Region]:
    """Return the whole sentences of a reply, in random order."""
    said = split_sentences(reply)
    whole = [region for region in said if find_whole_sentences(region.of(reply)) == (region.of(reply),)]
    return generator.sample(whole, len(whole))


async def _generate_error(place: _Place, session: Session) -> PlantedError | str:
    """Return the error, or why the last try gave none."""
    reason = ""
    for sample, temperature in enumerate(_TEMPERATURES):
        sentence = place.region.of(place.clean.reply)
        try:
            answer = await session.text(
                "rewrite",
                load_prompt("hallulab.simulator.stress", "rewriting").fill(
                    order=ORDERS[place.kind].text, sentence=sentence
                ),
                temperature=temperature,
                max_tokens=_MAX_TOKENS,
                sample=sample,
            )
        except ModelError:
            reason = NO_ANSWER
            continue
        rewritten = " ".join(answer.split())
        planted = _build_error(place, rewritten)
        reason = find_flaw(place.kind, sentence, rewritten, place.clean) or (
            "" if is_sound(place.kind, planted) else UNSOUND
        )
        if not reason:
            return planted
    return reason


def _build_error(place: _Place, rewritten: str) -> PlantedError:
    clean, region = place.clean, place.region
    reply = clean.reply[: region.start] + rewritten + clean.reply[region.end :]
    wrong = find_difference(region.of(clean.reply), rewritten)
    return PlantedError(clean, reply, region.start + wrong.start, region.start + wrong.end)
