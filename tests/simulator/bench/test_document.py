"""The results of a benchmark on a terminal of eighty columns."""

from __future__ import annotations

import pytest
from rich.console import Console

from hallulab.simulator.bench.baselines import RaterAgreement, RatingNumbers
from hallulab.simulator.bench.chats import ChatFriedman, ChatReport, Counted
from hallulab.simulator.bench.document import build_document
from hallulab.simulator.bench.evaluate import Evaluation, Missing
from hallulab.simulator.bench.notes import (
    explain_chats_counted,
    render_caveats,
    render_chat_friedman_lines,
    render_data_notes,
    render_friedman_line,
    render_headlines,
    render_interval_notes,
    render_notes,
    render_reason_lines,
)
from hallulab.simulator.bench.results import BenchData, measure
from hallulab.simulator.bench.rows import SpanRow
from hallulab.simulator.bench.significance import SourceTest
from hallulab.simulator.show.terminal import print_document
from tests.simulator.bench.material import DATA, FAILED, evaluation, judged, reply

REPORT = measure([evaluation([reply()], judged())], DATA).report
RESPONSE = REPORT.replies[0]
SPANS = SpanRow.model_validate(REPORT.at("span")[-1].model_dump())


def told(**fields: object) -> list[str]:
    return render_data_notes(DATA.model_copy(update=fields))


def printed(name: str, groups: int = 12) -> list[str]:
    found = [[(0, 5)], [], [(18, 25)]] * 4
    replies = [reply(*spans, group=str(n % groups)) for n, spans in enumerate(found)]
    said = (judged((0, 5)), judged(), FAILED) * 4
    return lines_of(evaluation(replies, *said, name=name, cold_s=0.5, latencies_s=(None, *[0.1] * 11)))


def lines_of(one: Evaluation, data: BenchData = DATA) -> list[str]:
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        print_document(build_document(measure([one], data)), console)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_one_group_is_not_called_groups() -> None:
    assert printed("d", groups=1)[1] == "response level: 12 replies in 1 group, 66.7% hallucinated"


@pytest.mark.parametrize(
    ("scores", "groups", "verdict"),
    [
        ((0.9, 0.1), 12, "d is better than counting words beyond the noise."),
        ((0.1, 0.9), 12, "None is better than counting words beyond the noise."),
        ((0.9, 0.1), 5, "Too few groups to say which are better than counting words beyond the noise."),
    ],
)
def test_the_finding_sets_detectors_beside_counting_words(
    scores: tuple[float, float], groups: int, verdict: str
) -> None:
    replies = [reply(*([(0, 5)] if n % 2 else []), group=str(n % groups)) for n in range(24)]
    own = [judged(score=scores[0] if n % 2 else scores[1]) for n in range(24)]
    words = [judged(score=0.5 + n % 3 / 10) for n in range(24)]
    report = measure([evaluation(replies, *words, name="lexical"), evaluation(replies, *own, name="d")], DATA)
    [told] = render_headlines(report.report)
    assert (
        told == f"AUROC of replies: d {float(scores[0] > 0.5):.3f}, counting words (lexical) 0.500. {verdict}"
    )


def test_several_detectors_are_tested_together() -> None:
    replies = [reply(*([(0, 5)] if n % 2 else []), group=str(n % 12)) for n in range(24)]
    judged_by = [
        evaluation(replies, *[judged(score=0.1 + n % 3 / 10) for n in range(24)], name=name)
        for name in ("lexical", "c", "d")
    ]
    report = measure(judged_by, DATA).report
    lines = [
        one.model_copy(update={"difference": -0.1, "p_value": p})
        for one, p in zip(
            [one for one in report.comparisons if (one.level, one.metric) == ("response", "auroc")],
            (0.03, 0.024, 0.9),
            strict=True,
        )
    ]
    assert [(one.a, one.b) for one in lines] == [("lexical", "c"), ("lexical", "d"), ("c", "d")]
    [told] = render_headlines(report.model_copy(update={"comparisons": tuple(lines)}))
    assert told.endswith("c and d are better than counting words beyond the noise.")
    lines[0] = lines[0].model_copy(update={"p_value": 0.06})
    lines[1] = lines[1].model_copy(update={"p_value": 0.026})
    [told] = render_headlines(report.model_copy(update={"comparisons": tuple(lines)}))
    assert told.endswith("None is better than counting words beyond the noise.")
    [told] = render_headlines(report)
    assert told.endswith("The groups do not say which are better than counting words beyond the noise.")


def test_what_failed_stands_first() -> None:
    assert printed("d")[0] == "Detector d failed on 4 of 12 replies (33%). Reason: no answer."


def test_a_detector_that_failed_on_every_reply_fails_the_benchmark() -> None:
    report = measure([evaluation([reply()] * 2, FAILED, FAILED, name="d")], DATA).report
    assert report.failed == "detector d failed on every reply: 2 of 2. Reason: no answer."


def test_a_part_of_the_data_is_named_first_and_in_every_head() -> None:
    data = DATA.model_copy(
        update={"replies": 8, "tested_on": 3, "trained_on": 5, "split": "one half of the groups"}
    )
    lines = lines_of(evaluation([reply()] * 3, *[judged()] * 3), data)
    assert lines[0] == "Measured on 3 of 8 replies; 5 training examples: one half of the groups."
    assert [line for line in lines if "3 of 8" in line][1:] == [
        "response level: 3 of 8 replies in 1 group, 0.0% hallucinated",
        "sentence level (3 of 8 replies): 6 sentences in 1 group, 0.0% hallucinated",
        "word level (3 of 8 replies): 21 words in 1 group, 0.0% hallucinated",
        "span level (3 of 8 replies): 3 replies read for spans in 1 group, 0 gold spans",
        "Cost and failures (3 of 8 replies)",
    ]


def test_one_item_is_named_in_the_singular() -> None:
    data = DATA.model_copy(update={"replies": 1, "tested_on": 1})
    one = reply((3, 6), text="Rs 500.")
    lines = lines_of(evaluation([one], judged()), data)
    assert [line for line in lines if "level" in line and "1 group," in line] == [
        "response level: 1 reply in 1 group, 100.0% hallucinated",
        "sentence level: 1 sentence in 1 group, 100.0% hallucinated",
        "word level: 2 words in 1 group, 50.0% hallucinated",
        "span level: 1 reply read for spans in 1 group, 1 gold span",
    ]


def test_replies_that_a_limit_leaves_out_are_told_first() -> None:
    data = DATA.model_copy(update={"replies": 8, "tested_on": 3})
    assert lines_of(evaluation([reply()] * 3, *[judged()] * 3), data)[0] == "Measured on 3 of 8 replies."


def test_too_few_groups_have_the_reason_in_place_of_intervals() -> None:
    lines = printed("d", groups=5)
    assert (
        " ".join(lines).count("response, sentence, word and span level: 5 groups; 6 needed for an interval.")
        == 1
    )
    assert not any("[" in line and "95%" not in line for line in lines)


def test_too_few_groups_of_a_class_are_told_of_the_detectors_they_concern() -> None:
    fields = ("auroc", "auprc", "f1", "balanced_accuracy")
    ends = {f"{field}_ci95": (0.0, 0.0) for field in fields}
    whole = RESPONSE.model_copy(update={"groups": 40, **dict.fromkeys(fields, 0.0), **ends})
    rows = (
        whole.model_copy(update={"detector": "a"}),
        whole.model_copy(update={"detector": "b", "auroc_ci95": None}),
        whole.model_copy(update={"detector": "c", "f1": None, "f1_ci95": None}),
        SPANS.model_copy(update={"groups": 40, "detector": "d", "f1": 0.5, "f1_ci95": None}),
    )
    reason = (
        "no interval with fewer than 6 groups (for AUROC and balanced accuracy: of positives, and of "
        "negatives), if a number is not defined without one of them, or if it is the same without each."
    )
    assert render_interval_notes(REPORT.model_copy(update={"rows": rows})) == [
        f"response level, b: {reason}",
        f"span level, d: {reason}",
    ]


def test_eighty_columns_are_enough_for_a_usual_name() -> None:
    lines = printed("evidence-chain-rf")
    assert max(map(len, lines)) <= 80
    assert lines[1] == "response level: 12 replies in 12 groups, 66.7% hallucinated"
    assert sum(line.startswith("evidence-chain-rf ") for line in lines) == 5


def test_a_long_name_is_folded_and_no_number_is_cut() -> None:
    lines = printed("a-detector-with-a-very-long-name-indeed")
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    assert any("0.200 [.13, .30]" in line for line in lines)


def test_what_is_not_defined_is_a_dash() -> None:
    majority = next(line for line in printed("d") if line.startswith("majority")).split()
    assert majority[-3:] == ["0.800", "–", "–"]
    word = [line for line in printed("d") if line.startswith("majority")][2]
    assert word.split()[4] == "–"


def test_how_far_raters_agree_is_told() -> None:
    numbers = RatingNumbers(
        auroc=0.86, auroc_ci95=None, f1=0.7, f1_ci95=None, balanced_accuracy=0.84, balanced_accuracy_ci95=None
    )
    raters = RaterAgreement(replies=216, ratings=645, alpha=0.25, label=numbers, others=numbers)
    assert told(raters=raters) == [
        "Raters (645 ratings of 216 replies): Krippendorff's alpha 0.250. One rater against the label, in "
        "which that one has a say: AUROC 0.860, balanced accuracy 0.840, F1 0.700; against the median of the "
        "others: AUROC 0.860, balanced accuracy 0.840, F1 0.700."
    ]


def test_leaks_and_replays_are_told() -> None:
    assert told(trained_on=5, groups_in_both=2, split="learnt from there") == [
        "5 training examples: learnt from there; measured on 3.",
        "2 groups learnt from and measured on: what was learnt there flatters the numbers.",
    ]
    said = {
        "abstained": 1,
        "failed": 2,
        "parse_failures": 1,
        "batched": True,
        "told_origin": True,
        "replayed_calls": 4,
    }
    assert render_notes([RESPONSE.model_copy(update=said)]) == [
        "d: in no number but coverage: 1 abstention, 2 failures (1 by an unreadable answer).",
        "Judged in batches (time of a reply is its batch's over its size): d.",
        "Given each reply's author, unknown for a new chatbot: d.",
        "Answers known before (recorded, or asked for already) take no time: p50 and p95 are of the "
        "replies without any: d.",
    ]


def test_what_was_left_out_of_the_data_is_told() -> None:
    assert told(left_out={"unlabelled": 1200, "quality\ngod": 1}) == [
        "Left out of the data, and in no number: unlabelled (1,200), quality god (1)."
    ]


def test_folds_and_their_thresholds_are_told() -> None:
    assert told(folds=3, trained_on=20, split="3 folds over sources, seed 0", tested_on=30) == [
        "3 folds over sources, seed 0: each learner judged every fold as trained on the others, on 20 "
        "replies in the mean; measured on 30."
    ]
    assert render_notes([RESPONSE.model_copy(update={"fold_thresholds": (0.25, 0.75, 0.5)})]) == [
        "d: its threshold is the mean of 3 folds' own, 0.250 to 0.750; each reply was decided by its fold's."
    ]


def test_why_judgements_are_missing_is_told() -> None:
    found = Missing(outcome="failed", reason="no answer", n=2)
    assert render_reason_lines([RESPONSE.model_copy(update={"reasons": (found,)})]) == [
        "d: 2 failed: no answer"
    ]
    assert "e: 4 failed: no answer" in printed("e")


def test_the_test_over_all_detectors_is_one_sentence_the_best_first() -> None:
    found = SourceTest(
        n=80, groups=40, statistic=9.0, p_value=0.00123456, mean_ranks={"a": 2.5, "b": 1.25, "c": 2.25}
    )
    assert render_friedman_line(found) == (
        "Friedman test over 40 sources, detectors ranked in each by their Brier score: p = 0.00123. "
        "Mean ranks (1: least error): b 1.25, c 2.25, a 2.50."
    )
    assert "p = –." in render_friedman_line(found.model_copy(update={"p_value": None}))


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        ("spans", "Counted are hallucinations: flagged spans that meet annotated ones."),
        ("turns", "Counted are turns, not single hallucinations: not every turn says where they are."),
    ],
)
def test_means_over_conversations_say_what_they_count(counted: Counted, told: str) -> None:
    assert explain_chats_counted(ChatReport(counted=counted, rows=(), friedman=(), tests=())) == told


def test_the_tests_over_conversations_are_a_sentence_each() -> None:
    ranks = {"a": 2.0, "b": 1.0}
    found = ChatFriedman(metric="recall", conversations=4, statistic=1.0, p_value=0.5, mean_ranks=ranks)
    assert render_chat_friedman_lines([found]) == [
        "Friedman test of recall over 4 chats: p = 0.5. Mean ranks (1: highest): b 1.00, a 2.00."
    ]


def test_conversations_fit_eighty_columns() -> None:
    replies = [
        reply(*spans, group=str(n), meta={"conversation": str(n // 2)})
        for n, spans in enumerate([[(0, 5)], [], [(18, 25)]])
    ]
    said = lines_of(evaluation(replies, judged((0, 5)), judged(), judged()))
    lines = [" ".join(line.split()) for line in said]
    at = lines.index("Means over conversations. Counted are hallucinations: flagged spans that meet")
    assert lines[at + 4] == "d 2 1.000 1 0.500 2 0.667"


def test_cut_replies_and_quotations_that_are_nowhere_are_told() -> None:
    response = RESPONSE.model_copy(update={"truncated_scored": 2, "truncated_abstained": 3})
    assert render_caveats([response, SPANS.model_copy(update={"unlocated": 1})]) == [
        "d: replies cut to fit: 2 scored, 3 abstained from; one counts only if what was left is flagged, so "
        "no miss among them lowers recall.",
        "d: 1 flagged span without a place in the reply: wrong by the exact rule, in no other number on "
        "spans.",
    ]


def test_nothing_cut_and_all_spans_in_place_need_no_sentence() -> None:
    assert render_caveats([RESPONSE, SPANS]) == []
