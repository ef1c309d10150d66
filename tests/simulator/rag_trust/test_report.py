from __future__ import annotations

from typing import Any

from hallulab.simulator.rag_trust.config import MeasuredAnswer, RagTrustConfig
from hallulab.simulator.rag_trust.report import Models, RagTrustRow, build_report
from tests.simulator.rag_trust.test_scores import answer

MODELS = Models(chatbots={"default": "m"}, judge="m")


def config(**fields: Any) -> RagTrustConfig:
    one = {"poison": [0.0], "distractors": [0]}
    return RagTrustConfig.model_validate(
        {
            "strategies": ["hedge"],
            "factuality": one,
            "robustness": one,
            "accountability": {"distractors": [0, 8]},
            **fields,
        }
    )


def cell(replies: list[str | None], distractors: int, **fields: Any) -> list[MeasuredAnswer]:
    return [
        answer(reply, question_id=f"q{number}", distractors=distractors, **fields)
        for number, reply in enumerate(replies)
    ]


def rows(*cells: list[MeasuredAnswer], **fields: Any) -> list[RagTrustRow]:
    answers = [one for each in cells for one in each]
    return list(build_report(config(**fields), MODELS, answers).get_rows("accountability"))


GOOD, BAD, NO = "It is. [1][2]", "It is. [3]", "I_DECLINE_TO_ANSWER"


def test_refusals_are_told_apart() -> None:
    [row, _] = rows(cell([GOOD, BAD, NO, NO], 0), cell([GOOD] * 4, 8))
    assert (row.score, row.refused, row.answered) == (0.75, 0.5, 2)
    assert (row.score_answered, row.score_refusals_0) == (0.5, 0.25)
    assert (row.precision, row.recall) == (0.5, 0.5)


def test_a_failure_is_in_no_mean_and_lowers_coverage() -> None:
    [row, other] = rows(cell([GOOD, None], 0, error="no answer"), cell([None, None], 8, error="no answer"))
    assert (row.score, row.scored, row.answers, row.coverage) == (1.0, 1, 2, 0.5)
    assert (other.score, other.refused, other.coverage, other.precision) == (None, None, 0.0, None)


def test_the_change_is_over_the_questions_that_both_cells_scored() -> None:
    [first, second] = rows(cell([GOOD, BAD, GOOD], 0), cell([BAD, BAD, None], 8))
    assert first.change is None
    assert (second.score, second.change) == (0.0, -0.5)


def test_six_questions_have_intervals_and_five_have_none() -> None:
    [row, other] = rows(cell([GOOD, BAD] * 3, 0), cell([GOOD] * 6, 8))
    assert row.score_ci95 is not None
    assert row.score_ci95[0] < 0.5 < row.score_ci95[1]
    assert other.change_ci95 is not None
    assert [one.score_ci95 for one in rows(cell([GOOD] * 5, 0), cell([GOOD] * 5, 8))] == [None, None]


def test_only_refusals_leave_no_score_of_answers() -> None:
    [row, _] = rows(cell([NO], 0), cell([NO], 8))
    assert (row.score, row.score_answered, row.score_refusals_0) == (1.0, None, 0.0)


def test_the_report_says_who_judges_and_that_refusals_flatter() -> None:
    answers = [*cell([GOOD], 0), *cell([GOOD], 8)]
    same = build_report(config(), MODELS, answers).notes
    other = build_report(config(), Models(chatbots={"default": "m"}, judge="j"), answers).notes
    assert "which flatters whoever refuses" in same[0]
    assert same[1] == "The judge is m."
    assert "m judges its own answers" in same[2]
    assert not any("judges its own" in note for note in other)
    assert "No intervals: 1 question; 6 needed for an interval." in other


def test_questions_that_all_have_the_best_score_bound_it() -> None:
    row, _ = build_report(config(), MODELS, [*cell([GOOD] * 6, 0), *cell([GOOD, BAD] * 3, 8)]).get_rows(
        "accountability"
    )
    # 0.025^(1/6)
    assert (row.score, row.score_ci95) == (1.0, (0.540742, 1.0))


def test_a_judge_that_failed_on_every_answer_stands_first_and_fails_the_command() -> None:
    answers = [*cell([GOOD], 0, error="the judge: timed out"), *cell([BAD], 8, error="the judge: timed out")]
    made = build_report(config(), MODELS, answers)
    said = "he judge failed on 2 of 2 answers (100%). Reason: the judge: timed out."
    assert (made.warnings, made.failed) == ((f"T{said}",), f"t{said}")


def test_a_chatbot_that_did_not_answer_more_than_a_tenth_of_the_questions_is_a_warning() -> None:
    answers = [*cell([GOOD] * 8, 0), *cell([None, None], 8, error="no answer in 30 s")]
    made = build_report(config(), MODELS, answers)
    [warning] = made.warnings
    assert warning.endswith("gave no answer to 2 of 10 questions (20%). Reason: no answer in 30 s.")
    assert made.failed is None


def test_a_few_failures_are_no_warning() -> None:
    answers = [*cell([GOOD] * 10, 0), *cell([None], 8, error="no answer")]
    assert build_report(config(), MODELS, answers).warnings == ()
