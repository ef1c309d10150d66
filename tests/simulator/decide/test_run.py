from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.decide.run import draw_order
from hallulab.simulator.records import experiment_fields
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from hallulab.simulator.statistics.mean_sequence import CEILING
from hallulab.simulator.statistics.sequence import MARGIN
from hallulab.testing.scripted import completion
from tests.agents.models.endpoints import refusal
from tests.kit.kill_points import count_differences, journal_lines
from tests.kit.planted_rates import make_planted_script
from tests.simulator.decide.planted_run import count_talks, read_decision, run_planted

CLEAR = {"careful": 0.0, "careless": 2.0}
EQUAL = {"one": 0.0, "other": 0.0}


def test_the_better_of_two_is_found_and_no_persona_more_is_asked(tmp_path: Path) -> None:
    decision = run_planted(tmp_path, CLEAR, {}, personas=16)
    assert (decision["ending"], decision["found"]["best"]) == ("decided", "careful")
    assert count_talks(tmp_path / "run") == {"careful": 12, "careless": 12}
    assert [step["persons"] for step in decision["found"]["steps"]] == [4, 8, 12]


def test_equal_chatbots_are_found_alike(tmp_path: Path) -> None:
    decision = run_planted(tmp_path, EQUAL, {"margin": 1.5})
    assert (decision["ending"], decision["found"]["alike"]) == ("decided", ["one", "other"])


def test_a_budget_of_personas_is_kept_within_a_batch(tmp_path: Path) -> None:
    decision = run_planted(tmp_path, EQUAL, {"budget": "6personas"})
    assert decision["ending"] == "budget"
    assert count_talks(tmp_path / "run") == {"one": 6, "other": 6}
    assert decision["sentence"].endswith(": the budget of 6 personas is spent.")


def test_tokens_are_those_of_the_table_of_costs(tmp_path: Path) -> None:
    decision = run_planted(tmp_path, EQUAL, {"budget": "1000 tokens"}, personas=20)
    assert (decision["ending"], decision["budget"]) == ("budget", "1,000 tokens")
    spent = [
        line["prompt_tokens"] + line["completion_tokens"]
        for line in json.loads((tmp_path / "run" / "report.json").read_text())["ledger"]
        if line["calls"]
    ]
    per_batch = sum(spent) / len(decision["found"]["steps"])
    assert sum(spent) - per_batch < 1000 <= sum(spent)


def test_a_budget_of_tokens_needs_a_server_that_counts_them(tmp_path: Path) -> None:
    planted = make_planted_script(EQUAL)

    def uncounted(body: dict[str, Any]) -> httpx2.Response:
        answer = planted(body)
        assert not isinstance(answer, httpx2.Response)
        return httpx2.Response(200, json=completion(answer) | {"usage": None})

    with pytest.raises(UsageError, match="no server reports how many"):
        run_planted(tmp_path, EQUAL, {"budget": "1000 tokens"}, script=uncounted)


def test_minutes_count_over_all_calls_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100_000, 40))
    monkeypatch.setattr("hallulab.simulator.decide.run.monotonic", lambda: next(clock))
    decision = run_planted(tmp_path, EQUAL, {"budget": "1 minutes"})
    assert (decision["ending"], decision["found"]["persons"]) == ("budget", 8)
    assert run_planted(tmp_path, EQUAL, {"budget": "1 minutes"}) == decision


def test_when_all_personas_have_talked_more_can_be_written(tmp_path: Path) -> None:
    decision = run_planted(tmp_path, EQUAL, {}, personas=5)
    assert decision["ending"] == "personas"
    assert decision["sentence"].endswith(
        "all 5 personas of the experiment are spent, and `hallulab init-scenario --personas` writes more."
    )


def test_seeds_of_a_persona_are_no_further_personas(tmp_path: Path) -> None:
    decision = run_planted(tmp_path, EQUAL, {}, personas=5, repeats=2)
    assert decision["found"]["persons"] == 5
    assert count_talks(tmp_path / "run") == {"one": 10, "other": 10}


def test_a_chatbot_that_only_declines_is_not_called_better(tmp_path: Path) -> None:
    planted = make_planted_script(CLEAR)

    def decline(body: dict[str, Any]) -> str | Mapping[str, float]:
        answer = planted(body)
        assert not isinstance(answer, httpx2.Response)
        return (
            "I cannot find that. Please contact the help desk." if body.get("max_tokens") == 200 else answer
        )

    decision = run_planted(tmp_path, CLEAR, {}, personas=16, script=decline)
    assert (decision["ending"], decision["found"]["best"]) == ("personas", None)
    assert decision["sentence"].endswith(
        " careful hallucinates less than careless, but answers 0.0% of replies against 100.0%: it is not "
        "called better."
    )


THREE = {"careful": 0.0, "same": 0.0, "careless": 2.0}


@pytest.fixture(scope="module", autouse=True)
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three chatbots that came to the end of its budget."""
    folder = tmp_path_factory.mktemp("whole")
    run_planted(folder, THREE, {"budget": "16personas"}, personas=16)
    return folder / "run"


@pytest.fixture
def three(whole: Path, tmp_path: Path) -> RunFolder:
    """A copy of it."""
    return RunFolder(Path(shutil.copytree(whole, tmp_path / "run")))


def test_who_is_clearly_worse_goes_on_no_more(three: RunFolder) -> None:
    assert count_talks(three.path) == {"careful": 16, "same": 16, "careless": 12}
    found = read_decision(three.path)["found"]
    assert [step["worse"] for step in found["steps"]] == [[], [], ["careless"], ["careless"]]
    pairs = {(pair["a"], pair["b"]): pair["persons"] for pair in found["pairs"]}
    assert pairs == {("careful", "same"): 16, ("careful", "careless"): 12, ("same", "careless"): 12}
    assert "careless was clearly worse and did not go on after 12 personas." in three.page.read_text()


def test_who_is_clearly_worse_goes_on_if_all_are_kept(tmp_path: Path) -> None:
    run_planted(tmp_path, THREE, {"budget": "16personas", "keep_all": True}, personas=16)
    assert count_talks(tmp_path / "run") == {"careful": 16, "same": 16, "careless": 16}


def test_what_was_not_scored_is_not_0(tmp_path: Path) -> None:
    planted = make_planted_script(CLEAR)

    def failing(body: dict[str, Any]) -> object:
        answer = planted(body)
        return refusal(400, "too long") if "bravix" in str(answer) else answer

    decision = run_planted(tmp_path, CLEAR, {"budget": "4personas"}, script=failing)  # type: ignore[arg-type]
    assert decision["found"]["scored"] == {"careful": 4, "careless": 0}
    assert (decision["found"]["kind"], decision["found"]["pairs"][0]["difference"]) == ("open", None)
    assert (
        "careless: lexical scored nothing with 4 personas." in (tmp_path / "run" / "report.html").read_text()
    )


def test_a_larger_budget_goes_on_as_if_it_had_been_given_at_once(three: RunFolder, tmp_path: Path) -> None:
    run_planted(tmp_path / "twice", THREE, {"budget": "6personas"}, personas=16)
    run_planted(tmp_path / "twice", THREE, {"budget": "16personas"})
    assert read_decision(tmp_path / "twice" / "run") == read_decision(three.path)
    assert count_differences(tmp_path / "twice" / "run", journal_lines(three.path)) == (0, 0)


def test_a_report_finds_the_decision_anew_in_the_journals(three: RunFolder) -> None:
    decision = read_decision(three.path)
    three.report.unlink()
    write_reports(three)
    assert read_decision(three.path) == decision


def test_a_batch_that_was_cut_off_does_not_count_in_the_report(three: RunFolder) -> None:
    lines = three.verdicts.read_text().splitlines(keepends=True)
    three.verdicts.write_text("".join(lines[:-1]))
    write_reports(three)
    decision = read_decision(three.path)
    assert (decision["ending"], decision["found"]["persons"]) == (None, 12)
    assert "has not ended" in decision["sentence"]


def test_the_command_says_on_top_how_it_ended_and_ranks_by_nothing_else(tmp_path: Path) -> None:
    run_planted(tmp_path, CLEAR, {})
    page = (tmp_path / "run" / "report.html").read_text()
    assert "By lexical: careful hallucinates least: it is better than every other chatbot" in page
    assert "which the paired test" not in page
    assert page.count('<polygon class="band"') == 1


def test_personas_are_drawn_in_an_order_by_the_seed_and_new_ones_come_behind() -> None:
    pool = [str(number) for number in range(9)]
    order = draw_order(pool, [], 1)
    assert sorted(order) == pool != order
    assert draw_order(pool, [], 1) == order != draw_order(pool, [], 2)
    assert draw_order([*pool, "new"], order[:4], 1)[:4] == order[:4]
    assert sorted(draw_order([*pool, "new"], order[:4], 1)) == [*pool, "new"]


def test_margins_are_those_of_the_decision() -> None:
    assert (experiment_fields.DEFAULT_MARGIN, experiment_fields.CEILING) == (MARGIN, CEILING)
