"""Fit a safeguard's threshold for each sensitive topic, so that it does not flag the truth.

A grounded control is a reply in the documents' own words: the clean twin of a planted error. The threshold of
a topic stays as it is if at most `MOST_FLAGGED` of the controls reach it; else it becomes the lowest one that
no more of them reach. Documents are held out in folds to measure it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hallulab.chatbots.guarded.policy import Policy, Topic
from hallulab.chatbots.guarded.topics import TopicSubject, match_topics_by_rules
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.planted import TWIN
from hallulab.simulator.bench.split import Split
from hallulab.simulator.measure.numbers import Rounded
from hallulab.simulator.report.columns import Column, build_decimal_format

MOST_FLAGGED = 0.1
"""Share of the grounded controls that may be flagged."""
LEAST_CONTROLS = 60
"""Different grounded controls of a topic below which nothing is fitted."""
_STEPS = 1000
"""Thresholds are whole multiples of 1 / `_STEPS`."""


class TopicRow(Frozen):
    """A sensitive topic; docs/metrics.md explains the fields."""

    topic: str
    controls: int
    errors: int
    before: Rounded | None
    flagged_before: Rounded | None = None
    recall_before: Rounded | None = None
    threshold: Rounded | None = None
    flagged: Rounded | None = None
    recall: Rounded | None = None
    flagged_held_out: Rounded | None = None
    recall_held_out: Rounded | None = None
    not_fitted: str | None = None
    """Why there is no threshold."""


_PERCENT = build_decimal_format(0, 100)

TOPICS = (
    Column("Topic", "topic", "", kind="name", short="Topic"),
    Column("Controls", "controls", "different grounded replies on the topic that were scored",
           short="Con-\ntrols"),
    Column("Errors", "errors", "replies with a planted error that were scored", short="Errors"),
    Column("τ before", "before", "threshold before", build_decimal_format(3), short="τ before"),
    Column("Flagged % before", "flagged_before", "share of the controls that reach the threshold before",
           _PERCENT, short="Flagged\n% before"),
    Column("Recall % before", "recall_before", "share of the errors that reach it", _PERCENT,
           short="Recall\n% before"),
    Column("τ", "threshold", "the fitted threshold", build_decimal_format(3), short="τ"),
    Column("Flagged %", "flagged", "share of the controls that reach it", _PERCENT, short="Flag-\nged %"),
    Column("Recall %", "recall", "share of the errors that reach it", _PERCENT, short="Recall\n%"),
    Column("Flagged % held out", "flagged_held_out", "the same for thresholds fitted to other documents",
           _PERCENT, short="Flagged %\nheld out"),
    Column("Recall % held out", "recall_held_out", "likewise, of the errors", _PERCENT,
           short="Recall %\nheld out"),
)  # fmt: skip
"""The columns of `hallulab calibrate --policy`."""


@dataclass(frozen=True)
class _TopicScores:
    """The scores of a topic's replies, with their groups."""

    controls: tuple[tuple[str, float], ...]
    errors: tuple[tuple[str, float], ...]

    def of(self, groups: set[str], *, inside: bool) -> _TopicScores:
        """Return those inside some groups, or outside."""
        return _TopicScores(
            tuple(one for one in self.controls if (one[0] in groups) == inside),
            tuple(one for one in self.errors if (one[0] in groups) == inside),
        )


def build_topic_rows(
    evaluation: Evaluation, policy: Policy, labels: Mapping[str, float], folds: Sequence[Split]
) -> list[TopicRow]:
    """Fit a threshold for each sensitive topic.

    Args:
        evaluation: judgements of planted errors and their twins.
        policy: its rules find the topics.
        labels: the scenario's thresholds by topic; these topics are sensitive, too.
        folds: each tests some groups.
    """
    tagged = [_match_topics(reply, policy, labels) for reply in evaluation.replies]
    sensitive = [name for name, topic in policy.topics.items() if topic.sensitive]
    return [
        _build_row(
            topic, _collect_scores(evaluation, [topic in found for found in tagged]), policy, labels, folds
        )
        for topic in dict.fromkeys([*sensitive, *labels])
    ]


def _match_topics(reply: LabelledReply, policy: Policy, labels: Mapping[str, float]) -> set[str]:
    return set(
        match_topics_by_rules(policy.topics, labels, TopicSubject(reply.question, None, reply.passages))
    )


def _collect_scores(evaluation: Evaluation, chosen: Sequence[bool]) -> _TopicScores:
    """Return the scores of planted errors, and of different twins."""
    controls: dict[str, tuple[str, float]] = {}
    errors = []
    for reply, judgement, wanted in zip(evaluation.replies, evaluation.judgements, chosen, strict=True):
        if not wanted or judgement.score is None or TWIN not in reply.meta:
            continue
        if reply.label:
            errors.append((reply.group, judgement.score))
        else:
            controls.setdefault(reply.reply, (reply.group, judgement.score))
    return _TopicScores(tuple(controls.values()), tuple(errors))


def _build_row(
    topic: str, scored: _TopicScores, policy: Policy, labels: Mapping[str, float], folds: Sequence[Split]
) -> TopicRow:
    before = policy.decision([topic], labels, False).threshold
    row = TopicRow(topic=topic, controls=len(scored.controls), errors=len(scored.errors), before=before)
    if before is None:
        return row.model_copy(update={"not_fitted": "the detector itself decides there"})
    row = row.model_copy(
        update={
            "flagged_before": _share(scored.controls, before),
            "recall_before": _share(scored.errors, before),
        }
    )
    if row.controls < LEAST_CONTROLS:
        told = f"{row.controls} grounded controls, and {LEAST_CONTROLS} are needed (--count plants more)"
        return row.model_copy(update={"not_fitted": told})
    threshold = fit_threshold([score for _, score in scored.controls], before)
    if threshold is None:
        told = f"more than {MOST_FLAGGED:.0%} of the grounded controls have the highest score"
        return row.model_copy(update={"not_fitted": told})
    flagged, recall = _test_held_out(scored, before, folds)
    return row.model_copy(
        update={
            "threshold": threshold,
            "flagged": _share(scored.controls, threshold),
            "recall": _share(scored.errors, threshold),
            "flagged_held_out": flagged,
            "recall_held_out": recall,
        }
    )


def fit_threshold(controls: Sequence[float], before: float) -> float | None:
    """Return `before`, or the lowest threshold that at most `MOST_FLAGGED` of the controls reach.

    None: that would be above 1.

    Args:
        controls: scores of grounded replies, from 0 to 1.
        before: the threshold now.
    """
    allowed = math.floor(MOST_FLAGGED * len(controls))
    highest_kept = sorted(controls, reverse=True)[allowed]
    if highest_kept < before:
        return before
    lowest = (math.floor(highest_kept * _STEPS) + 1) / _STEPS
    return lowest if lowest <= 1 else None


def _test_held_out(
    scored: _TopicScores, before: float, folds: Sequence[Split]
) -> tuple[float | None, float | None]:
    """Return the shares of controls and errors that reach thresholds fitted to other documents.

    None: a fold's other documents have no control, or no threshold.
    """
    flagged = found = 0
    for fold in folds:
        inside = scored.of(fold.tested_groups, inside=True)
        others = [score for _, score in scored.of(fold.tested_groups, inside=False).controls]
        threshold = fit_threshold(others, before) if others else None
        if threshold is None:
            return None, None
        flagged += sum(score >= threshold for _, score in inside.controls)
        found += sum(score >= threshold for _, score in inside.errors)
    return _divide_by_all(flagged, scored.controls), _divide_by_all(found, scored.errors)


def _share(scores: Sequence[tuple[str, float]], threshold: float) -> float | None:
    return _divide_by_all(sum(score >= threshold for _, score in scores), scores)


def _divide_by_all(count: int, all_of: Sequence[tuple[str, float]]) -> float | None:
    return count / len(all_of) if all_of else None


def apply_thresholds(policy: Policy, rows: Sequence[TopicRow]) -> Policy:
    """Return the policy with the fitted thresholds; topics that only the scenario knows are added."""
    topics = dict(policy.topics)
    for row in rows:
        if row.threshold is not None:
            known = topics.get(row.topic, Topic(sensitive=True))
            topics[row.topic] = known.model_copy(update={"threshold": row.threshold})
    return policy.model_copy(update={"topics": topics})
