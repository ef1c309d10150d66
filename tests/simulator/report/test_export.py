"""Exported replies: every line loads again, whatever the detector said."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.datasets.rows import load_rows
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.transcript import Passage, Turn, Verdict
from hallulab.simulator.options.groups import ExportSelection
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.export import BENCH, ExportCounts, export_annotated, export_run
from tests.builders import conversation, scored, unscored
from tests.kit.run_folders import write_run

PASSAGES = (Passage(id="fees#0", document="fees", text="The fee is Rs 200.", score=0.7, topic="fees"),)


def run(folder: Path, turns: list[tuple[str, tuple[Passage, ...]]], *verdicts: Verdict) -> RunFolder:
    """A run of one conversation whose turns have those replies and passages."""
    said = [
        Turn(index=index, user=f"Question {index}?", passages=passages, reply=reply)
        for index, (reply, passages) in enumerate(turns)
    ]
    return write_run(folder, [conversation("c", [], turns=said)], verdicts)


def export_one(folder: RunFolder) -> LabelledReply:
    """The only reply that is exported with the labels of `d`."""
    out = folder.path / "data.jsonl"
    export_annotated(folder, "d", out)
    (reply,) = load_rows(out)
    return reply


def test_a_reply_that_was_not_scored_is_not_annotated(tmp_path: Path) -> None:
    folder = run(tmp_path, [("One.", PASSAGES), ("Two.", PASSAGES)], scored("c", 0), unscored("c", 1))
    out = tmp_path / "data.jsonl"
    assert export_annotated(folder, "d", out) == ExportCounts(written=1, without_evidence=0, not_scored=1)
    (reply,) = load_rows(out)
    assert (reply.reply, reply.label, reply.spans, reply.group) == ("One.", False, (), "asha")


def test_a_later_turn_carries_the_dialogue_before_it(tmp_path: Path) -> None:
    folder = run(tmp_path, [("One.", PASSAGES), ("Two.", PASSAGES)], scored("c", 1))
    reply = export_one(folder)
    assert [(message.role, message.text) for message in reply.history] == [
        ("user", "Question 0?"),
        ("assistant", "One."),
    ]


@pytest.mark.parametrize(
    ("verdict", "spans"),
    [
        pytest.param(scored("c", 0, [None]), None, id="without a place it is not said that there is none"),
        pytest.param(
            scored("c", 0, [(0, 3)]).model_copy(update={"score": 0.1, "flagged": False}),
            (GoldSpan(start=0, end=3),),
            id="also below the threshold",
        ),
    ],
)
def test_a_flagged_span_is_a_hallucination(
    tmp_path: Path, verdict: Verdict, spans: tuple[GoldSpan, ...] | None
) -> None:
    reply = export_one(run(tmp_path, [("One.", PASSAGES)], verdict))
    assert reply.label is True
    assert reply.spans is None if spans is None else len(reply.spans or ()) == len(spans)


def test_topics_and_the_origin_of_a_reply_are_kept(tmp_path: Path) -> None:
    reply = export_one(run(tmp_path, [("One.", PASSAGES)], scored("c", 0)))
    assert (reply.group, [passage.topic for passage in reply.passages]) == ("asha", ["fees"])
    bot = {"chatbot": "vanilla", "model": "m", "scenario": "s", "seed": 0}
    judged = {"detector": "d", "detector_version": "1"}
    assert reply.meta == {"conversation": "c", **bot, "turn": 0, **judged}


def test_a_reply_without_evidence_or_words_is_left_out_and_counted(tmp_path: Path) -> None:
    turns = [("One.", ()), ("", PASSAGES), ("Three.", PASSAGES)]
    folder = run(tmp_path, turns, *(scored("c", turn) for turn in range(3)))
    out = tmp_path / "data.jsonl"
    assert export_annotated(folder, "d", out) == ExportCounts(written=1, without_evidence=2)
    assert [reply.id for reply in load_rows(out)] == ["c-2"]


def test_without_a_detector_nothing_is_labelled(tmp_path: Path) -> None:
    out = tmp_path / "data.jsonl"
    assert export_annotated(run(tmp_path, [("One.", PASSAGES)]), None, out).written == 1
    assert load_rows(out).left_out == {"unlabelled": 1}


def test_the_same_export_may_be_repeated(tmp_path: Path) -> None:
    folder, out = run(tmp_path, [("One.", PASSAGES)]), tmp_path / "data.jsonl"
    out.touch()  # as of mktemp
    assert [export_annotated(folder, None, out).written for _ in range(2)] == [1, 1]


@pytest.mark.parametrize(
    ("format", "wanted"),
    [(BENCH, ExportSelection()), (BENCH, ExportSelection(detector="d")), ("openai", ExportSelection())],
)
def test_a_file_with_another_content_is_not_written_over(
    tmp_path: Path, format: str, wanted: ExportSelection
) -> None:
    out = tmp_path / "data.jsonl"
    out.write_text("labelled by hand\n")
    with pytest.raises(UsageError, match=r"data\.jsonl is there already, with other content\. Give another"):
        export_run(run(tmp_path, [("One.", PASSAGES)], scored("c", 0)), format, wanted, out)
    assert (out.read_text(), list(tmp_path.glob(".*"))) == ("labelled by hand\n", [])


@pytest.mark.parametrize(
    ("format", "name", "written"),
    [(BENCH, "a.csv", ".jsonl"), ("csv", "a.parquet", ".csv"), ("openai", "a.jsonl.GZ", ".jsonl")],
)
def test_a_name_that_ends_as_that_of_another_format_is_refused(
    tmp_path: Path, format: str, name: str, written: str
) -> None:
    folder = run(tmp_path, [("One.", PASSAGES)])
    with pytest.raises(UsageError, match=rf"{name}: {format} is written as \{written}\. Correct --out"):
        export_run(folder, format, ExportSelection(), tmp_path / name)


@pytest.mark.parametrize(
    ("turns", "why"),
    [([], "it has none yet"), ([("One.", ()), ("", PASSAGES)], "2 have no evidence, or are empty")],
)
def test_without_a_reply_nothing_is_written(
    tmp_path: Path, turns: list[tuple[str, tuple[Passage, ...]]], why: str
) -> None:
    out = tmp_path / "data.jsonl"
    with pytest.raises(UsageError) as caught:
        export_annotated(run(tmp_path, turns), None, out)
    assert (str(caught.value), out.exists()) == (f"{tmp_path} has no reply to export: {why}.", False)
