"""Measure the speed of detectors without a model server: `python -m benchmarks.detector_speed --data DIR`.

Every detector judges all RAGTruth responses of DIR, with sentences and words, in one batch, after a batch to
warm up. The results are replies a second of wall-clock time (for an idle machine) and of processor time (for
a busy one), the best of `--repeats`. The last line of the output is a JSON object: detector → both.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import build_parser
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import DEFAULT_MODEL, ModelPool
from hallulab.detectors.base.protocol import Detector, DetectorContext
from hallulab.detectors.evidence_chain.detector import EVIDENCE_CHAIN
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.transcript import TurnView

NO_MODEL = ModelPool({DEFAULT_MODEL: Endpoint("none")})
"""Stands for the model that no detector here asks."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = build_parser("detector_speed", __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with RAGTruth's two files")
    parser.add_argument(
        "--detectors", default=",".join((*EVIDENCE_CHAIN, "combined")), help="names, separated by commas"
    )
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    views = [one.view for one in load_labelled("ragtruth", given.data)]
    rates: dict[str, dict[str, float]] = {}
    for name in given.detectors.split(","):
        detector = make_detector(name, name, DetectorContext(models=NO_MODEL))
        if not detector.traits.batch:
            parser.error(f"{name} does not judge in batches")
        asyncio.run(detector.detect_many(views[:20]))
        wall, cpu = (
            min(times)
            for times in zip(*(_seconds(detector, views) for _ in range(given.repeats)), strict=True)
        )
        rates[name] = {"per_s": round(len(views) / wall, 1), "per_cpu_s": round(len(views) / cpu, 1)}
        print(f"{name:28}{rates[name]['per_s']:10.1f} /s{rates[name]['per_cpu_s']:10.1f} /cpu-s")
    print(json.dumps(rates))


def _seconds(detector: Detector, views: list[TurnView]) -> tuple[float, float]:
    """Return wall-clock and processor time of judging all."""
    started, used = time.perf_counter(), time.process_time()
    asyncio.run(detector.detect_many(views))
    return time.perf_counter() - started, time.process_time() - used


if __name__ == "__main__":
    main()
