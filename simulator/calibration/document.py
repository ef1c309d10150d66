"""The fitted thresholds as a document: `hallulab calibrate`."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.calibration.fit import CalibrationReport
from hallulab.simulator.calibration.policy import MOST_FLAGGED, PolicyFit
from hallulab.simulator.show.columns import PERCENT, Column, build_decimal_format
from hallulab.simulator.show.document import GroupedTable, Paragraph, Section, ShownDocument

_THREE = build_decimal_format(3)

COLUMNS = (
    Column("Detector", "detector", "name of the detector", kind="name", short="Detector"),
    Column("Threshold until now", "before", "its threshold until now, and where that came from", _THREE,
           beside="before_protocol", short="Threshold\nuntil now"),
    Column("Fitted", "threshold", "threshold with the largest balanced accuracy", _THREE, short="Fitted"),
    Column("Sensitivity", "sensitivity", "share of the hallucinated replies that are flagged; each part of "
           "the groups is judged by the threshold of the others", _THREE, short="Sensi-\ntivity"),
    Column("Specificity", "specificity", "share of the clean replies that are not flagged, likewise", _THREE,
           short="Speci-\nficity"),
    Column("Balanced accuracy", "balanced_accuracy", "mean of both", _THREE, short="Balanced\naccuracy"),
    Column("Replies", "replies", "replies that it was given"),
    Column("Coverage %", "coverage", "replies that it scored over those", PERCENT,
           short="Cov.\n%"),
)  # fmt: skip

TOPICS = (
    Column("Topic", "topic", "", kind="name", short="Topic"),
    Column("Controls", "controls", "different grounded replies on the topic that were scored",
           short="Con-\ntrols"),
    Column("Errors", "errors", "replies with a planted error that were scored", short="Errors"),
    Column("τ before", "before", "threshold before", _THREE, short="τ before"),
    Column("Flagged % before", "flagged_before", "share of the controls that reach the threshold before",
           PERCENT, short="Flagged\n% before"),
    Column("Recall % before", "recall_before", "share of the errors that reach it", PERCENT,
           short="Recall\n% before"),
    Column("τ", "threshold", "the fitted threshold", _THREE, short="τ"),
    Column("Flagged %", "flagged", "share of the controls that reach it", PERCENT, short="Flag-\nged %"),
    Column("Recall %", "recall", "share of the errors that reach it", PERCENT, short="Recall\n%"),
    Column("Flagged % held out", "flagged_held_out", "the same for thresholds fitted to other documents",
           PERCENT, short="Flagged %\nheld out"),
    Column("Recall % held out", "recall_held_out", "likewise, of the errors", PERCENT,
           short="Recall %\nheld out"),
)  # fmt: skip
"""For `rows` of `hallulab calibrate --policy`: sensitive topics."""

TABLES = {"Thresholds": COLUMNS, "Thresholds of topics": TOPICS}


def build_calibration_document(report: CalibrationReport) -> ShownDocument:
    """Return the thresholds, what they were fitted to, and why some are missing."""
    lines = [
        f"{row.detector}: keeps its threshold, as {row.not_fitted}."
        for row in report.detectors
        if row.not_fitted is not None
    ]
    lines += [f"Note: {note}." for note in report.notes]
    heading = f"Thresholds fitted to {report.measured_on}"
    return _build_document(GroupedTable(COLUMNS, [report.detectors], heading), lines)


def build_policy_document(found: PolicyFit) -> ShownDocument:
    """Return the topics' thresholds, and why some are missing."""
    lines = [
        f"{row.topic}: stays as it is: {row.not_fitted}." for row in found.rows if row.not_fitted is not None
    ]
    lines.append(
        f"Note: τ is as before where at most {MOST_FLAGGED:.0%} of the controls reach it, else the lowest "
        "with that."
    )
    pairs = format_count(found.pairs, "error")
    heading = f"Thresholds of {found.detector} on {pairs} planted into {found.source}, with clean twins"
    return _build_document(GroupedTable(TOPICS, [found.rows], heading), lines)


def _build_document(table: GroupedTable, lines: Sequence[str]) -> ShownDocument:
    section = Section("thresholds", "Thresholds", [table, *map(Paragraph, lines)])
    return ShownDocument("calibrate", "Fitted thresholds", sections=[section])
