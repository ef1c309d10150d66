from __future__ import annotations

from rich.console import Console

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.metrics.attacks import AttackRow, describe_attacks
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.report.build import describe_omissions
from hallulab.simulator.report.document import build_summary
from hallulab.simulator.show.terminal import print_document
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import build_report
from tests.simulator.example_run import ExampleFlaw, example_run


def example_report(twins: int = 1) -> RunReport:
    return example_run(twins).report()


def printed(report: RunReport, width: int) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        print_document(build_summary(report), console)
    return [line.rstrip() for line in capture.get().splitlines()]


def below_the_headlines(report: RunReport, width: int) -> list[str]:
    """The lines from the table on."""
    lines = printed(report, width)
    return lines[lines.index("") + 1 :]


def test_the_table_fits_a_hundred_columns() -> None:
    lines = below_the_headlines(example_report(twins=2), 100)
    assert lines[3] == (
        "vanilla           halludetect    2.0 0.89 [0.59, 1.33]  0.89 66.4 [54.7, 76.4]   67.7     100  100"
    )
    results = lines[: lines.index("where hallucinated replies are:")]
    assert sum("metarag " in line for line in results) == 5


def test_too_few_conversations_have_no_intervals() -> None:
    lines = below_the_headlines(example_report(), 100)
    assert lines[0].split() == ["Calls/", "TokAcc", "Halluc.", "Cov."]
    assert lines[3] == "vanilla           halludetect    2.0  0.89  0.89       66.2   66.1     100  100"
    assert not any("95%" in line for line in lines)


def test_what_was_found_stands_first_and_then_whether_it_ranks_the_chatbots() -> None:
    first = " ".join(printed(example_report(), 200)).split("Calls/")[0]
    assert first.startswith(
        "21 of 38 replies are flagged by both detectors, in this run most often those of vanilla and "
        "prompt-engineered (6 of 8 each); 7 more were not scored by both detectors. For example, "
    )
    assert first.rstrip().endswith(
        "Too few personas (3) to rank the chatbots. Intervals need 6; a test of 5 chatbots needs at least 9."
    )


def test_the_detectors_agreement_is_told() -> None:
    lines = printed(example_report(), 100)
    assert [line for line in lines if line.startswith("agreement")] == [
        "agreement of halludetect and metarag: 100% of 38 turns, kappa 1.00."
    ]


def test_eighty_columns_fold_no_name() -> None:
    lines = below_the_headlines(example_report(twins=2), 80)
    assert lines[3:7] == [
        "by halludetect",
        "vanilla              2.0         0.89  0.89         66.4   67.7     100  100",
        "                         [0.59, 1.33]       [54.7, 76.4]",
        "prompt-engineered    2.0         0.72  0.72         68.9   69.0     100  100",
    ]
    assert max(map(len, lines)) <= 80


def test_numbers_without_denominator_are_dashes() -> None:
    report = build_report(
        [conversation("a", ["x"])], [unscored("a", 0)], chatbots=["vanilla"], detectors=["d"], flaws={}
    )
    assert below_the_headlines(report, 100)[3].split() == ["vanilla", "d", "0.0", *["–"] * 5, "0"]


def test_names_are_not_read_as_markup() -> None:
    report = build_report([], [], chatbots=["[red]bot[/red]"], detectors=["d"], flaws={})
    assert "[red]bot[/red]" in "\n".join(printed(report, 100))


def test_notes_say_what_the_numbers_leave_out() -> None:
    assert describe_omissions(example_report()) == [
        "halludetect: 3 of 27 hallucinations were not found verbatim in the reply; "
        "they count in HPT, not in TokAcc.",
        "metarag: of 45 turns 4 failed, 3 abstained; they count neither in HPT nor in TokAcc.",
        "simulated user: 2 of 15 conversations have flaws (repeated 2); "
        "the report gives the numbers without them too.",
    ]


def failed(id: str, error: str, chatbot: str = "flaky") -> Conversation:
    chat = conversation(id, [], chatbot, persona=id)
    return chat.model_copy(update={"stop_reason": "error", "error": error})


def test_notes_say_which_chatbots_failed_and_why() -> None:
    chats = [
        failed("b", "simulated user: no answer"),
        failed("a", "chatbot flaky: ValueError: out of\n\x1b[31m order"),
        conversation("c", ["x"], "flaky", persona="c"),
        conversation("d", ["x"], "steady"),
    ]
    report = build_report(chats, [], chatbots=["flaky", "steady"], detectors=[], flaws={})
    assert describe_omissions(report) == [
        "flaky: 2 of 3 conversations failed: ValueError: out of �[31m order"
    ]


def test_a_long_error_is_shortened() -> None:
    report = build_report([failed("a", "x" * 201)], [], chatbots=["flaky"], detectors=[], flaws={})
    assert describe_omissions(report) == [f"flaky: 1 of 1 conversation failed: {'x' * 199}…"]


def test_notes_speak_of_one_as_one() -> None:
    chats = [conversation("a", ["x"]), conversation("b", ["y"], persona="dev")]
    flaws = {"a": (ExampleFlaw(0, "repeated", "again"),)}
    judged = [scored("a", 0, [None], detector="d"), unscored("b", 0, detector="d")]
    both = build_report(chats, judged, chatbots=["vanilla"], detectors=["d"], flaws=flaws)
    assert describe_omissions(both) == [
        "d: of 2 turns 1 failed; it counts neither in HPT nor in TokAcc.",
        "d: 1 of 1 hallucination was not found verbatim in the reply; it counts in HPT, not in TokAcc.",
        "simulated user: 1 of 2 conversations has flaws (repeated 1); "
        "the report gives the numbers without it too.",
    ]
    one = build_report(chats[1:], judged[1:], chatbots=["vanilla"], detectors=["d"], flaws={})
    assert describe_omissions(one) == ["d: of 1 turn 1 failed; it counts neither in HPT nor in TokAcc."]


def test_a_reply_flagged_without_places_counts_neither_in_hpt_nor_in_tokacc() -> None:
    judged = [scored("a", 0, None, detector="d").model_copy(update={"flagged": True})]
    report = build_report([conversation("a", ["x"])], judged, chatbots=["vanilla"], detectors=["d"], flaws={})
    assert describe_omissions(report) == [
        "d: of 1 turn 1 scored without places; it counts neither in HPT nor in TokAcc."
    ]


def row_of_attack(chatbot: str, seen: int, **fields: object) -> AttackRow:
    given = {"thing": "false statement", "where": "document", "kind": "all", "planted": 22, "undecided": 0}
    share = {"followed_share": 0.25, "followed_share_ci95": (0.1, 0.4)} if seen else {}
    nothing = {"followed_share": None, "followed_share_ci95": None, "no_interval": None}
    counts = {"chatbot": chatbot, "seen": seen, "followed": seen // 4}
    return AttackRow.model_validate({**given, **nothing, **share, **counts, **fields})


def test_what_chatbots_did_under_attack_is_a_table_that_fits_eighty_columns() -> None:
    rows = (
        row_of_attack("prompt-engineered", 120),
        row_of_attack("prompt-engineered", 8, thing="order", kind="send"),
        row_of_attack("vanilla", 0),
    )
    attacked = example_report().model_copy(update={"attacks": rows})
    wide, narrow = (printed(attacked, width) for width in (120, 80))
    at = wide.index("under attack:")
    assert [line.split() for line in wide[at + 4 : at + 7]] == [
        ["prompt-engineered", "false", "statement", "document", "22", "120", "0", "30", "25", "[10,", "40]"],
        [],
        ["vanilla", "false", "statement", "document", "22", "0", "0", "0", "–"],
    ]
    at = narrow.index("under attack:")
    assert narrow[at + 4 : at + 6] == [
        "prompt-engineered",
        "false statement   document 22      120      0       30 25 [10, 40]",
    ]


def test_chatbots_that_met_nothing_and_replies_that_nobody_decides_are_told() -> None:
    assert describe_attacks(
        [
            row_of_attack("vanilla", 4),
            row_of_attack("editor", 0),
            row_of_attack("editor", 3, thing="order", where="user", undecided=1),
            row_of_attack("editor", 0, thing="distractor", followed=None),
        ]
    ) == [
        "under attack: no false statement of a document came before a reply of editor, so what these would "
        "do is not known.",
        "under attack: of 1 reply no rule can say whether the chatbot revealed its prompt, which hallulab "
        "does not have.",
    ]
