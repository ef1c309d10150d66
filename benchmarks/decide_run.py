"""What `hallulab run --until-decided` decides between chatbots whose rates are known.

`python -m benchmarks.decide_run [--seeds N]` runs the demo's pack on a scripted model that makes statements
up at planted rates; `lexical` finds all of them. A pack of more personas has the same ones under several
names. Each row is so many runs, which differ in their seeds. The last line of the output is one JSON object.
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

import yaml

import hallulab
from benchmarks.command import build_parser, format_table
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.experiment.config import DEFAULT_SCENARIO
from hallulab.testing.planted_rates import describe_bots, make_planted_script
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import words_for_vectors

PACKS = Path(__file__).parents[1] / "scenarios" / "packs"
"""Where the demo's pack is."""
TURNS = 4
"""Turns of each conversation."""


@dataclass(frozen=True)
class Case:
    """Runs that are measured."""

    rates: Mapping[str, float]
    """Hallucinations a turn of each chatbot."""
    names: int
    """Names of each persona of the pack."""
    margin: float
    """See `until_decided`."""

    @property
    def right(self) -> str:
        """What a decision must be: the best chatbot, or the alike ones."""
        lowest = min(self.rates.values())
        return " = ".join(name for name, rate in self.rates.items() if rate < lowest + self.margin)


CASES = (
    Case({"careful": 0.4, "careless": 0.8}, 1, 0.2),
    Case({"careful": 0.4, "careless": 0.8}, 6, 0.2),
    Case({"one": 0.6, "other": 0.6}, 1, 0.2),
    Case({"one": 0.6, "other": 0.6}, 1, 0.4),
    Case({"one": 0.6, "other": 0.6}, 6, 0.2),
    Case({"one": 0.4, "other": 0.4, "careless": 0.8}, 6, 0.2),
)
"""The rows."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case's runs."""

    rates: str
    personas_of_pack: int
    margin: float
    runs: int
    right: int
    """Decided as they must be."""
    wrong: int
    """Decided otherwise."""
    personas_mean: float
    """Personas that had talked at the end, on average."""
    conversations_mean: float
    """Conversations at the end, on average."""


def measure(case: Case, seeds: Sequence[int], folder: Path) -> Outcome:
    """Run a case with each of the seeds."""
    pack = write_pack(folder / f"names-{case.names}", case.names)
    found = [run_once(case, pack, seed, folder) for seed in seeds]
    decided = [name_decision(one) for one in found]
    return Outcome(
        rates=", ".join(f"{rate:g}" for rate in case.rates.values()),
        personas_of_pack=len(load_scenario(pack).personas),
        margin=case.margin,
        runs=len(found),
        right=sum(one == case.right for one in decided),
        wrong=sum(one not in (case.right, None) for one in decided),
        personas_mean=statistics.fmean(one["persons"] for one in found),
        conversations_mean=statistics.fmean(sum(one["asked"].values()) for one in found),
    )


def run_once(case: Case, pack: Path, seed: int, folder: Path) -> dict[str, Any]:
    """Run a case once, and return what is decided."""
    experiment = {
        "scenario": str(pack),
        "chatbots": describe_bots(case.rates),
        "detectors": ["lexical"],
        "min_turns": TURNS,
        "max_turns": TURNS,
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


def write_pack(folder: Path, names: int) -> Path:
    """Write the demo's pack with each persona under so many names; return the folder."""
    if folder.exists():
        return folder
    shutil.copytree(PACKS / DEFAULT_SCENARIO, folder)
    file = folder / "personas.yaml"
    personas = yaml.safe_load(file.read_text(encoding="utf-8"))["personas"]
    twins = [
        {**persona, "id": f"{persona['id']}-{number}", "name": f"{persona['name']} {number}"}
        for number in range(names)
        for persona in personas
    ]
    file.write_text(yaml.safe_dump({"personas": twins}, allow_unicode=True), encoding="utf-8")
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all cases, and print a table."""
    parser = build_parser("decide_run", __doc__)
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row; default: %(default)s")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        found = [measure(case, range(given.seeds), Path(directory)) for case in CASES]
    heads = ("planted", "personas of the pack", "margin", "runs", "decided right", "wrong", "open")
    rows = [
        (
            one.rates,
            str(one.personas_of_pack),
            f"{one.margin:g}",
            str(one.runs),
            str(one.right),
            str(one.wrong),
            str(one.runs - one.right - one.wrong),
            f"{one.personas_mean:.1f}",
            f"{one.conversations_mean:.1f}",
        )
        for one in found
    ]
    print(format_table((*heads, "personas, mean", "conversations, mean"), rows))
    print(json.dumps([asdict(one) for one in found]))


if __name__ == "__main__":
    main()
