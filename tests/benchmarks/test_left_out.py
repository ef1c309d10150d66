"""Each persona at the threshold of the others, in a short form of `python -m benchmarks.left_out`."""

from __future__ import annotations

import pytest

from benchmarks.left_out import RULES, best_threshold, decide, leave_out, table
from hallulab.scenarios.labelled import ChatbotTurn, LabelledReply
from hallulab.scenarios.transcript import Judgement, Unit
from tests.builders import labelled, places
from tests.places import ROOT
from tests.simulator.bench.material import FAILED, evaluation


def judgement(*scores: float) -> Judgement:
    units = [Unit(text="abc"[place], start=place, end=place + 1, score=s) for place, s in enumerate(scores)]
    return Judgement(outcome="scored", score=max(scores), flagged=False, spans=(), units=tuple(units))


def reply(group: str, wrong: int) -> LabelledReply:
    return labelled(
        "abc",
        wrong > 0,
        spans=places(*((place, place + 1) for place in range(wrong))),
        turns=(ChatbotTurn(chatbot="vanilla", conversation=group, turn=0),),
        group=group,
    )


JUDGED = evaluation([reply("ann", 1), reply("ben", 2)], judgement(0.9, 0.2), judgement(0.8, 0.7, 0.1))


@pytest.mark.parametrize(("threshold", "found"), [(0.5, ["a"]), (0.3, ["a", "b"]), (0.95, [])])
def test_units_from_the_threshold_on_are_hallucinations(threshold: float, found: list[str]) -> None:
    decided = decide(judgement(0.9, 0.3), RULES["metarag"], threshold)
    assert ([span.text for span in decided.spans or ()], decided.flagged) == (found, bool(found))


def test_a_failed_judgement_stays_one() -> None:
    assert decide(FAILED, RULES["halludetect"], 0.1) == FAILED


def test_the_threshold_of_a_persona_is_that_of_the_others() -> None:
    assert best_threshold(JUDGED, RULES["metarag"], [0]) == 0.9
    assert best_threshold(JUDGED, RULES["metarag"], [1]) == 0.7
    left_out, thresholds = leave_out(JUDGED, RULES["metarag"])
    assert thresholds == {"ann": 0.7, "ben": 0.9}
    assert [len(each.spans or ()) for each in left_out.judgements] == [1, 0]


def test_the_docs_have_the_table() -> None:
    assert table(("metarag",)).splitlines()[-1] in (ROOT / "docs" / "studies" / "methods.md").read_text(
        encoding="utf-8"
    )


def test_the_page_of_trust_has_the_errors_of_the_table() -> None:
    trust = " ".join((ROOT / "docs" / "studies" / "trust.md").read_text(encoding="utf-8").split())
    docs = (ROOT / "docs" / "studies" / "methods.md").read_text(encoding="utf-8")
    errors = []
    for detector in RULES:
        [row] = [
            line for line in docs.splitlines() if line.startswith(f"| `{detector}` |") and " to " in line
        ]
        _, _, _, mean, largest, *_ = (cell.strip() for cell in row.split("|"))
        errors.append(f"{mean} (`{detector}`; one bot {largest})")
    assert " and ".join(errors) in trust
