"""Counts, reports and pages of conversations and verdicts in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from hallulab.scenarios.attacks.attack import AttackRecord
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.metrics.annotations import Annotations
from hallulab.simulator.metrics.hallucinations import ByDetector, Row, index_by_detector
from hallulab.simulator.metrics.metric import Metric, RunFacts, Tallied, TurnFlaw
from hallulab.simulator.metrics.results import build_rows
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.run_sums import Counting, RunSums, count_all_verdicts
from hallulab.simulator.records.experiment_json import BranchedFrom
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.report.build import RunCounts
from hallulab.simulator.report.document import render_report_page
from hallulab.simulator.report.reader import Cases

Flaws = Mapping[str, Sequence[TurnFlaw]]
"""Flaws by conversation id; a conversation without an entry has none."""


def judged(
    conversations: Sequence[Conversation], verdicts: Sequence[Verdict] = ()
) -> Iterator[tuple[Conversation, ByDetector]]:
    """Each conversation with the verdicts on it."""
    for conversation, found in Journals(conversations, verdicts).judged():
        yield conversation, index_by_detector(found)


def tally_all(
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    chatbots: Sequence[str],
    detectors: Sequence[str],
) -> RunSums:
    return count_all_verdicts(Journals(conversations, verdicts), chatbots, detectors)


Counter = TypeVar("Counter", bound=Metric)


def count(
    metric: type[Counter],
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict] = (),
    chatbots: Sequence[str] = (),
    detectors: Sequence[str] = (),
    *,
    flaws: Flaws | None = None,
    **more: Any,
) -> Counter:
    """A metric that has counted the conversations; `more` are fields of `RunFacts`."""
    counted = metric(RunFacts(chatbots, detectors, **more))
    for conversation, found in judged(conversations, verdicts):
        counted.add(conversation, found, (flaws or {}).get(conversation.id, ()))
    return counted


def result(
    metric: type[Metric],
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict] = (),
    chatbots: Sequence[str] = (),
    detectors: Sequence[str] = (),
    **more: Any,
) -> Any:
    """The section of a metric that has counted the conversations; `more` are arguments of `count`.

    Counted apart for each persona and merged, it is the same.
    """
    whole = _result(metric, conversations, verdicts, chatbots, detectors, by_persona=False, **more)
    assert whole == _result(metric, conversations, verdicts, chatbots, detectors, by_persona=True, **more)
    return whole


def _result(
    metric: type[Metric],
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    chatbots: Sequence[str],
    detectors: Sequence[str],
    *,
    by_persona: bool,
    flaws: Flaws | None = None,
    **more: Any,
) -> Any:
    """The section of a metric, counted at once, or apart for each persona and merged."""
    counting = Counting(chatbots, detectors)
    counted = metric(RunFacts(chatbots, detectors, **more))
    for part in _split_by_persona(conversations) if by_persona else [conversations]:
        sums = Counting(chatbots, detectors)
        own = metric(RunFacts(chatbots, detectors, **more))
        ids = {conversation.id for conversation in part}
        for conversation, found in judged(part, [one for one in verdicts if one.conversation in ids]):
            flawed = (flaws or {}).get(conversation.id, ())
            sums.add(conversation, found, flawed=bool(flawed))
            own.add(conversation, found, flawed)
        counting.merge(sums)
        counted.merge(own)
    return counted.result(Tallied(counting.sums(), build_rows(counting.sums().rows)))


def _split_by_persona(conversations: Sequence[Conversation]) -> list[list[Conversation]]:
    """The conversations with each persona; the personas that come last are first."""
    found: dict[tuple[str, str], list[Conversation]] = {}
    for one in conversations:
        found.setdefault((one.scenario, one.persona), []).append(one)
    return list(found.values())[::-1]


def build_report(
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    *,
    chatbots: Sequence[str],
    detectors: Sequence[str],
    flaws: Flaws,
    planted: AttackRecord | None = None,
    branched_from: BranchedFrom | None = None,
    free: Journals | None = None,
    annotations: Annotations | None = None,
    **more: Any,
) -> RunReport:
    """The report; `more` are fields of `RunFacts`."""
    facts = RunFacts(
        chatbots,
        detectors,
        planted=planted,
        annotations=annotations or Annotations(),
        branched_from=branched_from,
        free=free,
        **more,
    )
    counts = RunCounts(facts)
    for conversation, found in judged(conversations, verdicts):
        counts.add(conversation, found, flaws.get(conversation.id, ()))
    return counts.report()


def cases(
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    chatbots: Sequence[str],
    detectors: Sequence[str],
    flaws: Flaws,
    personas: Mapping[str, Persona],
    planted: AttackRecord | None = None,
) -> Cases:
    found = Cases(chatbots, detectors, personas, planted)
    for conversation, verdict in judged(conversations, verdicts):
        found.add(conversation, verdict, flaws.get(conversation.id, ()))
    return found


def browser_data(*args: Any) -> dict[str, Any]:
    """What the page embeds; `args` are those of `cases`."""
    return cases(*args).data()


def render_page(
    report: RunReport,
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    *,
    flaws: Flaws,
    personas: Mapping[str, Persona],
    experiment: str | None = None,
    planted: AttackRecord | None = None,
) -> str:
    """The page of a small run."""
    counts = RunCounts(RunFacts(report.chatbots, report.detectors))
    for conversation, found in judged(conversations, verdicts):
        counts.add(conversation, found, ())
    shown = cases(conversations, verdicts, report.chatbots, report.detectors, flaws, personas, planted)
    return render_report_page(report, counts, shown, experiment=experiment)


def empty_row(chatbot: str, detector: str) -> Row:
    """The row of a chatbot without a conversation."""
    [row] = build_rows(RunSums([chatbot], [detector]).rows)
    return row
