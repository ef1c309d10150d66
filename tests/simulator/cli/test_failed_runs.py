"""Runs in which much failed: what failed stands first, in text and in data, and decides the exit code."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.results import Run
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from tests.builders import conversation, scored, unscored
from tests.simulator.command_line import CommandLine

Fails = Callable[[str, int], bool]
"""Whether a conversation of a chatbot, by number, fails."""
Judges = Callable[[str, int], str]
"""What comes of a detector's verdict on the conversation with a number."""


def make_run(
    folder: Path,
    *,
    fails: Fails = lambda bot, number: False,
    judges: Judges = lambda detector, number: "scored",
    replies: int = 1,
    detectors: tuple[str, ...] = ("lexical", "other"),
) -> RunFolder:
    """Ten conversations of each of two chatbots; `lexical` flags every second reply, `other` none."""
    run = RunFolder(folder)
    with run.open_journals(Journals([], []), 1) as journals:
        for bot in ("a", "b"):
            for number in range(10):
                chat = _hold(bot, number, fails(bot, number), replies)
                journals.add_conversation(chat)
                for detector in detectors if chat.turns else ():
                    journals.add_verdict(_judge(chat, number, detector, judges(detector, number)))
    return run


def _hold(bot: str, number: int, fails: bool, replies: int) -> Conversation:
    failure = {"stop_reason": "error", "error": f"chatbot {bot}: connection refused"} if fails else {}
    said = ["The fee is 5 rupees."] * replies
    return conversation(f"{bot}{number}", said, bot, persona=f"p{number}", **failure)


def _judge(chat: Conversation, number: int, detector: str, outcome: str) -> Verdict:
    if outcome != "scored":
        return unscored(chat.id, 0, outcome, detector)
    return scored(chat.id, 0, [(0, 7)] if detector == "lexical" and number % 2 else [], detector)


def all_failed(bot: str, number: int) -> bool:
    return True


def other_failed(detector: str, number: int) -> str:
    return "failed" if detector == "other" else "scored"


REFUSED = "very conversation failed: 20 of 20. Reason: connection refused."
USELESS = "etector other failed on every reply: 20 of 20. Reason: because."


def test_every_conversation_failed(hallulab: CommandLine, tmp_path: Path) -> None:
    make_run(tmp_path, fails=all_failed)
    ended = hallulab("report", tmp_path)
    assert ended.out.splitlines()[0] == f"E{REFUSED}"
    assert (ended.code, ended.err) == (1, f"error: e{REFUSED}\n")
    ended = hallulab("report", tmp_path, "--json")
    report = json.loads(ended.out)
    assert (ended.code, report["warnings"], report["failed"]) == (1, [f"E{REFUSED}"], f"e{REFUSED}")
    assert [(one["chatbot"], one["failed"]) for one in report["failures"]] == [("a", 10), ("b", 10)]


def test_a_detector_that_failed_does_not_hide_what_the_other_one_flags(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    make_run(tmp_path, judges=other_failed)
    ended = hallulab("report", tmp_path)
    assert ended.out.splitlines()[:3] == [
        f"D{USELESS}",
        "None of 20 replies was scored by both detectors.",
        "Each by itself: lexical flags 10 of 20 replies and other scored none.",
    ]
    assert (ended.code, ended.err) == (1, f"error: d{USELESS}\n")


def test_without_a_scored_turn_there_is_no_number_and_the_page_says_first_why(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    run = make_run(tmp_path, judges=other_failed)
    hallulab("report", tmp_path)
    rows = [row for row in json.loads(run.report.read_text())["rows"] if row["detector"] == "other"]
    numbers = ("hpt_1", "hpt_2", "tokacc_1", "tokacc_2", "hallucinated_chats", "hpt_1_ci95")
    assert {row[name] for row in rows for name in numbers} == {None}
    cells = [row for row in csv.DictReader(run.table.read_text().splitlines()) if row["detector"] == "other"]
    assert {row[name] for row in cells for name in ("hpt_1", "hpt_2", "tokacc_1", "tokacc_2")} == {""}
    page = run.page.read_text()
    assert page.index(f'<p class="note">D{USELESS}</p>') < page.index('<p class="finding-line">')
    charts = [figure.partition("</figure>")[0] for figure in page.split("<figure>")[1:]]
    shown = [(chart.count("<circle"), chart.count("not scored</text>")) for chart in charts]
    assert shown[:2] == [(2, 0), (2, 2)]
    assert Run(tmp_path).verdicts().query("detector == 'other'")["flagged"].isna().all()


def test_all_abstained(hallulab: CommandLine, tmp_path: Path) -> None:
    make_run(tmp_path, judges=lambda detector, number: "abstained", detectors=("lexical",))
    ended = hallulab("report", tmp_path)
    assert ended.out.startswith("Detector lexical abstained from every reply: 20 of 20. Reason: because.\n")
    assert (ended.code, ended.err) == (0, "")


def test_more_than_a_tenth_failed(hallulab: CommandLine, tmp_path: Path) -> None:
    make_run(tmp_path, fails=lambda bot, number: bot == "b" and number < 2)
    warning = "2 of 10 conversations of b failed (20%). Reason: connection refused."
    ended = hallulab("report", tmp_path)
    assert (ended.code, ended.out.splitlines()[0]) == (0, warning)
    ended = hallulab("report", tmp_path, "--json")
    assert (ended.err, json.loads(ended.out)["warnings"]) == (f"warning: {warning}\n", [warning])


def test_a_run_without_verdicts_says_so(hallulab: CommandLine, tmp_path: Path) -> None:
    make_run(tmp_path, detectors=())
    ended = hallulab("report", tmp_path)
    assert (ended.code, ended.out.splitlines()[0]) == (0, "No detector has judged the 20 replies.")


@pytest.mark.parametrize("replies", [0, 1])
def test_a_comparison_with_a_failed_run_says_first_that_it_failed(
    hallulab: CommandLine, tmp_path: Path, replies: int
) -> None:
    make_run(tmp_path / "sound")
    make_run(tmp_path / "broken", fails=all_failed, replies=replies)
    out = tmp_path / "c.json"
    ended = hallulab("compare", tmp_path / "sound", tmp_path / "broken", "--json", out)
    head, first, *_ = ended.out.splitlines()
    assert head == "B (broken) beside A (sound), the reference:"
    assert first.startswith(f"B (broken): {'Every conversation' if replies else 'No conversation got'}")
    found = json.loads(out.read_text())
    assert found["runs"][0]["warnings"][0].startswith(first[:40])
    assert (ended.code, len(found["failed"])) == (1 if replies else 3, 1)


def test_a_baseline_of_a_failed_run_is_an_error(hallulab: CommandLine, tmp_path: Path) -> None:
    make_run(tmp_path / "run", judges=other_failed)
    ended = hallulab("compare", tmp_path / "run", "--save", tmp_path / "baseline.json")
    assert (ended.code, ended.err) == (1, f"error: d{USELESS}\n")
    assert "because" not in (tmp_path / "baseline.json").read_text()


def test_a_gate_refuses_a_run_in_which_every_conversation_failed(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    make_run(tmp_path / "sound")
    make_run(tmp_path / "broken", fails=lambda bot, number: bot == "b")
    ended = hallulab("gate", tmp_path / "broken", "--against", tmp_path / "sound")
    assert ended.code == 3
    assert ended.out.splitlines()[1:3] == [
        "b: every conversation of the run failed, and a failure is never clean",
        "warning: Every conversation of b failed: 10 of 10. Reason: connection refused.",
    ]


def test_an_export_of_a_detector_that_failed_says_why(hallulab: CommandLine, tmp_path: Path) -> None:
    make_run(tmp_path, judges=other_failed)
    ended = hallulab("export", tmp_path, "--detector", "other", "--out", tmp_path / "x.jsonl")
    assert (ended.code, ended.err) == (1, f"error: d{USELESS}\n")
    assert not (tmp_path / "x.jsonl").exists()


def test_an_export_says_what_is_left_out_where_it_says_what_is_written(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    make_run(tmp_path, judges=other_failed)
    ended = hallulab("export", tmp_path, "--format", "openai", "--out", tmp_path / "x.jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        f"1 conversation written to {tmp_path / 'x.jsonl'}",
        "19 left out: nearly the same as an earlier one (--keep-duplicates keeps them)",
        "1 reply without spans: not every detector scored them and said where",
    ]
    table = tmp_path / "x.csv"
    counts = json.loads(hallulab("export", tmp_path, "--format", "csv", "--out", table, "--json").out)
    assert (counts["written"], counts["near_duplicates"], counts["not_judged"]) == (20, 0, 10)
    assert len(table.read_text().splitlines()) == 21


def test_no_turn_to_label_says_why(hallulab: CommandLine, tmp_path: Path) -> None:
    make_run(tmp_path, judges=other_failed, detectors=("other",))
    ended = hallulab("annotate", tmp_path, "--next", "2")
    assert (ended.code, ended.err.splitlines()[-1]) == (1, f"error: d{USELESS}")


def test_turns_to_label_are_drawn_by_another_detector_with_a_warning(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    make_run(tmp_path, judges=lambda name, number: "failed" if name == "lexical" else "scored")
    ended = hallulab("annotate", tmp_path, "--next", "2")
    assert ended.code == 0
    assert ended.err.startswith(
        "warning: Detector lexical failed on every reply: 20 of 20. Reason: because.\n"
    )
