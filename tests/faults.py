"""Show that nothing is lost where everything fails: `python -m tests.faults [--kills N] [--repeats N]`.

1. The five chatbots meet the detectors at an endpoint that fails 30% of its requests, in every way that
   servers fail (`tests/kit/faulty_endpoint.py`). The run is compared with one at the same endpoint in
   good health: every failure has a reason in the journals, none counts as clean, and what was scored was
   scored alike. Then the endpoint gets well, and the same command makes the run whole.
2. A recorded run is killed at random points and resumed (`tests/kit/kill_points.py`).

The last line of the output is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hallulab.agents.models.redaction import Redaction
from tests.kit import forked_runs
from tests.kit.faulty_endpoint import FaultyEndpoint, faulty_endpoint
from tests.kit.kill_points import kill_and_resume
from tests.kit.recorded_run import KEY, make_workspace, record_run
from tests.same_results import differences, results_of

DETECTORS = "halludetect,metarag,lexical,direct-judge,self-check,evidence-chain-lexical"
"""Ours that need no weights of their own; the last but one asks for samples, the last asks no model."""

TIMEOUT_S = 1.0


def at_faulty_endpoint(folder: Path, repeats: int, share: float = 0.3) -> dict[str, Any]:
    """Compare a run at a faulty endpoint with one at a healthy endpoint, and return what was found.

    Args:
        folder: with the pack.
        repeats: conversations of each chatbot.
        share: of the requests that fail.
    """
    with faulty_endpoint(0.0) as endpoint:
        _run(folder, "whole", endpoint, repeats)
        endpoint.share = share
        endpoint.given.clear()
        said = _run(folder, "faulty", endpoint, repeats)
        given = dict(endpoint.given)
        found = compared(folder / "faulty", folder / "whole", repeats)
        endpoint.share = 0.0
        _run(folder, "faulty", endpoint, repeats)
    for fault, number in sorted(given.items()):
        print(f"{number:6,} requests: {fault}")
    whole, mended = (results_of(folder / name) for name in ("whole", "faulty"))
    journals = ("conversations", "verdicts")
    return {
        **found,
        "different_after_resuming": sum(len([*differences(whole[one], mended[one])]) for one in journals),
        "files_with_the_key": _with_key(folder, said),
    }


def _run(folder: Path, name: str, endpoint: FaultyEndpoint, repeats: int) -> str:
    """Run into the folder of that name, with a recording beside it; return what was printed."""
    command = (
        *(
            "run",
            "--scenario",
            str(folder / "pack"),
            "--model",
            "stub",
            "--base-url",
            endpoint.url,
            "--quiet",
        ),
        *("--api-key-env", "CANARY_KEY", "--timeout", str(TIMEOUT_S), "--detectors", DETECTORS),
        *("--min-turns", "2", "--max-turns", "2", "--manners", "plain", "--repeats", str(repeats)),
        *("--record", str(folder / f"{name}.jsonl")),
    )
    said = forked_runs.run_here(command, folder / name)
    if said.code != 0:
        raise SystemExit(f"the run {name} ended with code {said.code}: {said.err}")
    return said.out + said.err


def compared(faulty: Path, whole: Path, repeats: int) -> dict[str, int]:
    """Count what a run with failures says of them, and how it differs from one without.

    Verdicts are only compared with those of the same turn of the same conversation.
    """
    before, after = results_of(whole), results_of(faulty)
    verdicts = after["verdicts"]
    detectors = DETECTORS.split(",")
    places = [
        f"{name}/{turn['index']}/{detector}"
        for name, held in after["conversations"].items()
        for turn in held["turns"]
        for detector in detectors
    ]
    stopped = [one for one in after["conversations"].values() if one["stop_reason"] == "error"]
    failed = [one for one in verdicts.values() if one["outcome"] == "failed"]
    scored = {name: one for name, one in verdicts.items() if one["outcome"] == "scored"}
    return {
        "failed": len(stopped) + len(failed),
        "failed_conversations": len(stopped),
        "failed_verdicts": len(failed),
        "scored_verdicts": len(scored),
        "without_record": 5 * repeats - len(after["conversations"]) + len(set(places) ^ verdicts.keys()),
        "without_reason": sum(not one["error"] for one in stopped + failed),
        "counted_clean": sum(one["flagged"] is not None or one["score"] is not None for one in failed)
        + sum(_counted_clean(row, after) for row in after["report"]["rows"]),
        "different_verdicts": sum(
            bool([*differences(before["verdicts"].get(name), one)]) for name, one in scored.items()
        ),
    }


_UNJUDGED = {"outcome": "none", "spans": None}


def _counted_clean(row: dict[str, Any], results: dict[str, Any]) -> int:
    """Return how many of a row's turns are counted as scored although they were not."""
    turns = [
        results["verdicts"].get(f"{name}/{turn['index']}/{row['detector']}", _UNJUDGED)
        for name, held in results["conversations"].items()
        if name.split("/")[1] == row["chatbot"]
        for turn in held["turns"]
    ]
    scored = len([one for one in turns if one["outcome"] == "scored" and one["spans"] is not None])
    coverage = scored / len(turns) if turns else None
    told = row["coverage"]
    extra = int(row["scored_turns"]) - scored
    if (told is None) != (coverage is None) or abs((told or 0.0) - (coverage or 0.0)) > 1e-6:
        return max(1, extra)
    return max(0, extra)


def _with_key(folder: Path, said: str) -> int:
    find = Redaction([KEY])
    texts = [path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()]
    return sum(find.finds(text) or KEY[:-4] in text for text in [*texts, said])


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=300, help="how often the run is killed")
    parser.add_argument("--repeats", type=int, default=8, help="conversations of each chatbot, with faults")
    options = parser.parse_args()
    started = time.perf_counter()
    with make_workspace() as folder:
        found = at_faulty_endpoint(folder, options.repeats)
        points = kill_and_resume(record_run(folder), folder / "killed", options.kills, os.cpu_count() or 1)
        found.update(asdict(points))
    print(json.dumps({**found, "seconds": round(time.perf_counter() - started)}))


if __name__ == "__main__":
    main()
