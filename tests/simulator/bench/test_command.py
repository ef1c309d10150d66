"""Workers that judge labelled replies find what one process finds, also where one dies."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.bench.command import run_bench
from hallulab.simulator.bench.results import BenchReport
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.options.commands import BenchOptions
from hallulab.testing.endpoint import MODEL, completion, serve_stub
from tests.simulator.engine.dying_workers import die_in
from tests.simulator.engine.worker_places import PLACES, WorkerPlace, open_place, read_keys

TIMES = {"seconds", "cold_s", "p50_ms", "p50_ms_sd", "p95_ms", "memory_mb", "pareto"}
"""Fields that hold what clock and memory said, or follow from it."""
SWEEP = "detector: direct-judge\ngrid: {sentences: [false, true]}\nrepeats: 2\n"


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[WorkerPlace]:
    with open_place(request.param) as place:
        yield place


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve labelled replies, of which the first and the last are alike, and a sweep."""
    folder = tmp_path_factory.mktemp("bench")
    lines = [
        {"reply": f"It costs {number % 11} rupees. Go.", "passages": ["It costs 3 rupees."], "label": bad}
        for number, bad in enumerate([True, False] * 6)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "sweep.yaml").write_text(SWEEP)
    return folder


def judge(
    folder: Path, place: WorkerPlace | None, prepare: partial[None] | None, **fields: Any
) -> BenchReport:
    """Have the replies judged by two workers, or here, and return the report."""
    options = BenchOptions(str(folder / "data.jsonl"), quiet=True, **fields)
    if place is not None:
        options = replace(options, workers=2, ray=place.ray)
    with pytest.MonkeyPatch.context() as patched:
        settings = replace(RunSettings.from_options(options), prepare_worker=prepare)
        patched.setattr(RunSettings, "from_options", lambda _: settings)
        return asyncio.run(run_bench(options)).report


@pytest.fixture(scope="module")
def swept(place: WorkerPlace, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The sweep's numbers by two workers of which one dies, and by this process from their recording."""
    made = tmp_path_factory.mktemp("made")
    recording, died = made / "recording.jsonl", made / "died"
    fields = {"sweep": str(folder / "sweep.yaml"), "model": MODEL, "concurrency": 2}
    with serve_stub(doubting_less_and_less()) as url:
        prepare = partial(die_in, "engine.replies.run_detector", died)
        by_two = judge(folder, place, prepare, base_url=url, record=recording, **fields)
        assert died.exists()
        here = judge(folder, None, None, base_url=url, replay=recording, **fields)
    keys = read_keys(recording)
    return [without_times(by_two.model_dump()), without_times(here.model_dump()), keys]


def doubting_less_and_less() -> Any:
    """An endpoint that never gives one answer twice, also to one question."""
    asked = itertools.count(2)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        body = completion(request)
        for token in body["choices"][0].get("logprobs", {}).get("content", ()):
            no = 0.7 / next(asked)
            chances = {"Yes": 0.7 - no, "No": no}
            for one in token["top_logprobs"]:
                if one["token"] in chances:
                    one["logprob"] = math.log(chances[one["token"]])
        return body

    return answer


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_times(one) for name, one in value.items() if name not in TIMES | {"replayed_calls"}
        }
    return [without_times(one) for one in value] if isinstance(value, list | tuple) else value


def test_two_workers_of_which_one_dies_find_what_one_process_finds(swept: list[Any]) -> None:
    by_two, here, _ = swept
    assert by_two == here
    assert [row["detector"] for row in by_two["rows"] if row["level"] == "response"][2:] == [
        "lexical",
        "direct-judge-1",
        "direct-judge-2",
    ]


def test_the_first_answer_to_a_question_counts_for_all_workers(swept: list[Any]) -> None:
    keys = swept[2]
    # Eleven replies and their two sentences, of which one is the same in all, with two seeds.
    assert len(keys) == len(set(keys)) > 40


@pytest.fixture(scope="module")
def killing(place: WorkerPlace, folder: Path) -> BenchReport:
    """What workers find that a reply kills."""
    prepare = partial(die_in, "engine.replies.run_detector", only="It costs 7 rupees")
    return judge(folder, place, prepare, detectors=["lexical"])


@pytest.mark.slow
def test_a_reply_that_kills_every_worker_is_a_failed_one(place: WorkerPlace, killing: BenchReport) -> None:
    [row] = [row for row in killing.rows if row.detector == "lexical" and row.level == "response"]
    assert [(one.outcome, one.reason, one.n) for one in row.reasons] == [
        ("failed", f"{place.died}, and so did the next one", 1)
    ]
