"""What a run will take, counted from its plan and an earlier run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.simulator.metrics.costs import CostSection
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report
from hallulab.simulator.report.forecast import PastRun, RunForecast, find_past_run, forecast

PAST = PastRun(
    folder="runs/headline",
    turns={"vanilla": 1.5},
    per_reply={("user", "vanilla"): 2, ("chatbot", "vanilla"): 4, ("detector", "metarag"): 10},
    tokens_per_request=700,
    seconds_per_request=0.5,
)


@pytest.fixture(scope="module")
def pack() -> Scenario:
    return load_without_documents("consumer-grievance-india")


def experiment(**fields: Any) -> Experiment:
    return Experiment.model_validate({"limit": 10, "max_turns": 2, **fields})


def test_requests_are_users_times_turns_times_what_each_part_asks_for_a_reply(pack: Scenario) -> None:
    # 20 replies of each: the user's 1.7 and 2, the user's 1.7 and 3; metarag's 14 for 40.
    found = forecast(experiment(chatbots=["vanilla", "editor"], detectors=["metarag"]), pack)
    assert (found.conversations, found.requests) == (20, 20 * (1.7 + 2) + 20 * (1.7 + 3) + 40 * 14)
    assert found.describe() == "20 conversations, about 730 requests"


def test_without_judges_detectors_ask_nothing(pack: Scenario) -> None:
    assert forecast(experiment(chatbots=["vanilla"]), pack, judge=False).requests == 20 * (1.7 + 2)


def test_a_user_with_a_script_asks_nothing_and_comes_to_its_end(pack: Scenario) -> None:
    first, second = pack.personas[:2]
    scripted = first.model_copy(update={"messages": ("a", "b", "c", "d")})
    own = pack.model_copy(update={"personas": (scripted, second)})
    found = forecast(experiment(chatbots=["vanilla"], detectors=[]), own)
    assert found.requests == 5 * 2 + 2 * (1.7 + 2)


def test_an_earlier_run_has_the_turns_the_requests_the_tokens_and_the_rate(pack: Scenario) -> None:
    found = forecast(experiment(chatbots=["vanilla"], detectors=["metarag"]), pack, earlier=PAST)
    assert found == RunForecast(
        conversations=10,
        requests=15 * (2 + 4 + 10),
        tokens=15 * 16 * 700,
        seconds=15 * 16 * 0.5,
        earlier="runs/headline",
    )
    assert found.describe() == (
        "10 conversations, about 240 requests, 170,000 tokens; about 2 minutes at the rate of runs/headline"
    )


def test_what_is_not_known_beforehand_is_named_and_tokens_are_left_out(pack: Scenario) -> None:
    chosen = experiment(chatbots=["vanilla"], detectors=["self-check", "lexical"])
    assert forecast(chosen, pack, earlier=PAST).describe() == (
        "10 conversations, at least 90 requests (those of self-check are not known beforehand)"
    )


def test_until_it_is_decided_the_numbers_are_the_most(pack: Scenario) -> None:
    chosen = experiment(chatbots=["vanilla", "editor"], detectors=["metarag"], until_decided={}, limit=1)
    assert forecast(chosen, pack).describe() == "at most 2 conversations, about 73 requests"


@pytest.mark.parametrize(
    ("requests", "tokens", "seconds", "sentence"),
    [
        (1.2, 10, 59, "about 1 request, 10 tokens; under a minute"),
        (1896, 1_234_567, 1500, "about 1,900 requests, 1.2 million tokens; about 25 minutes"),
        (57_400, 37_600_000, 61_000, "about 57,000 requests, 38 million tokens; about 17 hours"),
    ],
)
def test_numbers_have_two_digits(requests: float, tokens: float, seconds: float, sentence: str) -> None:
    found = RunForecast(conversations=1, requests=requests, tokens=tokens, seconds=seconds, earlier="runs/a")
    assert found.describe() == f"1 conversation, {sentence} at the rate of runs/a"


def test_without_a_rate_the_time_is_left_out() -> None:
    found = RunForecast(conversations=1, requests=9, tokens=99, earlier="runs/a")
    assert found.describe() == "1 conversation, about 9 requests, 99 tokens as in runs/a"


def test_the_rates_of_an_earlier_run_are_those_of_its_report(demo_replay: RunFolder) -> None:
    saved = demo_replay.read_experiment()
    assert saved is not None
    past = find_past_run(saved.experiment, [demo_replay.path])
    assert past is not None
    ledger = read_report(demo_replay.report).of(CostSection).ledger
    calls = sum(line.calls for line in ledger)
    assert past.turns == dict.fromkeys(("vanilla", "prompt-engineered", "editor", "fact-checker", "agent"), 2)
    assert past.per_reply["chatbot", "editor"] == 3
    assert past.per_reply["user", "editor"] == 2
    assert past.tokens_per_request == pytest.approx(
        sum((line.prompt_tokens or 0) + (line.completion_tokens or 0) for line in ledger) / calls
    )
    assert past.seconds_per_request is None, "a recording answered, whose seconds are another machine"
    again = forecast(saved.experiment, load_without_documents(saved.experiment.scenario), earlier=past)
    assert again.requests == pytest.approx(calls)


def test_the_rate_of_a_run_is_its_seconds_over_those_that_were_at_once(
    demo_replay: RunFolder, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path)
    (tmp_path / "experiment.json").write_bytes((demo_replay.path / "experiment.json").read_bytes())
    made = json.loads(demo_replay.report.read_text())
    for line in made["ledger"]:
        line["replayed"] = 0
    run.report.write_text(json.dumps(made))
    saved = run.read_experiment()
    assert saved is not None
    past = find_past_run(saved.experiment, [tmp_path])
    assert past is not None
    # 16 may be at once, and ten conversations ask one after the other.
    assert past.seconds_per_request == pytest.approx(
        sum(line["seconds"] for line in made["ledger"]) / sum(line["calls"] for line in made["ledger"]) / 10
    )


def test_the_requests_known_beforehand_are_near_those_of_a_recorded_run(demo_replay: RunFolder) -> None:
    saved = demo_replay.read_experiment()
    assert saved is not None
    calls = sum(line.calls for line in read_report(demo_replay.report).of(CostSection).ledger)
    found = forecast(saved.experiment, load_without_documents(saved.experiment.scenario))
    assert found.requests == pytest.approx(calls, rel=0.4)  # its replies state fewer facts than most


def test_a_run_with_another_model_and_a_damaged_one_are_passed_over(
    demo_replay: RunFolder, tmp_path: Path
) -> None:
    saved = demo_replay.read_experiment()
    assert saved is not None
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "report.json").write_text("{")
    (damaged / "experiment.json").write_bytes((demo_replay.path / "experiment.json").read_bytes())
    newest = 2 * demo_replay.report.stat().st_mtime
    os.utime(damaged / "report.json", (newest, newest))
    folders = [damaged, demo_replay.path, tmp_path / "none"]
    past = find_past_run(saved.experiment, folders)
    assert past is not None
    assert past.folder == str(demo_replay.path)
    other = saved.experiment.model_copy(update={"model": "another"})
    assert find_past_run(other, folders) is None


def test_other_limits_have_other_turns(demo_replay: RunFolder) -> None:
    saved = demo_replay.read_experiment()
    assert saved is not None
    longer = saved.experiment.model_copy(update={"max_turns": 4})
    past = find_past_run(longer, [demo_replay.path])
    assert past is not None
    assert past.turns == {}
