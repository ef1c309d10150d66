"""Sentences on the results of a benchmark: what they leave out, what flatters them, and tests."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.text.wording import (
    NOTHING,
    choose_noun,
    format_count,
    format_number,
    join_names,
    render_one_line,
    shorten_line,
)
from hallulab.simulator.bench.baselines import FLAG_ALL, FLOOR, MAJORITY, RaterAgreement
from hallulab.simulator.bench.chats import ChatFriedman, ChatReport
from hallulab.simulator.bench.results import BenchData, BenchReport
from hallulab.simulator.bench.rows import AnyRow, LevelRow, SpanRow
from hallulab.simulator.bench.significance import RankTest, SourceTest
from hallulab.simulator.statistics.differences import ALPHA, adjust_by_holm
from hallulab.simulator.statistics.intervals import LEAST_FOR_INTERVAL, explain_no_interval


def render_headlines(report: BenchReport) -> list[str]:
    """Say what failed, where it is much; on how many replies is measured, if not on all; and the finding."""
    data = report.data
    if not data.part:
        return [*report.warnings, *render_finding(report)]
    learnt = "" if data.folds or not data.trained_on else f"; {_describe_training(data)}"
    return [*report.warnings, f"Measured on {data.part}{learnt}.", *render_finding(report)]


_RANKED = 5
"""Detectors that the finding names; of more, the best."""


def render_finding(report: BenchReport) -> list[str]:
    """Set the detectors beside counting words by AUROC of replies; nothing without both, and of a sweep."""
    rows = [row for row in report.at("response") if isinstance(row, LevelRow)]
    known = {row.detector: row.auroc for row in rows if row.auroc is not None}
    floor = known.pop(FLOOR, None)
    known = {name: auroc for name, auroc in known.items() if name not in (FLAG_ALL, MAJORITY)}
    if floor is None or not known or report.sweep is not None:
        return []
    tests: dict[str, tuple[bool, float]] = {}
    for one in report.comparisons:
        other = one.b if one.a == FLOOR else one.a
        is_compared = (one.level, one.metric) == ("response", "auroc") and FLOOR in (one.a, one.b)
        if is_compared and other in known and one.p_value is not None:
            tests[other] = ((one.difference or 0.0) > 0) == (other == one.a), one.p_value
    adjusted = dict(zip(tests, adjust_by_holm([p for _, p in tests.values()]), strict=True))
    ranked = sorted(known, key=lambda name: (-known[name], name))
    named = [f"{name} {known[name]:.3f}" for name in ranked[:_RANKED]]
    told = f"AUROC of replies: {', '.join(named)}, counting words ({FLOOR}) {floor:.3f}."
    if not tests:
        few = max(row.groups for row in rows) < LEAST_FOR_INTERVAL
        why = "Too few groups to say" if few else "The groups do not say"
        return [f"{told} {why} which are better than counting words beyond the noise."]
    better = [name for name in ranked if name in tests and tests[name][0] and (adjusted[name] or 0.0) < ALPHA]
    are = "are" if len(better) > 1 else "is"
    return [f"{told} {join_names(better) or 'None'} {are} better than counting words beyond the noise."]


def _describe_training(data: BenchData) -> str:
    return f"{data.trained_on:,} {choose_noun(data.trained_on, 'training example')}: {data.split}"


def format_bound(bound: float) -> str:
    """Format a bound of an interval in [0, 1], such as `.71`."""
    return f"{bound:.2f}".removeprefix("0")


def list_notes(report: BenchReport) -> list[str]:
    """Write sentences on what the numbers leave out, and on what flatters them."""
    return [
        *render_data_notes(report.data),
        *render_interval_notes(report),
        *render_notes(report.replies),
        *render_caveats(report.rows),
    ]


def render_data_notes(data: BenchData) -> list[str]:
    """Write sentences on replies that are not measured on, and on the training part."""
    found = [*map(render_one_line, data.notes)]
    if data.left_out:
        reasons = (f"{shorten_line(reason)} ({lines:,})" for reason, lines in data.left_out.items())
        found.append(f"Left out of the data, and in no number: {', '.join(reasons)}.")
    if data.folds:
        found.append(
            f"{data.split}: each learner judged every fold as trained on the others, on "
            f"{data.trained_on:,} replies in the mean; measured on {data.tested_on:,}."
        )
    elif data.trained_on and not data.part:  # else it is the headline
        found.append(f"{_describe_training(data)}; measured on {data.tested_on:,}.")
    if data.groups_in_both:
        both = format_count(data.groups_in_both, "group")
        found.append(f"{both} learnt from and measured on: what was learnt there flatters the numbers.")
    found += [f"{name} was not trained here: {reason}" for name, reason in data.not_trained.items()]
    if data.raters is not None:
        found.append(render_raters_line(data.raters))
    return found


def render_interval_notes(report: BenchReport) -> list[str]:
    """Explain why numbers of detectors have no interval; those of the floors never vary."""
    found = []
    too_few: dict[str, list[str]] = {}
    for level in report.levels:
        rows = report.at(level)
        reason = explain_no_interval(rows[0].groups, "group")
        detectors = [row for row in rows if row.detector not in (FLAG_ALL, MAJORITY)]
        lacking = [row.detector for row in detectors if _is_interval_missing(row)]
        if reason is not None:
            too_few.setdefault(reason, []).append(level)
        elif lacking:
            found.append(
                f"{level} level, {', '.join(lacking)}: no interval with fewer than {LEAST_FOR_INTERVAL} "
                "groups (for AUROC and balanced accuracy: of positives, and of negatives), if a number is "
                "not defined without one of them, or if it is the same without each."
            )
    told = [f"{join_names(levels)} level: {reason}." for reason, levels in too_few.items()]
    return [*told, *found]


def _is_interval_missing(row: AnyRow) -> bool:
    """Return whether a number could have an interval and has none."""
    fields = ("f1",) if isinstance(row, SpanRow) else ("auroc", "auprc", "f1", "balanced_accuracy")
    return any(getattr(row, f"{field}_ci95") is None and getattr(row, field) is not None for field in fields)


def render_raters_line(found: RaterAgreement) -> str:
    """Say how far the people behind the labels agree."""
    label, others = (
        f"AUROC {format_number(one.auroc, 3)}, balanced accuracy {format_number(one.balanced_accuracy, 3)}, "
        f"F1 {format_number(one.f1, 3)}"
        for one in (found.label, found.others)
    )
    made = f"{found.ratings:,} ratings of {found.replies:,} {choose_noun(found.replies, 'reply', 'replies')}"
    return (
        f"Raters ({made}): Krippendorff's alpha {format_number(found.alpha, 3)}. One rater against the "
        f"label, in which that one has a say: {label}; against the median of the others: {others}."
    )


_REMARKS = {
    "batched": "Judged in batches (time of a reply is its batch's over its size)",
    "told_origin": "Given each reply's author, unknown for a new chatbot",
    "replayed_calls": "Answers known before (recorded, or asked for already) take no time: p50 and p95 are "
    "of the replies without any",
}


def render_notes(costs: Sequence[LevelRow]) -> list[str]:
    """Write sentences on what the numbers leave out, and on how to read them."""
    found = []
    for row in costs:
        gaps = {"abstained": "abstention", "failed": "failure"}
        listed = ", ".join(
            format_count(count, word) for field, word in gaps.items() if (count := getattr(row, field))
        )
        if row.parse_failures:
            listed += f" ({row.parse_failures} by an unreadable answer)"
        if listed:
            found.append(f"{row.detector}: in no number but coverage: {listed}.")
    for row in costs:
        own = row.fold_thresholds
        if len(set(own)) > 1:
            spread = f"{format_number(min(own), 3)} to {format_number(max(own), 3)}"
            found.append(
                f"{row.detector}: its threshold is the mean of {len(own)} folds' own, {spread}; each "
                "reply was decided by its fold's."
            )
    for field, sentence in _REMARKS.items():
        names = [row.detector for row in costs if getattr(row, field)]
        found += [f"{sentence}: {', '.join(names)}."] if names else []
    return found


def render_caveats(rows: Sequence[AnyRow]) -> list[str]:
    """Write sentences on what flatters a detector's numbers: cut replies, quotations not in the reply."""
    found = []
    for row in rows:
        cut = row.truncated_scored + row.truncated_abstained
        if row.level == "response" and cut:
            found.append(
                f"{row.detector}: replies cut to fit: {row.truncated_scored} scored, "
                f"{row.truncated_abstained} abstained from; one counts only if what was left is flagged, "
                "so no miss among them lowers recall."
            )
    for row in rows:
        if isinstance(row, SpanRow) and row.unlocated:
            found.append(
                f"{row.detector}: {format_count(row.unlocated, 'flagged span')} without a place in the "
                "reply: wrong by the exact rule, in no other number on spans."
            )
    return found


def render_friedman_line(found: SourceTest) -> str:
    """Describe the test over all detectors in a sentence."""
    return (
        f"Friedman test over {found.groups:,} sources, detectors ranked in each by their Brier score: "
        f"{format_p_value(found.p_value)}. Mean ranks (1: least error): {_format_ranks(found)}."
    )


def explain_chats_counted(chats: ChatReport) -> str:
    """Say what the means over conversations count."""
    if chats.counted == "spans":
        return "Counted are hallucinations: flagged spans that meet annotated ones."
    return "Counted are turns, not single hallucinations: not every turn says where they are."


def render_chat_friedman_lines(tests: Sequence[ChatFriedman]) -> list[str]:
    """Describe the tests over all detectors on conversations, one sentence each."""
    return [
        f"Friedman test of {found.metric} over {format_count(found.conversations, 'chat')}: "
        f"{format_p_value(found.p_value)}. Mean ranks (1: highest): {_format_ranks(found)}."
        for found in tests
    ]


def _format_ranks(found: RankTest) -> str:
    ranked = sorted(found.mean_ranks.items(), key=lambda pair: pair[1])
    return ", ".join(f"{name} {format_number(rank, 2)}" for name, rank in ranked)


def format_p_value(p: float | None) -> str:
    """Format a p-value for people; a dash where there was nothing to test."""
    return f"p = {NOTHING if p is None else format(p, '.3g')}"


def render_reason_lines(costs: Sequence[LevelRow]) -> list[str]:
    """Say why judgements are missing, by detector."""
    return [
        f"{row.detector}: {found.n} {found.outcome}: {found.reason}" for row in costs for found in row.reasons
    ]
