from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.transcript import Verdict
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.compare.sentences import describe_run, render_changes
from hallulab.simulator.compare.setup import SetupChange
from hallulab.simulator.compare.summary import RunSummary
from tests.builders import conversation, scored, unscored
from tests.simulator.compare.made import Found, found, summarized

TEN = [f"p{number}" for number in range(10)]
KNOWN: dict[str, Any] = {"settings": {"top_k": "4"}}
ZEROS: Found = {(one, 0): [0] for one in TEN}
ONES: Found = {(one, 0): [1] for one in TEN}
MIXED: Found = {(one, 0): [number % 2] for number, one in enumerate(TEN)}


def described(before: RunSummary, after: RunSummary) -> list[str]:
    compared = compare_runs([before, after])
    return describe_run(compared, compared.runs[0])


def test_what_is_found_comes_first_with_its_numbers() -> None:
    worse = described(found({"bot": ZEROS}, **KNOWN), found({"bot": ONES}, "b", "one three", **KNOWN))
    assert worse == [
        "By d, bot hallucinates more in B: 0.00 → 1.00 a turn, +1.00, p = 0.00391.",
        "By d, bot has a lower token accuracy in B: 100.0 → 50.0%, -50.0, p = 0.00391.",
        "Hallucinated turns: 10 new, 0 gone, 0 worse, 0 better, of 10 verdicts on turns judged in both runs.",
        "By their manifests, nothing was changed between the runs.",
    ]
    better = described(found({"bot": ONES}), found({"bot": ZEROS}))
    assert better[0].startswith("By d, bot hallucinates less in B: 1.00 → 0.00 a turn, -1.00, p")


DECLINE = "I cannot find that. Please contact the help desk."


def test_a_run_that_hallucinates_less_and_answers_less_is_not_called_better() -> None:
    said = described(found({"bot": ONES}, **KNOWN), found({"bot": ZEROS}, "b", DECLINE, **KNOWN))
    assert said[:3] == [
        "By d, bot hallucinates less in B: 1.00 → 0.00 a turn, -1.00, p = 0.00391; but it answers 0.0% of "
        "replies, 100.0% before, and is not better by that alone.",
        "By d, bot has a higher token accuracy in B: 50.0 → 100.0%, +50.0, p = 0.00391; but it answers 0.0% "
        "of replies, 100.0% before, and is not better by that alone.",
        "bot answers less in B: 100.0 → 0.0%, -100.0, p = 0.00195.",
    ]


def test_a_difference_by_the_detector_or_by_what_was_judged_says_so() -> None:
    twos: Found = {(one, 0): [1, 0] for one in TEN}
    half: Found = {(one, 0): [None, 0] for one in TEN}
    said = described(found({"bot": ZEROS}), found({"bot": ONES}, "b"))
    assert said[0] == (
        "By d, bot hallucinates more in B: 0.00 → 1.00 a turn, +1.00, p = 0.00391; but all its replies that "
        "d scored are those of the reference."
    )
    said = described(found({"bot": twos}), found({"bot": half}, "b", "one three"))
    assert said[0] == (
        "By d, bot hallucinates less in B: 0.50 → 0.00 a turn, -0.50, p = 0.00391; but d scored 50.0% of its "
        "turns, 100.0% before."
    )


def without(found: Found) -> Found:
    """The same, but that the detector failed on the first persona's turn."""
    return {**found, ("p0", 0): [None]}


BY_D = "No difference found in hallucinations: bot by d. "
NONE_NEW = "Hallucinated turns: 0 new, 0 gone, 0 worse, 0 better, of"
IN_BOTH = "verdicts on turns judged in both runs."


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            MIXED,
            {**MIXED, ("p0", 0): [1]},
            [
                f"{BY_D}A difference of up to 0.33 a turn is still possible.",
                f"Hallucinated turns: 1 new, 0 gone, 0 worse, 0 better, of 10 {IN_BOTH}",
                "The detectors' noise: 10 verdicts are on the same reply after the same history, and 1 of "
                "the changes is among these.",
            ],
        ),
        (
            {("asha", 0): [1]},
            {("asha", 0): [0]},
            [f"{BY_D}1 persona is too few to detect any difference; 2 comparisons need at least 7."],
        ),
        (
            ONES,
            {**ONES, ("p0", 0): [1, 1, 1]},
            [f"{NONE_NEW} 10 {IN_BOTH} 2 more are new, on turns without a verdict in the reference."],
        ),
        (
            without(ONES),
            ONES,
            [f"{NONE_NEW} 9 {IN_BOTH} 1 more is new, on a turn without a verdict in the reference."],
        ),
        (
            ZEROS,
            without(ZEROS),
            [
                f"{NONE_NEW} 9 {IN_BOTH}",
                "The detectors' noise: 9 verdicts are on the same reply after the same history, and 0 of the "
                "changes are among these.",
            ],
        ),
        (
            ONES,
            {(one, 1): [1] for one in TEN},
            [
                "No conversation has the same chatbot, persona and seed in both runs, so no turns are "
                "compared."
            ],
        ),
    ],
)
def test_changes_of_a_chatbot_are_described(before: Found, after: Found, said: list[str]) -> None:
    lines = described(found({"bot": before}), found({"bot": after}))
    assert [line for line in lines if line in said] == said


def test_equal_runs_are_reported_as_equal() -> None:
    said = described(found({"bot": MIXED}, **KNOWN), found({"bot": MIXED}, "b", **KNOWN))
    assert said == [
        "Every reply that both runs have is the same, and so is every verdict (10).",
        "By their manifests, nothing was changed between the runs.",
    ]


def test_turns_that_are_not_judged_any_more_are_told() -> None:
    said = described(found({"bot": ONES}), found({"bot": {**ONES, ("p0", 0): [None]}}))
    assert "1 hallucinated turn of the reference is not judged in B, or not there." in said


def test_another_reply_on_which_the_detector_failed_is_not_the_same() -> None:
    def run(second: str, *verdicts: Verdict) -> RunSummary:
        return summarized([conversation("c", ["one", second], "bot")], [scored("c", 0), *verdicts])

    said = described(run("two", scored("c", 1)), run("three", unscored("c", 1)))
    assert not [one for one in said if one.startswith("Every reply")]
    assert (
        "Hallucinated turns: 0 new, 0 gone, 0 worse, 0 better, of 1 verdict on turns judged in both runs."
        in said
    )


def test_unpaired_differences_say_so() -> None:
    others: Found = {(f"q{number}", 0): [1] for number in range(9)}
    first, *_ = described(found({"bot": ZEROS}), found({"bot": {**others, ("p0", 0): [1]}}))
    assert first.startswith("By d, bot hallucinates more in B: ")
    assert first.endswith(", other personas.")


def test_what_was_not_scored_and_what_was_left_out_is_told() -> None:
    before = found({"bot": ONES, "old": ONES})
    after = found({"bot": {(one, 0): [None] for one in TEN}})
    said = described(before, after)
    assert said[0] == "Nothing was scored in one of the runs: bot by d."
    assert said[-1] == "Not in both: chatbot old is only in A."


def test_a_run_that_cannot_be_compared_has_its_reason_alone() -> None:
    assert described(found({"bot": ONES}), found({"bat": ONES})) == [
        "B (run) cannot be compared with A (run): no common chatbot (bot in one, bat in the other)."
    ]


def test_all_chatbots_are_named_together() -> None:
    bots = dict.fromkeys(("a", "b", "c"), MIXED)
    other = {name: {**MIXED, ("p1", 0): [0]} for name in bots}
    first, *_ = described(found(bots), found(other))
    assert first.startswith("No difference found in hallucinations: all 3 chatbots by d.")


def test_a_difference_that_is_the_same_with_every_persona_is_not_bounded() -> None:
    first, *_ = described(found({"bot": ONES}), found({"bot": ONES}, "b", "one three"))
    assert first == (
        "No difference found in hallucinations: bot by d. No interval: it is identical for every persona."
    )


def test_without_any_hallucination_the_turns_bound_the_difference() -> None:
    first, *_ = described(found({"bot": ZEROS}), found({"bot": ZEROS}, "b", "one three"))
    assert first == (
        "No difference found in hallucinations: bot by d. "
        "A difference of up to 0.49 a turn is still possible."
    )


def change(what: str, of: str, name: str, before: str | None, after: str | None) -> SetupChange:
    return SetupChange(what=what, of=of, name=name, before=before, after=after)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("prompt", f"chatbot {bot}", "frame", "1", "2") for bot in ("a", "b", "c")],
         ["prompt frame of chatbot a, b and c"]),
        ([("prompt", "chatbot a", "frame", "1", "2"), ("prompt", "simulated user", "frame", "1", "2")],
         ["prompt frame of chatbot a and simulated user"]),
        ([("version", "chatbot a", "", "1", "2"), ("version", "chatbot b", "", "3", "4"),
          ("version", "detector d", "", "5", "6")], ["version of chatbot a and b and detector d"]),
        ([("document", "", "fees", None, "2"), ("document", "", "act", "1", None),
          ("document", "", "law", "1", "2")],
         ["document fees (added)", "document act (removed)", "document law"]),
        ([("model", "", "chatbot", "a", "b")], ["model chatbot: a → b"]),
        ([("option", "chatbot a", "style", None, "short")], ["option style of chatbot a: none → short"]),
        ([("seeds", "", "", "0", "1")], ["seeds: 0 → 1"]),
        ([("persona", "", "asha", "1", "2")], ["persona asha"]),
    ],
)  # fmt: skip
def test_changes_are_told_in_few_words(
    changes: list[tuple[str, str, str, str | None, str | None]], told: list[str]
) -> None:
    assert render_changes([change(*one) for one in changes]) == told


def test_many_changes_are_shortened_and_unknown_ones_admitted() -> None:
    before = found({"bot": MIXED}, documents={f"d{number}": "1" for number in range(12)})
    after = found({"bot": MIXED}, "b", documents={f"d{number}": "2" for number in range(12)})
    said = described(before, after)[-1]
    assert said.startswith("Changed between the runs: document d0; document d1;")
    assert said.endswith("and 4 more. One of the runs has no experiment.json, so more may have been changed.")
    assert described(found({"bot": MIXED}), found({"bot": MIXED}))[-1] == (
        "One of the runs has no experiment.json, so more may have been changed."
    )
