"""Runs on several endpoints that serve one model."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.engine.command import load_saved_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.kit.faulty_endpoint import FaultyEndpoint, faulty_endpoint
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.command_line import CommandLine, Ended


def run(hallulab: CommandLine, folder: Path, *urls: str, users: int) -> Ended:
    if not (folder / "pack").exists():
        make_pack(folder / "pack")
    several = [part for url in urls for part in ("--base-url", url)]
    flags = ("--scenario", folder / "pack", "--model", "stub", "--chatbots", "vanilla", "--max-turns", "2")
    with words_for_vectors():
        return hallulab(
            *("run", *flags, *several, "--detectors", "lexical", "--count", str(users)),
            *("--out", folder / "run", "-q"),
        )


def healthy(endpoints: list[FaultyEndpoint]) -> list[int]:
    return [endpoint.given["healthy"] for endpoint in endpoints]


def test_calls_are_spread_evenly_over_four_endpoints(hallulab: CommandLine, tmp_path: Path) -> None:
    with ExitStack() as stack:
        endpoints = [stack.enter_context(faulty_endpoint(0.0)) for _ in range(4)]
        for endpoint in endpoints:
            endpoint.pause_s = 0.05  # most of what a call takes, so that a busy machine does not decide
        ended = run(hallulab, tmp_path, *(endpoint.url for endpoint in endpoints), users=48)
    calls = healthy(endpoints)
    assert ended.code == 0
    assert max(calls) <= 1.2 * sum(calls) / 4
    assert min(calls) >= 0.8 * sum(calls) / 4
    told = re.findall(r"(http://\S+) answered (\d+) requests\.", ended.out)
    assert [(url, int(number)) for url, number in told] == [
        (endpoint.url, number) for endpoint, number in zip(endpoints, calls, strict=True)
    ]


def test_an_endpoint_that_fails_costs_no_conversation(hallulab: CommandLine, tmp_path: Path) -> None:
    with faulty_endpoint(0.0) as sound, faulty_endpoint(1.0, ["500"]) as broken:
        ended = run(hallulab, tmp_path, sound.url, broken.url, users=12)
    held = RunFolder(tmp_path / "run").read_conversations()
    assert ended.code == 0
    assert (len(held), [one.error for one in held if one.error]) == (12, [])
    assert f"{broken.url} answered 0 requests, and failed " in ended.out


def test_the_report_adds_what_endpoints_did_in_every_run(hallulab: CommandLine, tmp_path: Path) -> None:
    with faulty_endpoint(0.0) as one, faulty_endpoint(0.0) as other:
        run(hallulab, tmp_path, one.url, other.url, users=2)
        run(hallulab, tmp_path, one.url, other.url, users=4)
    done = read_report(tmp_path / "run" / "report.json").endpoints
    assert [(did.base_url, did.answered) for did in done] == [
        (endpoint.url, endpoint.given["healthy"]) for endpoint in (one, other)
    ]


EIGHT = "http://127.0.0.1:8/v1"
NINE = "http://127.0.0.1:9/v1"


def test_one_of_four_that_dies_in_mid_run_costs_nothing_and_is_used_again(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It wakes while the run goes on, however fast that is.
    monkeypatch.setattr("hallulab.agents.models.replicas.FIRST_COOLDOWN_S", 0.05)
    with ExitStack() as stack:
        endpoints = [stack.enter_context(faulty_endpoint(0.0, ["500"])) for _ in range(4)]
        for endpoint in endpoints:
            endpoint.pause_s = 0.02
        dying, before = endpoints[2], []
        dying.most = 2

        def live() -> None:
            while dying.given["healthy"] < 10:
                time.sleep(0.001)
            dying.share = 1.0
            while dying.given["500"] < 2:
                time.sleep(0.001)
            before.append(dying.given["healthy"])

        life = threading.Thread(target=live)
        life.start()
        ended = run(hallulab, tmp_path, *(endpoint.url for endpoint in endpoints), users=100)
        life.join()
    held = RunFolder(tmp_path / "run").read_conversations()
    assert ended.code == 0
    assert (len(held), [one.error for one in held if one.error]) == (100, [])
    assert dying.given["healthy"] > before[0]
    answered = sum(map(int, re.findall(r"answered (\d+) requests", ended.out)))
    assert answered == sum(healthy(endpoints))


@pytest.mark.parametrize(
    ("urls", "told"),
    [
        ((NINE, NINE), f"field `base_urls`: {NINE} stands twice"),
        ((NINE, f"{NINE}/"), f"field `base_urls`: {NINE}/ stands twice"),
        ((NINE, "https://far.example/v1"), "some of `base_urls` are on this machine and need no key"),
        ((NINE, "nowhere"), "field `base_urls.1`: 'nowhere' is no address"),
    ],
)
def test_wrong_addresses_are_one_sentence(
    hallulab: CommandLine, tmp_path: Path, urls: tuple[str, ...], told: str
) -> None:
    ended = run(hallulab, tmp_path, *urls, users=1)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert told in ended.err


def test_a_flag_takes_the_place_of_the_files_addresses(hallulab: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("model: stub\nbase_urls: [http://127.0.0.1:8/v1, http://127.0.0.1:9/v1]\n")
    with faulty_endpoint(0.0) as endpoint:
        make_pack(tmp_path / "pack")
        flags = ("--scenario", tmp_path / "pack", "--base-url", endpoint.url, "--chatbots", "vanilla")
        with words_for_vectors():
            ended = hallulab(
                "run", "-c", file, *flags, "--detectors", "lexical", "--out", tmp_path / "run", "-q"
            )
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("saved", "flag", "expected"),
    [
        ({"base_urls": []}, {"base_url": NINE}, (NINE, ())),
        ({"base_url": NINE}, {"base_urls": [EIGHT, NINE]}, (EIGHT, (EIGHT, NINE))),
        ({"base_urls": [EIGHT, NINE]}, {"base_url": NINE}, (NINE, ())),
        ({"base_url": NINE, "base_urls": []}, {}, (NINE, ())),
        ({"base_url": EIGHT, "base_urls": [EIGHT, NINE]}, {}, (EIGHT, (EIGHT, NINE))),
    ],
)
def test_a_flag_takes_the_place_of_a_saved_runs_addresses(
    tmp_path: Path, saved: dict[str, Any], flag: dict[str, Any], expected: tuple[str | None, tuple[str, ...]]
) -> None:
    folder = saved_run(tmp_path / "run")
    whole = json.loads(folder.experiment.read_text())
    whole["experiment"] |= saved
    folder.experiment.write_text(json.dumps(whole))
    experiment, _ = load_saved_experiment(folder, None, flag)
    assert (experiment.base_url, experiment.base_urls) == expected
