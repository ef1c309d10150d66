"""The tables of docs/studies/chatbots.md, from the report of a run: `python -m benchmarks.headline RUN`.

`make replay-headline` makes the run again from its recording, into `runs/headline`, and prints them. Beside
our numbers stand those of the HalluDetect paper (tables 3 and 5, appendix B.8), as it prints them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import build_parser, format_table, get_exit_code
from hallulab.scenarios.text.wording import format_count, format_number, format_with_interval
from hallulab.simulator.metrics.costs import CostSection
from hallulab.simulator.metrics.findings import ComparisonSection
from hallulab.simulator.metrics.lengths import LengthSection
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.run_sums import RateName
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report, render_headlines
from hallulab.simulator.statistics.differences import ALPHA

PAPER = {
    "vanilla": (2, 0.8165, 0.7901, 0.9383, 0.9436, 0.6000, 3.13, 782.63),
    "prompt-engineered": (2, 0.7692, 0.8944, 0.9400, 0.9343, 0.6333, 3.23, 850.27),
    "editor": (3, 0.4476, 0.4744, 0.9564, 0.9547, 0.5667, 3.43, 813.97),
    "fact-checker": (4, 0.5872, 0.5861, 0.9589, 0.9597, 0.5000, 3.37, 860.80),
    "agent": (3, 0.4159, 0.4279, 0.9613, 0.9638, 0.4667, 3.47, 999.00),
}
"""Llama 3.1 8B, 30 chats a chatbot: inferences a response, HPT-1, HPT-2, TokAcc-1, TokAcc-2, share of
hallucinated chats (table 3); mean number of turns and of tokens (table 5)."""
PAPER_COST = 2.52
"""HalluDetect's tokens a chat over those of the Vanilla chatbot (B.8)."""
THEIRS = "the paper's"

_COLUMNS = (
    "judged by",
    "chatbot",
    "calls a reply",
    "HPT-1 [95%]",
    "HPT-2",
    "TokAcc-1, % [95%]",
    "TokAcc-2, %",
    "hallucinated chats, %",
    "coverage, %",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return the exit code, as of `hallulab`."""
    parser = build_parser("headline", __doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder with a report")
    given = parser.parse_args(arguments)
    return get_exit_code(lambda: print(page(given.run), end=""))


def page(run: Path) -> str:
    """Return all tables of a run as Markdown.

    Raises:
        UsageError: it is no run folder with a report.
    """
    report = read_report(RunFolder(run).report)
    parts = (
        " ".join(render_headlines(report)),
        _rates(report),
        _differences(report),
        _lengths(report),
        _cost(report),
    )
    return "\n\n".join(parts) + "\n"


def _rates(report: RunReport) -> str:
    """Return each detector's table of chatbots, then the paper's."""
    lines: list[tuple[str, ...]] = []
    for row in (row for detector in report.detectors for row in report.by(detector)):
        accuracy = None if row.tokacc_1 is None else 100 * row.tokacc_1
        interval = None if row.tokacc_1_ci95 is None else [100 * end for end in row.tokacc_1_ci95]
        lines.append(
            (
                row.detector,
                row.chatbot,
                format_number(row.calls_per_reply, 1),
                format_with_interval(row.hpt_1, row.hpt_1_ci95, 2),
                format_number(row.hpt_2, 2),
                format_with_interval(accuracy, interval, 1),
                format_number(row.tokacc_2, 1, 100),
                format_number(row.hallucinated_chats, 0, 100),
                format_number(row.coverage, 0, 100),
            )
        )
    for chatbot, (calls, hpt_1, hpt_2, tokacc_1, tokacc_2, chats, *_) in PAPER.items():
        percent = [f"{100 * share:.1f}" for share in (tokacc_1, tokacc_2)]
        lines.append(
            (THEIRS, chatbot, str(calls), f"{hpt_1:.2f}", f"{hpt_2:.2f}", *percent, f"{100 * chats:.0f}", "")
        )
    return format_table(_COLUMNS, lines)


_METRICS: dict[RateName, str] = {"hpt_1": "HPT-1", "tokacc_1": "TokAcc-1", "answered": "Answered"}


def _differences(report: RunReport) -> str:
    """Say which differences the paired tests find."""
    found = []
    for detector in report.detectors:
        held = [
            line
            for line in report.of(ComparisonSection).comparisons
            if line.detector == detector and line.p_holm is not None and line.p_holm < ALPHA
        ]
        said = [
            f"{line.a} − {line.b} {_METRICS[line.metric]} "
            f"{format_with_interval(line.difference, line.ci95, 2)} (p = {line.p_holm:.3f})"
            for line in held
        ]
        found.append(
            f"By {detector}, these differences hold: {'; '.join(said)}."
            if said
            else f"By {detector}, no difference holds."
        )
    return " ".join(found)


def _lengths(report: RunReport) -> str:
    """Return the lengths of conversations beside the paper's."""
    lines = [
        (
            one.chatbot,
            format_number(one.turns_mean, 1),
            format_number(one.tokens_mean, 0),
            f"{PAPER[one.chatbot][6]:.1f}",
            f"{PAPER[one.chatbot][7]:.0f}",
        )
        for one in report.of(LengthSection).conversations
        if one.chatbot in PAPER
    ]
    return format_table(("chatbot", "turns", "tokens", f"turns, {THEIRS}", f"tokens, {THEIRS}"), lines)


def _cost(report: RunReport) -> str:
    """Say what each detector costs, in tokens of the Vanilla chatbot."""
    said = [
        f"{one.name} {format_number(one.relative_to_vanilla, 2)} times in "
        f"{format_number(one.calls_per_chat, 1)} calls"
        for one in report.of(CostSection).efficiency
        if one.role == "detector"
    ]
    chats = format_count(
        max((one.conversations for one in report.of(CostSection).efficiency), default=0), "conversation"
    )
    return (
        f"Tokens read and written a conversation, as multiples of Vanilla's ({chats} a chatbot): "
        f"{', '.join(said)}; in the paper HalluDetect {PAPER_COST} times in 23 calls."
    )


if __name__ == "__main__":
    sys.exit(main())
