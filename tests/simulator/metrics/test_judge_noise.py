"""Verdicts that flip where detectors are asked again, on literal verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.metrics.judge_noise import (
    DisagreementRow,
    ExplainedDisagreements,
    JudgeNoise,
    JudgeNoiseRow,
)
from hallulab.simulator.records.journal_lines import VerdictKey, build_verdict_key
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import build_report, result

CHATS = [conversation(f"c{n}", ["one", "two"], persona=f"p{n}") for n in range(6)]
FLAG, CLEAN = [(0, 3)], list[tuple[int, int]]()


def judge(flags: str, detector: str = "d") -> list[Verdict]:
    """A verdict on each turn: `x` flags it, `.` does not, `!` fails, `?` abstains, a blank is none."""
    places = [(chat.id, turn) for chat in CHATS for turn in range(2)]
    found = []
    for (chat, turn), flag in zip(places, flags, strict=True):
        if flag in "x.":
            found.append(scored(chat, turn, FLAG if flag == "x" else CLEAN, detector))
        elif flag != " ":
            found.append(unscored(chat, turn, "failed" if flag == "!" else "abstained", detector))
    return found


def again(*verdicts: Sequence[Verdict]) -> dict[VerdictKey, Verdict]:
    return {build_verdict_key(one): one for own in verdicts for one in own}


def noise(first: str, second: str, **more: Any) -> JudgeNoiseRow:
    given = {"chatbots": ["vanilla"], "detectors": ["d"], "again": again(judge(second)), **more}
    [row] = result(JudgeNoise, CHATS, judge(first), **given).judge_noise
    assert isinstance(row, JudgeNoiseRow)
    return row


def test_a_judge_that_never_flips() -> None:
    row = noise("x.x.x.x.x.x.", "x.x.x.x.x.x.")
    assert (row.asked, row.scored, row.coverage, row.flipped, row.score_change) == (12, 12, 1.0, 0.0, 0.0)
    # Clopper-Pearson with six personas as trials: 1 - 0.025^(1/6).
    assert row.flipped_ci95 == (0.0, pytest.approx(1 - 0.025 ** (1 / 6), abs=1e-6))
    assert (row.judge_floor, row.judge_share) == (0.0, None)


def test_a_judge_that_always_flips() -> None:
    row = noise("x.x.x.x.x.x.", ".x.x.x.x.x.x")
    assert (row.flipped, row.flagged, row.cleared, row.score_change) == (1.0, 6, 6, 1.0)
    assert row.flipped_ci95 == (pytest.approx(0.025 ** (1 / 6), abs=1e-6), 1.0)
    # Each number of hallucinations changes by 1: v = 1/2, T = 12 turns, √(8 v / π T).
    assert row.judge_floor == pytest.approx(math.sqrt(4 / (12 * math.pi)), abs=1e-6)


def test_a_judge_that_flips_some_replies() -> None:
    row = noise("............", "x.x.x.xx....")
    assert (row.flipped, row.flagged, row.cleared, row.score_change) == (0.416667, 5, 0, 0.416667)
    low, high = row.flipped_ci95 or (0, 0)
    assert 0 < low < 5 / 12 < high < 1


def test_a_reply_that_fails_or_is_abstained_from_the_second_time_is_no_verdict_that_stays() -> None:
    row = noise("x.x.x.x.x.x.", "!?x.x.x.x.x ")
    assert (row.asked, row.scored, row.failed, row.flipped) == (11, 9, 1, 0.0)
    assert row.coverage == pytest.approx(9 / 11, abs=1e-6)


def test_where_none_is_scored_again_nothing_is_told() -> None:
    row = noise("x...........", "!           ")
    assert (row.asked, row.scored, row.coverage, row.flipped, row.judge_floor) == (1, 0, 0.0, None, None)


def test_second_verdicts_on_replies_that_were_not_scored_do_not_count() -> None:
    given = {"chatbots": ["vanilla"], "detectors": ["d"], "again": again(judge("x" * 12))}
    assert result(JudgeNoise, CHATS, judge("!?" * 6), **given).judge_noise == ()


def with_two_seeds(personas: str) -> list[Conversation]:
    return [
        conversation(f"{persona}{seed}", ["one", "two"], persona=persona, seed=seed)
        for persona in personas
        for seed in (0, 1)
    ]


def test_the_judges_share_of_what_differs_between_seeds() -> None:
    chats = with_two_seeds("ab")
    # Of each persona, one seed has HPT 1 and one 0: the variance between seeds is 1/2.
    first = [scored(chat.id, turn, [] if chat.seed else FLAG) for chat in chats for turn in range(2)]
    # One of eight numbers changes by 1: v = 1/16, in a conversation of two turns 1/32.
    second = [scored("a0", 0), *first[1:]]
    [row] = result(JudgeNoise, chats, first, ["vanilla"], ["d"], again=again(second)).judge_noise
    assert (row.flipped, row.cleared, row.noise_floor, row.judge_share) == (0.125, 1, 1.0, 0.0625)
    assert row.judge_floor == pytest.approx(math.sqrt(4 / 8 / (math.pi * 8)), abs=1e-6)
    assert row.judge_share_ci95 is None


def test_the_interval_of_the_judges_share_leaves_out_personas() -> None:
    chats = with_two_seeds("abcdef")
    first = [scored(chat.id, turn, [] if chat.seed else FLAG) for chat in chats for turn in range(2)]
    second = [scored("a0", 0), *first[1:]]
    [row] = result(JudgeNoise, chats, first, ["vanilla"], ["d"], again=again(second)).judge_noise
    # Without a it is 0, without any other 1/40: the error is 1/48, and that of the logit 48/47.
    middle, step = math.log(1 / 47), 2.570582 * 48 / 47
    assert row.judge_share == pytest.approx(1 / 48, abs=1e-6)
    assert row.judge_share_ci95 == pytest.approx(
        [1 / (1 + math.exp(-middle - sign * step)) for sign in (-1, 1)], abs=1e-5
    )


def test_whose_noise_disagreements_are() -> None:
    # By turns: a flips, b flips, both flip, none flips where they disagree; then two agreements, one flips.
    first = [*judge("xxxx.x......", "a"), *judge("...." + ".x......", "b")]
    second = again(judge(".x.x.......!", "a"), judge(".xx..x......", "b"))
    given = {"chatbots": ["vanilla"], "detectors": ["a", "b"], "again": second}
    [row] = result(ExplainedDisagreements, CHATS, first, **given).disagreements
    assert row == DisagreementRow(
        a="a", b="b", replies=11, disagree=4, by_a=1, by_b=1, by_both=1, explained=0.75, explained_ci95=None
    )


def sentences(**more: Any) -> Sequence[str]:
    chats, verdicts = CHATS, judge("x...........")
    given = {"chatbots": ["vanilla"], "detectors": ["d"], "again": again(judge("x..........!")), **more}
    return JudgeNoise.lines(build_report(chats, verdicts, flaws={}, **given))


def test_it_is_told_what_the_second_question_does_not_change() -> None:
    model = ClaimChecks(detectors={"d": ClaimCheck(models=("m",), prompts={})})
    none = ClaimChecks(detectors={"d": ClaimCheck(models=(), prompts={})})
    failed = (
        "d failed on 1 of 12 replies the second time. They are left out: a failure is no verdict that stays "
        "the same."
    )
    assert sentences() == [failed]
    assert sentences(claim_checks=model, read_how=[ReadHow(model="m", asked=True)]) == [failed]
    [told, _] = sentences(claim_checks=model, read_how=[ReadHow(model="m", asked=True, seed="refused")])
    assert told.startswith("d was asked again without another seed, because its endpoint takes no seed")
    [told, _] = sentences(claim_checks=none)
    assert told.startswith("d asks no model, so another seed does not change it")


def test_a_run_without_second_verdicts_has_neither_table_nor_file() -> None:
    report = build_report(CHATS, judge("x..........."), flaws={}, chatbots=["vanilla"], detectors=["d"])
    assert (JudgeNoise.section(report), JudgeNoise.csv(report)) == (None, None)
