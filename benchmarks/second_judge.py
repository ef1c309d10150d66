"""The recorded runs judged a second time, side by side: `python -m benchmarks.second_judge RUN`.

RUN is the folder that `make replay-headline` or `make replay` has made; it stays as it is, for a copy is
judged. The second judge is HalluDetect as published, on a strong language model whose answers are replayed
(`examples/second-judge.yaml`). The tables stand in docs/studies: chatbots.md and first-run.md.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sklearn.metrics import roc_auc_score

from benchmarks.command import build_parser, format_table, get_exit_code
from hallulab import Run, detect
from hallulab.scenarios.text.wording import format_number, format_with_interval
from hallulab.simulator.metrics.agreement import AgreementSection
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report

if TYPE_CHECKING:
    import pandas

EXPERIMENT = Path("examples") / "second-judge.yaml"
"""The second judge, relative to the repository."""
RECORDING = Path("tests") / "recordings" / "strong" / "headline.halludetect.jsonl.gz"
"""Its answers about the headline run, of which the demo is a part."""
SECOND = "halludetect-published"
"""Its name."""


def judge_again(run: Path, copy: Path) -> None:
    """Copy a run folder, and let the second judge judge the copy.

    Raises:
        UsageError: it is no run folder.
        OperationalError: the recording lacks an answer: it is no replay of the headline run or the demo.
    """
    shutil.copytree(run, copy)
    detect(copy, config=EXPERIMENT, replay=RECORDING, quiet=True)


def page(run: Path) -> str:
    """Return the rates by all judges side by side, and how far they agree, as Markdown."""
    report = read_report(RunFolder(run).report)
    verdicts = Run(run).verdicts()
    return f"{_build_rates(report)}\n\n{_build_agreement(report, verdicts)}\n"


def _build_rates(report: RunReport) -> str:
    """Return HPT-1 of each chatbot by each detector."""
    judges = sorted(report.detectors, key=lambda name: name == SECOND)
    columns = ("chatbot", *(f"HPT-1 by `{name}` [95%]" for name in judges))
    by_chatbot: dict[str, list[str]] = {}
    for detector in judges:
        for row in report.by(detector):
            shown = format_with_interval(row.hpt_1, row.hpt_1_ci95, 2)
            by_chatbot.setdefault(row.chatbot, []).append(shown)
    return format_table(columns, [(chatbot, *cells) for chatbot, cells in by_chatbot.items()])


def _build_agreement(report: RunReport, verdicts: pandas.DataFrame) -> str:
    """Return how each other judge agrees with the second one."""
    keys = ["conversation", "turn"]
    scored = verdicts[verdicts.outcome == "scored"]
    second = scored[scored.detector == SECOND]
    lines = []
    for pair in (one for one in report.of(AgreementSection).agreement.pairs if SECOND in (one.a, one.b)):
        other = pair.a if pair.b == SECOND else pair.b
        both = second.merge(scored[scored.detector == other], on=keys, suffixes=("", "_other"))
        flags, others = both.flagged.tolist(), both.flagged_other.tolist()
        lines.append(
            (
                f"`{other}`",
                str(pair.turns),
                str(sum(others)),
                str(sum(flags)),
                str(sum(one and two for one, two in zip(flags, others, strict=True))),
                format_number(pair.agreement, 0, 100),
                format_number(pair.kappa, 2),
                format_number(roc_auc_score(flags, both.score_other), 3),
            )
        )
    columns = (
        "judge",
        "replies",
        "it flags",
        f"`{SECOND}` flags",
        "both flag",
        "agreement, %",
        "kappa",
        f"AUROC of its score against the flags of `{SECOND}`",
    )
    return format_table(columns, lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge a copy and print; return the exit code, as of `hallulab`."""
    parser = build_parser("second_judge", __doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of the replayed run")
    given = parser.parse_args(arguments)

    def run() -> None:
        with TemporaryDirectory() as folder:
            judge_again(given.run, Path(folder) / "run")
            print(page(Path(folder) / "run"), end="")

    return get_exit_code(run)


if __name__ == "__main__":
    sys.exit(main())
