"""Errors in fluent words: a model rewrites sentences of clean replies, and rules check what it wrote.

A small model often only rewords the sentence, or changes nothing that matters. So each kind has a mark that
the rewriting must bear and the sentence does not: another condition word, a negation more or less, a new
amount. A rewriting without it, or one that stands in the evidence, is dropped.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, starmap, takewhile

from hallulab.agents.concurrency import gather_results
from hallulab.agents.models.adaptive import AdaptiveLimits
from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.models.session import Session
from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.text.edits import find_whole_sentences
from hallulab.scenarios.text.spans import Region, normalize_text, split_sentences, split_words
from hallulab.simulator.engine.executors import SingleEventTask, TaskExecutor, perform_single
from hallulab.simulator.planting.kinds import PlantedError, ask_again
from hallulab.simulator.planting.material import Clean
from hallulab.simulator.planting.plant import (
    TRIES,
    Planting,
    build_labelled_pair,
    collect_items,
    is_sound,
    take_turns,
)
from hallulab.simulator.records.experiment import Experiment

_LENGTHS = (0.5, 2.0)
"""Least and most words of a rewriting, as a share of the sentence's."""
_KEPT = 0.4
"""Least share of the sentence's content words that a rewriting keeps, so that it is about the same thing."""
_ADDED = 3
"""Fewest words that a made-up step or fact adds."""
_ROW = 4
"""Words in a row that a good sentence does not have twice."""
_TOKEN = re.compile(r"\w+(?:[.,:'’/-]\w+)*|[^\w\s]")
_CONDITION = re.compile(
    r"\b(?:if|unless|only|except|even|provided|until|before|after|without|when|where|whether|regardless|within"
    r"|at least|at most|more than|less than|up to|no matter)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|cannot|without|\w+n['’]t)\b", re.IGNORECASE
)
_GENERAL = re.compile(
    r"\b(?:all|always|any|every|everyone|everybody|everywhere|never|automatically|any time)\b", re.IGNORECASE
)
_STEP = re.compile(
    r"\b(?:must|need|needs|have to|has to|required|first|then|before|after|once|fee|form)\b", re.IGNORECASE
)
_USER = re.compile(r"\b(?:you|your)\b", re.IGNORECASE)


@dataclass(frozen=True)
class RewriteInstruction:
    """A kind of error that a model writes."""

    text: str
    marked: Callable[[str, str, Clean], bool]


def _is_case_added(before: str, after: str, clean: Clean) -> bool:
    return (
        _USER.search(after) is not None
        and len(set(split_words(after)) - set(split_words(before))) >= _ADDED
        and len(_find_unknown_words(after, clean)) >= 1
    )


ORDERS: Mapping[str, RewriteInstruction] = {
    "other-rule": RewriteInstruction(
        "Put another rule in its place, with another deadline, amount or office.",
        lambda before, after, clean: bool(collect_items(after) - collect_items(clean.known)),
    ),
    "condition": RewriteInstruction(
        "Change the condition, or leave it out, so that it holds in other cases than said.",
        lambda before, after, _: _find_matches(_CONDITION, before) != _find_matches(_CONDITION, after),
    ),
    "case-fact": RewriteInstruction(
        "Add something about the user's own case that the user never told.", _is_case_added
    ),
    "step": RewriteInstruction(
        "Add a form, a fee or a step that does not exist.",
        lambda _, after, clean: (
            _STEP.search(after) is not None and len(_find_unknown_words(after, clean)) >= _ADDED
        ),
    ),
    "contradiction": RewriteInstruction(
        "Say the opposite.",
        # Two negations cancel each other, so their parity counts, not their number.
        lambda before, after, _: len(_NEGATION.findall(before)) % 2 != len(_NEGATION.findall(after)) % 2,
    ),
    "generality": RewriteInstruction(
        "Say that it holds always, for everybody or everywhere, although it does not.",
        lambda before, after, _: bool({*_find_matches(_GENERAL, after)} - {*_find_matches(_GENERAL, before)}),
    ),
}
"""Kind → the model's instruction, and the check of its answer."""


def find_flaw(kind: str, sentence: str, rewritten: str, clean: Clean) -> str | None:
    """Return why a rewriting is no error of its kind, or None if it is one.

    The reasons: it is not one whole sentence; it is much shorter or longer; it is about something else; it
    says something twice; it bears no mark of its kind; it stands in the evidence, or a sentence of the
    evidence has all its words.
    """
    if find_whole_sentences(rewritten) != (rewritten,) or len(split_sentences(rewritten)) != 1:
        return "not one whole sentence"
    before, after = split_words(sentence), split_words(rewritten)
    if not _LENGTHS[0] <= len(after) / len(before) <= _LENGTHS[1]:
        return "much shorter or longer"
    about = {word for word in before if len(word) > 3}
    if kind != "other-rule" and len(about & set(after)) < _KEPT * len(about):
        return "about something else"
    if _is_repeating(after) and not _is_repeating(before):
        return "says something twice"
    if before == after or not ORDERS[kind].marked(sentence, rewritten, clean):
        return "no error of its kind"
    evidence = clean.evidence
    has_all = (set(after) <= set(split_words(one.of(evidence))) for one in split_sentences(evidence))
    # A sentence whose condition was left out has no other words than the evidence.
    if normalize_text(rewritten) in normalize_text(clean.known) or (kind != "condition" and any(has_all)):
        return "supported"
    new = collect_items(rewritten) - collect_items(sentence)
    return "supported" if new and new <= collect_items(evidence) else None


def find_difference(sentence: str, rewritten: str) -> Region:
    """Return the stretch of the rewriting, in whole words, outside of which it is the sentence.

    Where words were only left out, nothing wrong would stand there; then it is the whole rewriting.
    """
    old, new = list(_TOKEN.finditer(sentence)), list(_TOKEN.finditer(rewritten))
    head = _count_equal_words(old, new)
    tail = _count_equal_words(old[head:][::-1], new[head:][::-1])
    if head + tail == len(new):
        return Region(0, len(rewritten))
    return Region(new[head].start(), new[len(new) - tail - 1].end())


def _count_equal_words(one: Sequence[re.Match[str]], other: Sequence[re.Match[str]]) -> int:
    """Return how many words are equal, from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0][0] == pair[1][0], zip(one, other, strict=False)))


def _is_repeating(said: Sequence[str]) -> bool:
    """Return whether a row of words occurs twice, as small models write when they get stuck."""
    rows = [tuple(said[at : at + _ROW]) for at in range(len(said) - _ROW + 1)]
    return len(set(rows)) < len(rows)


def _find_matches(pattern: re.Pattern[str], text: str) -> list[str]:
    return sorted(found.lower() for found in pattern.findall(text))


def _find_unknown_words(text: str, clean: Clean) -> set[str]:
    """Return the longer words and numbers that neither evidence nor user has."""
    return {word for word in split_words(text) if len(word) > 3 or word.isdigit()} - set(
        split_words(clean.known)
    )


_TEMPERATURES = (0.0, 0.7)
_MAX_TOKENS = 120
"""Limit of a rewriting; sentences of replies have at most 45 words."""
NO_ANSWER = "the model gave no answer"
"""Why an error is dropped: a request failed."""
UNSOUND = "bad grammar, or true after all"
"""Why an error is dropped: `is_sound` refuses it."""


@dataclass(frozen=True)
class RewritePlace:
    """A sentence to rewrite."""

    name: str
    kind: str
    clean: Clean
    region: Region


async def generate_error(place: RewritePlace, session: Session) -> PlantedError | str:
    """Have a model write the error; return it, or why the last try gave none."""
    reason = ""
    for sample, temperature in enumerate(_TEMPERATURES):
        sentence = place.region.of(place.clean.reply)
        try:
            answer = await session.text(
                "rewrite",
                load_prompt(__package__, "rewriting").fill(order=ORDERS[place.kind].text, sentence=sentence),
                temperature=temperature,
                max_tokens=_MAX_TOKENS,
                sample=sample,
            )
        except ModelError:
            reason = NO_ANSWER
            continue
        rewritten = " ".join(answer.split())
        clean, region = place.clean, place.region
        reply = clean.reply[: region.start] + rewritten + clean.reply[region.end :]
        wrong = find_difference(region.of(clean.reply), rewritten)
        planted = PlantedError(clean, reply, region.start + wrong.start, region.start + wrong.end)
        reason = find_flaw(place.kind, sentence, rewritten, place.clean) or (
            "" if is_sound(place.kind, planted) else UNSOUND
        )
        if not reason:
            return planted
    return reason


@dataclass(frozen=True)
class SentenceRewritten:
    """A model wrote an error, or none that passes the checks."""

    outcome: PlantedError | str
    failure: str | None = None


@dataclass(frozen=True)
class RewriteTask(SingleEventTask):
    """A sentence that a model rewrites (a `WorkTask`)."""

    place: RewritePlace

    def fail(self, reason: str) -> Iterable[SentenceRewritten]:
        """Yield the reason as the outcome."""
        yield SentenceRewritten(reason)


class RewriteExecutor:
    """Rewrites sentences in this process."""

    def __init__(self, pool: ModelPool, seed: int) -> None:
        self._pool, self._seed = pool, seed

    async def perform(self, task: RewriteTask, emit: Callable[[SentenceRewritten], None]) -> None:
        """Rewrite the sentence of a task, and emit the outcome."""
        session = self._pool.session("planter", self._seed)
        outcome = await generate_error(task.place, session)
        failed = (call.error for call in session.calls if call.error is not None)
        emit(SentenceRewritten(outcome, next(failed, None)))


@dataclass(frozen=True)
class RewriteWork:
    """Rewriting of sentences (a `Work`)."""

    seed: int

    def make_executor(
        self, experiment: Experiment, pool: ModelPool, limits: AdaptiveLimits | None
    ) -> RewriteExecutor:
        """Return the executor of a process."""
        return RewriteExecutor(pool, self.seed)


async def plant_fluently(
    streams: Sequence[Iterator[Clean]],
    kinds: Sequence[str],
    count: int,
    seed: int,
    executor: TaskExecutor,
    on_done: Callable[[], object] = lambda: None,
) -> Planting:
    """Let a model write errors of the kinds in turn, into the streams in turn.

    A rewriting that fails its checks is tried once more with another seed, and then dropped.

    Args:
        streams: endless replies to plant into.
        kinds: names of `ORDERS`.
        count: sentences to rewrite, over all kinds.
        seed: of the choice of sentences.
        executor: performs a `RewriteTask`.

    Raises:
        OperationalError: no request had an answer.
    """
    done = Planting()
    places = list(_draw_places(streams, kinds, count, seed, done))

    async def write(number: int, place: RewritePlace) -> SentenceRewritten:
        rewritten = await perform_single(executor, RewriteTask(place, group=number))
        on_done()
        return rewritten

    found = await gather_results(starmap(write, enumerate(places)))
    for place, one in zip(places, found, strict=True):
        if isinstance(one.outcome, PlantedError):
            done.replies += build_labelled_pair(place.name, place.kind, one.outcome, "model")
        else:
            done.dropped[place.kind, one.outcome] += 1
    if places and all(one.outcome == NO_ANSWER for one in found):
        error = next(one.failure for one in found if one.failure is not None)
        raise OperationalError(f"the model rewrote no sentence: {error}")
    return done


def _draw_places(
    streams: Sequence[Iterator[Clean]], kinds: Sequence[str], count: int, seed: int, done: Planting
) -> Iterator[RewritePlace]:
    """Yield sentences, each once for a kind; count in `done` what finds none."""
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    seen: set[tuple[str, str]] = set()
    for name, kind, turn in take_turns(kinds, streams, count, done.lacking):
        offered = (
            (clean, region)
            for stream in turn
            for given in islice(stream, TRIES)
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
        yield RewritePlace(name, kind, clean, region)


def _shuffle_sentences(reply: str, generator: random.Random) -> list[Region]:
    """Return the whole sentences of a reply, in random order."""
    said = split_sentences(reply)
    whole = [region for region in said if find_whole_sentences(region.of(reply)) == (region.of(reply),)]
    return generator.sample(whole, len(whole))
