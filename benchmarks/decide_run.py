"""What `hallulab run --until-decided` decides between chatbots whose rates are known.

`python -m benchmarks.decide_run [--seeds N]` runs the demo's pack on a scripted model that makes statements
up at planted rates; `lexical` finds all of them. Each row is so many runs, which differ in their seeds: in
the order of the personas, and in what is planted. Rows are printed as they come; the last line of the output
is one JSON object.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import hallulab
from benchmarks.command import build_parser, format_head, format_row
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.records.experiment import DEFAULT_SCENARIO
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import words_for_vectors
from tests.kit.planted_rates import describe_bots, make_planted_script

TURNS = 4
"""Turns of each conversation."""


@dataclass(frozen=True)
class Case:
    """Runs that are measured."""

    rates: Mapping[str, float]
    """Hallucinations a turn of each chatbot."""
    margin: float
    """See `until_decided`."""
    limit: int | None = None
    """So many personas of the pack; None: all."""

    @property
    def right(self) -> str:
        """What a decision must be: the best chatbot, or the alike ones."""
        lowest = min(self.rates.values())
        return " = ".join(name for name, rate in self.rates.items() if rate < lowest + self.margin)


CASES = (
    Case({"careful": 0.4, "careless": 0.8}, 0.2),
    Case({"one": 0.6, "other": 0.6}, 0.2),
    Case({"one": 0.4, "other": 0.4, "careless": 0.8}, 0.2),
    Case({"careful": 0.4, "careless": 0.8}, 0.2, 36),
    Case({"one": 0.6, "other": 0.6}, 0.2, 36),
    Case({"one": 0.6, "other": 0.6}, 0.4, 36),
)
"""The rows."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case's runs."""

    rates: str
    personas: int
    """Those that there are."""
    margin: float
    runs: int
    right: int
    """Decided as they must be."""
    wrong: int
    """Decided otherwise."""
    talked: float
    """Personas that had talked at the end, on average."""
    conversations: float
    """Conversations at the end, on average."""


def measure(case: Case, seeds: Sequence[int], folder: Path) -> Outcome:
    """Run a case with each of the seeds."""
    found = [run_once(case, seed, folder) for seed in seeds]
    decided = [name_decision(one) for one in found]
    return Outcome(
        rates=", ".join(f"{rate:g}" for rate in case.rates.values()),
        personas=len(load_scenario(DEFAULT_SCENARIO).personas[: case.limit]),
        margin=case.margin,
        runs=len(found),
        right=sum(one == case.right for one in decided),
        wrong=sum(one not in (case.right, None) for one in decided),
        talked=statistics.fmean(one["persons"] for one in found),
        conversations=statistics.fmean(sum(one["asked"].values()) for one in found),
    )


def run_once(case: Case, seed: int, folder: Path) -> dict[str, Any]:
    """Run a case once, and return what is decided."""
    experiment = {
        "scenario": DEFAULT_SCENARIO,
        "chatbots": describe_bots(case.rates),
        "detectors": ["lexical"],
        "min_turns": TURNS,
        "max_turns": TURNS,
        "limit": case.limit,
        "seed": seed,
        "until_decided": {"margin": case.margin},
    }
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    with words_for_vectors(), ScriptedModel(make_planted_script(case.rates)) as model:
        hallulab.run(experiment, model=model.name, base_url=model.base_url, out=out, quiet=True)
    found: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))["decision"]["found"]
    return found


def name_decision(found: Mapping[str, Any]) -> str | None:
    """Return the best chatbot, or the alike ones; None: it is open."""
    return found["best"] or " = ".join(found["alike"]) or None


def format_outcome(one: Outcome) -> Sequence[str]:
    """Return the cells of a row."""
    return (
        one.rates,
        str(one.personas),
        f"{one.margin:g}",
        str(one.runs),
        str(one.right),
        str(one.wrong),
        str(one.runs - one.right - one.wrong),
        f"{one.talked:.1f}",
        f"{one.conversations:.1f}",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all cases, and print a table."""
    parser = build_parser("decide_run", __doc__)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each row; default: %(default)s")
    given = parser.parse_args(arguments)
    heads = ("planted", "personas", "margin", "runs", "decided right", "wrong", "open")
    print(*format_head((*heads, "personas talked, mean", "conversations, mean")), sep="\n")
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for case in CASES:
            found.append(measure(case, range(given.seeds), Path(directory)))
            print(format_row(format_outcome(found[-1])), flush=True)
    print(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()
