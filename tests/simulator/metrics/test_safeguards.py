"""What guarded chatbots did, counted from their records."""

from __future__ import annotations

from hallulab.chatbots.guarded.record import CALLS
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.metrics.safeguards import Guarding, Safeguards
from tests.builders import call, conversation, scored
from tests.simulator.counted import result
from tests.simulator.records.guarded import HANDED, PASSED, SAFE, attempt, held, record

CURED = record(attempt("Safe.", 0.9, SAFE, SAFE), attempt("Not tested.", 0.1), shown=1, action="cured")
MARKED = record(attempt("Safe.", 0.9, SAFE), action="marked")
UNJUDGED = record(attempt("Safe.", None), action="unjudged")
WITHHELD = record(attempt("Safe.", None), shown=None, action="abstained")
ALL = (PASSED, CURED, MARKED, HANDED, UNJUDGED, WITHHELD)


def safeguards(
    conversations: list[Conversation], verdicts: list[Verdict], chatbots: list[str], detectors: list[str]
) -> tuple[Safeguards, ...]:
    found: tuple[Safeguards, ...] = result(Guarding, conversations, verdicts, chatbots, detectors).safeguards
    return found


def test_replies_are_counted_by_what_was_done() -> None:
    [row] = safeguards([held("c", ALL)], [], ["guarded"], [])
    assert (row.chatbot, row.detector, row.replies) == ("guarded", "", 6)
    assert (row.flagged, row.unjudged, row.again, row.cured) == (3, 2, 1, 1)
    assert (row.abstained, row.human, row.refused, row.refused_share) == (1, 1, 2, 0.333333)


def test_hpt_before_is_of_judged_drafts_of_replies_that_were_shown_and_after_of_these_replies() -> None:
    [row] = safeguards([held("c", ALL)], [], ["guarded"], [])
    assert (row.judged_drafts, row.hpt_before) == (3, 1.0)
    assert (row.judged_shown, row.hpt_after) == (3, 0.333333)


def test_refusing_alone_lowers_no_hpt() -> None:
    [row] = safeguards([held("c", [HANDED, PASSED])], [], ["guarded"], [])
    assert (row.judged_drafts, row.hpt_before) == (1, 0.0)
    assert (row.judged_shown, row.hpt_after) == (1, 0.0)


def test_refusals_alone_give_no_hpt_and_not_zero() -> None:
    [row] = safeguards([held("c", [HANDED])], [scored("c", 0)], ["guarded"], ["d"])
    assert (row.hpt_before, row.hpt_after, row.hpt_answers) == (None, None, None)
    assert (row.answers, row.refused_share) == (0, 1.0)


def test_the_detectors_hpt_leaves_refusals_out() -> None:
    verdicts = [scored("c", 0, [(0, 1)]), scored("c", 1, [(0, 1), (2, 3)])]
    [row] = safeguards([held("c", [HANDED, PASSED])], verdicts, ["guarded"], ["d"])
    assert (row.detector, row.answers, row.hpt_answers) == ("d", 1, 2.0)


def test_extra_cost_is_that_of_the_guard_and_of_replies_made_again() -> None:
    purposes = ("user.message", "chatbot.generate", f"{CALLS}judge.check", f"{CALLS}topic")
    calls = [call(purpose) for purpose in purposes]
    [row] = safeguards([held("c", [PASSED, PASSED], calls)], [], ["guarded"], [])
    assert (row.calls_per_reply, row.tokens_per_reply, row.seconds_per_reply) == (2.0, 24.0, 1.0)


def test_a_call_of_a_guard_without_counts_leaves_no_mean_of_tokens() -> None:
    calls = [call(f"{CALLS}judge.check"), call(f"{CALLS}topic", None, None)]
    [row] = safeguards([held("c", [PASSED, PASSED], calls)], [], ["guarded"], [])
    assert (row.calls_per_reply, row.tokens_per_reply) == (2.0, None)


def test_a_flagged_draft_without_places_is_in_no_hpt() -> None:
    nowhere = attempt("Safe.", 0.9).model_copy(update={"flagged": True})
    [row] = safeguards([held("c", [record(nowhere, action="marked")])], [], ["guarded"], [])
    assert (row.flagged, row.judged_drafts, row.hpt_before) == (1, 0, None)


def test_a_chatbot_without_a_guard_has_no_row() -> None:
    assert safeguards([conversation("c", ["Hello."])], [], ["vanilla"], ["d"]) == ()
