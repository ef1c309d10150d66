"""Measures every detector that needs no environment of its own on every data set, and prints one table.

Models' answers are replayed from recordings (`--recordings`), one for each data set and detector. A detector
without a recording is not measured, and the table says so. `--record` asks the model served at `--base-url`
for missing answers. It also keeps what forests learn, because that takes minutes. The command may be stopped
at any time, and continues where it was. `--docs` puts the table into the docs, with a digest of all that
decides it; it measures with what is recorded, and learns nothing again.

The data are the samples in the repository, or `--data`: a folder with a folder for each data set, mtrag,
gold, ragtruth, wice, begin. The first two are measured on whole, the others on a seeded sample.

Exit codes as for `hallulab`; also 1 when a recording does not fit the detectors any more.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import build_parser, get_exit_code
from benchmarks.detectors_table.measure import TableArguments
from benchmarks.detectors_table.samples import FOLDER, KEPT, SOURCES
from benchmarks.detectors_table.table import deciding, render, table, table_in, write_page
from hallulab.detectors.evidence_chain.detector import EVIDENCE_CHAIN
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.simulator.records.outputs import check_outputs

DETECTORS = (
    "lexical",
    *EVIDENCE_CHAIN,
    "combined",
    "halludetect",
    "metarag",
    "logic-graph",
    "direct-judge",
    "self-check",
)
"""Those that need no environment of their own."""

LIMIT = 200
"""Replies of a sampled data set."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; return the exit code."""
    parser = _build_arguments()
    given = parser.parse_args(arguments)
    return get_exit_code(lambda: _run(parser, given))


def _run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    if given.docs is not None:
        _require_the_docs_table(parser, given)
    datasets = _choose_names("--datasets", given.datasets, tuple(SOURCES))
    detectors = _choose_names("--detectors", given.detectors, DETECTORS)
    check_outputs(
        {"--out": given.out, "--json": given.json, "--docs": given.docs}, (given.data, given.recordings)
    )
    asked = TableArguments(
        given.data,
        given.recordings,
        given.limit,
        given.record,
        given.base_url,
        given.model,
        learns=given.docs is None,
    )
    # Taken first: what is edited in the meantime shows as a change.
    decided_by = {} if given.docs is None else deciding(asked, detectors)
    # Recording processes would share one served model, and one of them keeps it busy.
    report = table(asked, datasets, detectors, workers=1 if given.record else os.cpu_count() or 1)
    text = render(report)
    print(text, end="")
    if given.out is not None:
        write_atomically(given.out, text)
    if given.json is not None:
        values = report.model_dump(mode="json")
        write_atomically(given.json, json.dumps(values, indent=2, allow_nan=False) + "\n")
    stale = [f"{line.dataset}.{line.detector}" for line in report.lines if line.stale]
    if stale:
        raise OperationalError(f"these recordings do not fit: {', '.join(stale)}. Go on with --record.")
    if given.docs is not None:
        write_page(given.docs, text, decided_by)
    return 0


def _require_the_docs_table(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Raise UsageError if a flag asks for another table than that of the docs, or there is no such page."""
    table_in(given.docs)
    for flag in ("data", "recordings", "record", "base_url", "model", "datasets", "detectors", "limit"):
        if getattr(given, flag) != parser.get_default(flag):
            raise UsageError(
                f"--docs: the docs have the table of the whole repository. "
                f"Leave out --{flag.replace('_', '-')}."
            )


def _choose_names(flag: str, given: str | None, known: Sequence[str]) -> Sequence[str]:
    names = known if given is None else given.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f"{flag} {name}: there is no such one. Give some of: {', '.join(known)}.")
    return tuple(dict.fromkeys(names))


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _build_arguments() -> argparse.ArgumentParser:
    parser = build_parser("detectors_table", __doc__)
    parser.add_argument(
        "--data", type=Path, default=KEPT, help=f"folder that holds the data sets (default: {KEPT})"
    )
    parser.add_argument("--recordings", type=Path, default=FOLDER, help=f"folder (default: {FOLDER})")
    parser.add_argument("--record", action="store_true", help="ask the model what is not recorded yet")
    parser.add_argument("--base-url", help="where the model is served, to record")
    parser.add_argument("--model", help="its name (default: hallulab's default model)")
    parser.add_argument("--datasets", help=f"some of {','.join(SOURCES)}")
    parser.add_argument("--detectors", help=f"some of {','.join(DETECTORS)}")
    parser.add_argument(
        "--limit", type=_positive, default=LIMIT, help=f"replies of a sampled data set (default: {LIMIT})"
    )
    parser.add_argument("--out", type=Path, help="write the table into this Markdown file, too")
    parser.add_argument("--json", type=Path, help="write all numbers into this file")
    parser.add_argument(
        "--docs",
        type=Path,
        help="put the table into this page of the docs, with digests of all that decides it",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
