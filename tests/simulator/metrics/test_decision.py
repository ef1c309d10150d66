from __future__ import annotations

import pytest

from hallulab.scenarios.transcript import Verdict
from hallulab.simulator.metrics.decision import DecisionMetric, DecisionReport, Ending, PersonaTally
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.statistics.intervals import Ratio
from hallulab.simulator.statistics.sequence import Decider
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import build_report

BOTS = ("bot", "other")


def talks_of(*held: tuple[str, str, list[Verdict]]) -> PersonaTally:
    """Count conversations of two turns, each given by identifier, persona and verdicts."""
    talks = PersonaTally("d")
    for id, persona, verdicts in held:
        talks.add(conversation(id, ["a b", "c d"], "bot", persona), index_by_detector(verdicts))
    return talks


def test_a_rate_is_over_the_scored_turns_of_all_seeds() -> None:
    first = [scored("1", 0, [(0, 1), (2, 3)]), scored("1", 1)]
    second = [scored("2", 0, [(0, 1)]), unscored("2", 1, "failed")]
    talks = talks_of(("1", "asha", first), ("2", "asha", second))
    assert talks.rates("asha", BOTS) == {"bot": 1.0, "other": None}


def test_answered_replies_count_over_all_seeds() -> None:
    talks = PersonaTally("d")
    for id, replies in (("1", ["It is 5 rupees.", "I do not know."]), ("2", ["It is 6 rupees."])):
        talks.add(conversation(id, replies, "bot", "asha"), {})
    assert talks.answered("asha", BOTS) == {"bot": Ratio(2, 3), "other": Ratio(0, 0)}


def test_what_lacks_a_verdict_is_not_held_and_what_failed_is() -> None:
    whole = [scored("1", 0), unscored("1", 1, "failed")]
    talks = talks_of(("1", "asha", whole), ("2", "dev", [scored("2", 0)]))
    assert talks.is_complete("asha", ["bot"], 1)
    assert not talks.is_complete("asha", ["bot"], 2)
    assert not talks.is_complete("asha", BOTS, 1)
    assert not talks.is_complete("dev", ["bot"], 1)


def test_parts_of_other_personas_merge() -> None:
    held = [("1", "asha", [scored("1", 0, [(0, 1)]), scored("1", 1)]), ("2", "dev", [scored("2", 0)])]
    whole, part = talks_of(*held), talks_of(held[0])
    part.merge(talks_of(held[1]))
    for persona in ("asha", "dev"):
        assert part.rates(persona, BOTS) == whole.rates(persona, BOTS)
        assert part.is_complete(persona, ["bot"], 1) == whole.is_complete(persona, ["bot"], 1)
        assert part.tokens([persona]) == whole.tokens([persona])


@pytest.mark.parametrize(
    ("ending", "begins"),
    [
        ("decided", "The run ended by what it found. "),
        ("budget", "The run could have ended by what it found. "),
        ("personas", "The run could have ended by what it found. "),
        (None, "The run may end by what it finds. "),
    ],
)
def test_the_end_is_told_as_it_was(ending: Ending | None, begins: str) -> None:
    found = Decider(["a", "b"], 0.2, False).state()
    decision = DecisionReport(
        detector="d", budget=None, keep_all=False, of=4, ending=ending, sentence="Open.", found=found
    )
    report = build_report([], [], chatbots=[], detectors=[], flaws={})
    assert DecisionMetric.notes(report.model_copy(update={"decision": decision})) == [
        f"{begins}A decision holds at such an end; intervals and p-values of other sections are those of a "
        "number of personas that was fixed before."
    ]
