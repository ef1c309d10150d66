from __future__ import annotations

from hallulab.scenarios.transcript import Verdict
from hallulab.simulator.decide.talks import Talks
from hallulab.simulator.metrics.hallucinations import index_by_detector
from tests.builders import conversation, scored, unscored

BOTS = ("bot", "other")


def talks_of(*held: tuple[str, str, list[Verdict]]) -> Talks:
    """Count conversations of two turns, each given by identifier, persona and verdicts."""
    talks = Talks("d")
    for id, persona, verdicts in held:
        talks.add(conversation(id, ["a b", "c d"], "bot", persona), index_by_detector(verdicts))
    return talks


def test_a_rate_is_over_the_scored_turns_of_all_seeds() -> None:
    first = [scored("1", 0, [(0, 1), (2, 3)]), scored("1", 1)]
    second = [scored("2", 0, [(0, 1)]), unscored("2", 1, "failed")]
    talks = talks_of(("1", "asha", first), ("2", "asha", second))
    assert talks.rates("asha", BOTS) == {"bot": 1.0, "other": None}


def test_what_lacks_a_verdict_is_not_held_and_what_failed_is() -> None:
    whole = [scored("1", 0), unscored("1", 1, "failed")]
    talks = talks_of(("1", "asha", whole), ("2", "dev", [scored("2", 0)]))
    assert talks.are_held("asha", ["bot"], 1)
    assert not talks.are_held("asha", ["bot"], 2)
    assert not talks.are_held("asha", BOTS, 1)
    assert not talks.are_held("dev", ["bot"], 1)


def test_parts_of_other_personas_merge() -> None:
    held = [("1", "asha", [scored("1", 0, [(0, 1)]), scored("1", 1)]), ("2", "dev", [scored("2", 0)])]
    whole, part = talks_of(*held), talks_of(held[0])
    part.merge(talks_of(held[1]))
    for persona in ("asha", "dev"):
        assert part.rates(persona, BOTS) == whole.rates(persona, BOTS)
        assert part.are_held(persona, ["bot"], 1) == whole.are_held(persona, ["bot"], 1)
        assert part.tokens([persona]) == whole.tokens([persona])
