from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.transcript import Call, Conversation, Verdict
from hallulab.simulator.metrics.costs import Cost, CostMetric, CostSection, Efficiency
from hallulab.simulator.metrics.lengths import Lengths
from hallulab.simulator.metrics.user_flaws import UserAudit
from hallulab.simulator.records.experiment_fields import Price
from hallulab.simulator.show.document import GroupedTable
from tests.builders import call, conversation, scored
from tests.simulator.counted import build_report, count, result
from tests.simulator.example_run import ExampleFlaw

CHATS = [
    conversation("a", ["x", "y"], calls=[call("user.message", 5, 1), call("chatbot.generate", 30, 10, 1.0)]),
    conversation("b", ["x"], "agent", calls=[call("chatbot.route", 100, 20), call("chatbot.answer", 30, 10)]),
]
VERDICTS = [
    scored("a", 0, calls=[call("d.judge", 90, 10, 2.0)]),
    scored("a", 1, calls=[call("d.judge", 90, 10, 2.0)]),
    scored("b", 0, calls=[call("d.judge", 900, 100, 9.0)]),
]


def ledger(chats: list[Conversation], verdicts: list[Verdict]) -> tuple[Cost, ...]:
    return count(CostMetric, chats, verdicts).ledger()


def efficiency(
    chats: list[Conversation], verdicts: list[Verdict], chatbots: list[str], detectors: list[str]
) -> dict[str, Efficiency]:
    lines = count(CostMetric, chats, verdicts, chatbots, detectors).efficiency()
    return {line.name: line for line in lines}


def test_ledger_adds_up_by_role_and_name() -> None:
    lines = ledger(CHATS, VERDICTS)
    assert [(line.role, line.name, line.calls, line.prompt_tokens) for line in lines] == [
        ("chatbot", "agent", 2, 130),
        ("chatbot", "vanilla", 2, 60),
        ("detector", "d", 3, 1080),
        ("user", "vanilla", 2, 10),
    ]


def test_ledger_counts_failed_replayed_and_uncounted_calls() -> None:
    calls = (
        call("chatbot.x", None, None, 0.25).model_copy(update={"error": "time-out"}),
        call("chatbot.x", 7, 3, 0.5).model_copy(update={"replayed": True, "cached_tokens": 4}),
    )
    spent: dict[str, Any] = {"prompt_tokens": 7, "completion_tokens": 3, "cached_tokens": 4, "seconds": 0.75}
    assert ledger([conversation("a", []).model_copy(update={"calls": calls})], []) == (
        Cost(role="chatbot", name="vanilla", calls=2, failed=1, replayed=1, uncounted=1, **spent),
    )


def test_a_call_that_lacks_a_count_and_has_an_error_is_uncounted_and_failed() -> None:
    calls = (call("chatbot.x", 7, None).model_copy(update={"error": "time-out"}), call("chatbot.x", 7, 1))
    [line] = ledger([conversation("a", []).model_copy(update={"calls": calls})], [])
    assert (line.calls, line.uncounted, line.failed) == (2, 1, 1)


def test_detectors_are_measured_on_vanilla_conversations() -> None:
    lines = efficiency(CHATS, VERDICTS, ["vanilla", "agent"], ["d"])
    assert lines["vanilla"].tokens_per_chat == 80
    assert lines["agent"].relative_to_vanilla == 2.0
    assert (lines["d"].on, lines["d"].conversations, lines["d"].calls_per_chat) == ("vanilla", 1, 2.0)
    assert (lines["d"].tokens_per_chat, lines["d"].seconds_per_chat) == (200, 4.0)
    assert lines["d"].relative_to_vanilla == 2.5


def test_a_detector_is_related_to_the_conversations_that_it_judged() -> None:
    chats = [
        conversation("a", ["x"], calls=[call("chatbot.generate", 30, 10)]),
        conversation("b", ["x"], calls=[call("chatbot.generate", 300, 100)]),
    ]
    verdicts = [scored("a", 0, calls=[call("d.judge", 90, 10)])]
    lines = efficiency(chats, verdicts, ["vanilla"], ["d"])
    assert (lines["vanilla"].tokens_per_chat, lines["d"].relative_to_vanilla) == (220, 2.5)


def test_without_vanilla_there_is_no_ratio() -> None:
    lines = efficiency(CHATS[1:], VERDICTS[2:], ["agent"], ["d"])
    assert (lines["d"].on, lines["d"].tokens_per_chat) == ("all", 1000)
    assert lines["d"].relative_to_vanilla is lines["agent"].relative_to_vanilla is None


def test_a_chatbot_without_conversations_has_no_averages() -> None:
    line = efficiency([], [], ["vanilla"], [])["vanilla"]
    assert line.tokens_per_chat is line.calls_per_chat is line.relative_to_vanilla is None


UNTOLD = call("chatbot.generate", None, None)
FAILED = UNTOLD.model_copy(update={"error": "time-out"})


@pytest.mark.parametrize(
    ("calls", "tokens"),
    [
        ([call("chatbot.generate", 30, 10), FAILED], 40),
        ([call("chatbot.generate", 30, 10), UNTOLD], None),
        ([call("chatbot.generate", 30, 10), call("chatbot.generate", 30, None)], None),
        ([UNTOLD], None),
        ([], 0),
    ],
)
def test_tokens_of_an_answered_call_that_are_not_told_leave_no_mean(
    calls: list[Call], tokens: int | None
) -> None:
    lines = efficiency([conversation("a", ["x"], "agent", calls=calls)], [], ["agent"], [])
    assert lines["agent"].tokens_per_chat == tokens


def test_one_untold_call_of_many_conversations_leaves_no_mean() -> None:
    told = [call("chatbot.generate", 30, 10)]
    chats = [conversation("a", ["x"], calls=told), conversation("b", ["x"], calls=[UNTOLD])]
    lines = efficiency(chats, [scored("a", 0, calls=[call("d.judge", 90, 10)])], ["vanilla"], ["d"])
    assert lines["vanilla"].tokens_per_chat is lines["vanilla"].relative_to_vanilla is None
    assert (lines["d"].tokens_per_chat, lines["d"].relative_to_vanilla) == (100, 2.5)


def money(chats: list[Conversation], verdicts: list[Verdict], **prices: dict[str, float]) -> CostSection:
    priced = {name: Price.model_validate(price) for name, price in prices.items()}
    found = result(CostMetric, chats, verdicts, prices=priced)
    assert isinstance(found, CostSection)
    return found


def test_money_is_tokens_by_price_for_each_role_and_for_the_run() -> None:
    found = money(CHATS, VERDICTS, m={"input": 1_000_000, "output": 2_000_000})
    assert [(line.role, line.name, line.money) for line in found.ledger] == [
        ("chatbot", "agent", 190.0),
        ("chatbot", "vanilla", 100.0),
        ("detector", "d", 1320.0),
        ("user", "vanilla", 14.0),
    ]
    assert (found.priced, found.money, found.unpriced) == (True, 1624.0, ())


def test_tokens_out_of_the_cache_have_a_price_of_their_own_or_that_of_others() -> None:
    cached = call("chatbot.x", 10, 0).model_copy(update={"cached_tokens": 4})
    held = [conversation("a", []).model_copy(update={"calls": (cached,)})]
    million = 1_000_000
    assert money(held, [], m={"input": 5 * million, "output": 0, "cached": million}).money == 34.0
    assert money(held, [], m={"input": 5 * million, "output": 0}).money == 50.0


def test_an_unknown_price_is_unknown_and_never_nothing() -> None:
    found = money(CHATS, VERDICTS, another={"input": 1, "output": 1})
    assert {line.money for line in found.ledger} == {None}
    assert (found.priced, found.money, found.unpriced) == (True, None, ("m",))


def test_an_answer_without_counts_makes_the_money_of_its_role_unknown() -> None:
    calls = (call("chatbot.x", 7, None), call("user.x", 7, 1))
    held = [conversation("a", []).model_copy(update={"calls": calls})]
    found = money(held, [], m={"input": 0, "output": 0})
    assert [(line.role, line.money) for line in found.ledger] == [("chatbot", None), ("user", 0.0)]
    assert (found.money, found.unpriced) == (None, ("m",))


def test_without_prices_there_is_no_money_and_no_line_about_it() -> None:
    report = build_report(CHATS, VERDICTS, chatbots=["vanilla", "agent"], detectors=["d"], flaws={})
    assert {line.money for line in report.of(CostSection).ledger} == {None}
    assert CostMetric.footnotes(report) == []


@pytest.mark.parametrize(
    ("prices", "line"),
    [
        ({"m": Price(input=1_000_000, output=0)}, "By its `prices`, the run cost 1,280.0000."),
        (
            {"x": Price(input=1, output=0)},
            "The costs of the run are unknown: prices or tokens are missing for m.",
        ),
    ],
)
def test_the_report_tells_the_money_or_why_it_is_unknown(prices: dict[str, Price], line: str) -> None:
    report = build_report(
        CHATS, VERDICTS, chatbots=["vanilla", "agent"], detectors=["d"], flaws={}, prices=prices
    )
    assert CostMetric.footnotes(report) == [line]
    [by_role, *_] = [part for part in CostMetric.section(report).parts if isinstance(part, GroupedTable)]
    assert by_role.columns[-1].value == "money"


def test_mean_and_deviation_of_turns_and_tokens() -> None:
    # The user's "Hi there" adds two tokens to every turn.
    chats = [conversation("a", ["one", "two"]), conversation("b", ["one two three four"])]
    [line] = result(Lengths, chats, [], ["vanilla"]).conversations
    assert (line.turns_mean, line.turns_std) == (1.5, 0.707107)
    assert (line.tokens_mean, line.tokens_std) == (6.0, 0.0)
    assert line.stop_reasons == {"max_turns": 2}


def test_one_conversation_has_no_deviation_and_none_no_mean() -> None:
    one, none = result(Lengths, [conversation("a", ["one"])], [], ["vanilla", "agent"]).conversations
    assert (one.turns_mean, one.turns_std) == (1.0, None)
    assert (none.conversations, none.turns_mean, none.stop_reasons) == (0, None, {})


@pytest.mark.parametrize(
    ("endings", "notes"),
    [
        (["max_turns", "goal_reached"], []),
        (
            ["max_turns", "max_turns", "goal_reached"],
            [
                "2 of 3 conversations ended at the limit of turns (`max_turns`), not by the user: no number "
                "here is of later turns."
            ],
        ),
    ],
)
def test_a_footnote_says_that_the_limit_of_turns_ended_most_conversations(
    endings: list[str], notes: list[str]
) -> None:
    chats = [conversation(str(at), ["one"], stop_reason=reason) for at, reason in enumerate(endings)]
    report = build_report(chats, [], chatbots=["vanilla"], detectors=[], flaws={})
    assert Lengths.footnotes(report) == notes


def test_rows_are_computed_again_without_affected_conversations() -> None:
    chats = [conversation("a", ["one"]), conversation("b", ["one"], persona="dev")]
    verdicts = [scored("a", 0, [(0, 3)]), scored("b", 0)]
    flaws = {
        "a": [ExampleFlaw(0, "empty", ""), ExampleFlaw(0, "repeated", ""), ExampleFlaw(0, "repeated", "")],
        "b": [],
    }
    audit = result(UserAudit, chats, verdicts, ["vanilla"], ["d"], flaws=flaws).simulator_audit
    assert (audit.conversations, audit.affected_conversations) == (2, 1)
    assert audit.flaws == {"empty": 1, "repeated": 2}
    assert audit.affected == {"vanilla": {"empty": 1, "repeated": 1}}
    assert (audit.rows_without_affected[0].conversations, audit.rows_without_affected[0].hpt_1) == (1, 0.0)
