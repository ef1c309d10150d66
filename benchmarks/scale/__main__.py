"""Measure large runs: `python -m benchmarks.scale [--short] [--made N [--report-only] [--both]]`.

The same run by one worker process, by two, and by two actors of a Ray cluster, against a stub endpoint that
takes 200 ms for an answer; `--workers-only` measures nothing else. Then a
run of three turns and three detectors against an instant stub endpoint, once with few conversations and
once with ten times as many. Each run and each report is a process of its own, whose largest memory counts.

`--made N` makes a run folder of N conversations besides, and measures `report`, `detect` and
`export` on it; `--report-only` measures nothing but `report` there. `--turns`, `--detectors` and `--personas`
are those of the folder. `--both` makes it twice, in one journal of each kind and in shards, and compares the
bytes of the two reports' numbers.

The last line of the output is a JSON object.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from unittest.mock import patch

from benchmarks.command import build_parser
from benchmarks.orchestration import stub
from benchmarks.scale.cost import Needed, lost_and_doubled, needed_by, simulated, speedup
from benchmarks.scale.events import count_events
from benchmarks.scale.made_run import Shape, add_shape, make, shape_of
from hallulab.simulator.records.folder import RunFolder

FEW, MANY = 1_000, 10_000
SHORT = (20, 200)
USERS, SHORT_USERS = 120, 10
"""Users who meet all five chatbots, by one worker and by two."""
EVENTS, SHORT_EVENTS = 20_000, 200
"""Events that are sent to the command."""


def main() -> None:
    """Measure and print."""
    parser = build_parser("scale", __doc__)
    parser.add_argument("--short", action="store_true", help="a minute instead of ten")
    parser.add_argument("--made", type=int, default=0, help="conversations of a folder to report on, too")
    parser.add_argument("--report-only", action="store_true", help="measure `report` on that folder, only")
    parser.add_argument("--workers-only", action="store_true", help="measure workers, only")
    parser.add_argument("--both", action="store_true", help="compare one journal with shards")
    add_shape(parser)
    options = parser.parse_args()
    shape = shape_of(options.turns, options.detectors, options.personas)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory:
        if not options.report_only:
            found |= speedup(Path(directory), SHORT_USERS if options.short else USERS)
            found |= count_events(SHORT_EVENTS if options.short else EVENTS)
        if not options.report_only and not options.workers_only:
            found |= _compared(Path(directory), *(SHORT if options.short else (FEW, MANY)))
        if options.made:
            made = Path(directory) / "made"
            if options.both:
                found |= compare_made(made, options.made, shape)
            else:
                found |= measure_made(made, options.made, shape, options.report_only)
    print(json.dumps(found))


def _compared(directory: Path, few: int, many: int) -> dict[str, float]:
    """Return the memory of many conversations over that of few, and what is lost and doubled of the many."""
    with stub() as base_url:
        small = simulated(base_url, few, directory / "few")
        _show(f"{few} conversations", small)
        large = simulated(base_url, many, directory / "many")
        _show(f"{many} conversations", large)
    lost, doubled = lost_and_doubled(directory / "many", many)
    return {
        f"memory_ratio_{many}_over_{few}": round(large["run"].megabytes / small["run"].megabytes, 3),
        "report_seconds": large["report"].seconds,
        "lost": lost,
        "doubled": doubled,
    }


def measure_made(folder: Path, number: int, shape: Shape, report_only: bool) -> dict[str, float]:
    """Return what `report` needs on a made folder of so many conversations; show what other commands need."""
    make(number, folder, shape)
    commands: dict[str, tuple[str, ...]] = {"report": ("report", str(folder))}
    if not report_only:
        out = str(folder / "export.jsonl")
        commands["detect"] = ("detect", str(folder), "--detectors", "lexical", "--quiet")
        commands["export"] = ("export", str(folder), "--out", out, "--detector", "lexical")
    needed = {name: needed_by("hallulab.__main__", *words) for name, words in commands.items()}
    _show(f"a folder of {number} conversations", needed)
    report = needed["report"]
    return {
        "made": number,
        "made_report_megabytes": report.megabytes,
        "made_report_seconds": report.seconds,
        "made_report_cpu_seconds": report.cpu_seconds,
    }


def compare_made(folder: Path, number: int, shape: Shape) -> dict[str, float]:
    """Return how many files of numbers differ between reports of one journal and of shards."""
    runs = {kind: RunFolder(folder / kind) for kind in ("one journal", "shards")}
    for (kind, run), largest in zip(runs.items(), (number, 0), strict=True):
        with patch("hallulab.simulator.records.folder.LARGEST", largest):
            make(number, run.path, shape)
        needed = {"report": needed_by("hallulab.__main__", "report", str(run.path))}
        _show(f"{number} conversations in {kind}", needed)
    one, shards = runs.values()
    pairs = [(path, shards.path / path.name) for path in one.derived if path.is_file() and path != one.page]
    differing = sum(path.read_bytes() != other.read_bytes() for path, other in pairs)
    return {"compared_files": len(pairs), "differing_files": differing}


def _show(about: str, needed: dict[str, Needed]) -> None:
    told = (
        f"{name} {one.megabytes} MB, {one.seconds} s ({one.cpu_seconds} s of CPU)"
        for name, one in needed.items()
    )
    print(f"{about}: {'; '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
