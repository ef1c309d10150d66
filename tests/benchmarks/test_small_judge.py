"""The small judge with details among its measurements: rows on literal numbers, and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.small_judge import (
    BEGINS,
    ENDS,
    WITH_DETAILS,
    Judged,
    build_row,
    build_table,
    compare,
    judge_left_out,
    measure_details,
    rate,
    read_data_sets,
    read_headline,
)
from benchmarks.train_mixture import SENTENCE, MeasuredReply
from hallulab.scenarios.labelled import GoldSpan
from hallulab.scenarios.transcript import Judgement, Unit
from tests.builders import labelled
from tests.demo import replay_headline
from tests.places import ROOT


def measured_reply(number: int, wrong: bool, unsupported: float, group: str) -> MeasuredReply:
    text = "The pool opens at 6."
    spans = (GoldSpan(start=0, end=len(text)),) if wrong else ()
    reply = labelled(text, wrong, id=str(number), spans=spans, group=group)
    detail = float(number % 2)
    row = [unsupported, 1.6, 0.0, 0.0, detail, unsupported * detail]
    return MeasuredReply(reply, np.array([row]), (wrong,))


def make_set(shift: float) -> list[MeasuredReply]:
    return [
        measured_reply(number, number < 4, shift + (2.0 if number < 4 else -2.0), "ab"[number % 2])
        for number in range(8)
    ]


def test_a_detail_is_a_contact_a_date_or_an_amount() -> None:
    texts = ("Call 555-0134 now.", "Pay within 30 days.", "You can file a complaint.", "See section 35.")
    units = tuple(Unit(text=text, score=1.0, details={"unsupported": 0.5}) for text in texts)
    found = MeasuredReply(labelled("It opens at 6.", False), np.full((4, 4), 0.5), (False,) * 4)
    wide = measure_details(
        Judgement(outcome="scored", score=1.0, flagged=False, spans=(), units=units), found
    )
    assert wide.sentences[:, 4:].tolist() == [[1.0, 0.5], [1.0, 0.5], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("names", [SENTENCE, WITH_DETAILS])
def test_a_data_set_is_judged_by_what_the_others_taught(names: tuple[str, ...]) -> None:
    data = {"wice": make_set(0.0), "begin": make_set(1.0), "headline": make_set(-1.0)}
    for same_run in (False, True):
        found = judge_left_out(data, "headline", names, same_run=same_run)
        assert sorted(one.reply.id for one in found.replies) == [str(number) for number in range(8)]
        assert rate(found, "replies").compute_auroc() == 1.0
        assert rate(found, "sentences").compute_auroc() == 1.0


def test_a_row_has_both_columns_and_their_paired_difference() -> None:
    replies = [measured_reply(number, number < 2, 0.0, "abab"[number]) for number in range(4)]
    first = Judged(replies, np.array([1.0, -1.0, 0.5, -2.0]), [np.zeros(1)] * 4)
    second = Judged(replies, np.array([1.0, 0.5, -1.0, -2.0]), [np.zeros(1)] * 4)
    assert build_row("made up", "nobody", "replies", first, second) == [
        "made up",
        "nobody",
        "4 replies",
        "0.750",
        "1.000",
        "0.250",
        "0.00",
        "1.00",
    ]
    assert compare(rate(first, "replies"), rate(first, "replies")).startswith("0.000")


@pytest.mark.slow
def test_the_study_has_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow, because weights are learnt forty times."""
    monkeypatch.chdir(ROOT)
    headline = tmp_path / "headline"
    replay_headline(headline)
    table = build_table({**read_data_sets(), "headline": read_headline(headline)})
    page = (ROOT / "docs/studies/methods.md").read_text(encoding="utf-8")
    assert page.split(BEGINS)[1].split(ENDS)[0] == table
