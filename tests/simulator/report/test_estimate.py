"""What a whole experiment would cost, told from the personas that were played."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.simulator.metrics.costs import CostSection
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_fields import Price
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report
from hallulab.simulator.report.estimate import CostEstimate, Range, build_range, estimate, print_estimate
from hallulab.testing.tiny_pack import flags, make_pack, words_for_vectors
from tests.simulator.command_line import CommandLine
from tests.simulator.limited_endpoint import ignoring, limited_endpoint

MODEL = "qwen2.5-coder-1.5b"


def estimated(run: RunFolder, **fields: object) -> CostEstimate:
    experiment = Experiment.model_validate({"limit": 13, **fields})
    return estimate(run, experiment, load_without_documents(experiment.scenario))


def printed(run: RunFolder, **fields: object) -> str:
    out = io.StringIO()
    print_estimate(estimated(run, **fields), run, Console(file=out, width=200, color_system=None))
    return out.getvalue()


def test_a_number_is_that_of_the_mean_persona_and_its_range_that_of_the_extremes() -> None:
    assert build_range([10, 30], 5) == Range(expected=100, low=50, high=150)


@pytest.mark.parametrize("numbers", [[10, None], []])
def test_of_unknown_numbers_nothing_is_expected(numbers: list[float | None]) -> None:
    assert build_range(numbers, 5) is None


def test_all_users_are_expected_to_cost_what_the_two_did_on_average(demo_replay: RunFolder) -> None:
    found = estimated(demo_replay)
    assert (found.users, found.played, found.priced) == (13, 2, False)
    costs = read_report(demo_replay.report).of(CostSection).ledger
    by_role = {(one.role, one.name): one for one in found.roles}
    for line in costs:
        role = by_role[line.role, line.name]
        assert role.calls.expected == line.calls * 13 / 2
        assert role.prompt_tokens is not None
        assert role.prompt_tokens.expected == (line.prompt_tokens or 0) * 13 / 2
        assert role.prompt_tokens.low <= role.prompt_tokens.expected <= role.prompt_tokens.high
    assert [(one.role, one.name) for one in found.roles] == [
        *sorted(by_role.keys() - {("all", "")}),
        ("all", ""),
    ]


def test_money_follows_from_prices(demo_replay: RunFolder) -> None:
    price = Price(input=1_000_000, output=0, cached=1_000_000)
    [*_, every] = estimated(demo_replay, prices={MODEL: price}).roles
    assert every.money is not None
    assert every.prompt_tokens is not None
    assert every.money.expected == every.prompt_tokens.expected


def test_a_model_without_a_price_makes_money_unknown(demo_replay: RunFolder) -> None:
    shown = printed(demo_replay, prices={"another": {"input": 1, "output": 1}})
    assert "unknown" in shown
    assert "Money is unknown" not in shown


def test_without_prices_money_is_said_to_be_unknown(demo_replay: RunFolder) -> None:
    shown = printed(demo_replay)
    assert shown.startswith("13 users with 5 chatbots each, estimated from 2 personas:\n")
    assert "Money is unknown: the experiment has no `prices` (docs/experiment.md)." in shown
    assert "goes on from there" in shown


def test_the_command_plays_two_personas_of_more_and_another_run_goes_on_from_there(
    tmp_path: Path, hallulab: CommandLine
) -> None:
    """It takes some seconds, for it protects the whole way of the flag."""
    pack, out = make_pack(tmp_path / "pack"), tmp_path / "out"
    people = "".join(
        f"  - {{id: {name}, name: Ann, grievance: Cold., goals: [Tea], manner: Brief., summary: Tea.}}\n"
        for name in ("ann", "ben", "cleo")
    )
    (pack / "personas.yaml").write_text(f"personas:\n{people}")
    with words_for_vectors(), limited_endpoint(ignoring()) as url:
        asked = flags(pack, "--model", "stub", "--out", out, "--repeats", "2", url=url, detectors="lexical")
        assert hallulab(*asked, "--estimate").out.startswith(
            "6 users with 1 chatbot each, estimated from 2 personas:"
        )
        assert {one.persona for one in RunFolder(out).read_conversations()} == {"ann", "ben"}
        told = json.loads(hallulab(*asked, "--estimate", "--json").out)
        assert (told["users"], told["played"], told["roles"][-1]["role"]) == (6, 2, "all")
        assert hallulab(*asked).code == 0
    held = RunFolder(out).read_conversations()
    assert sorted((one.persona, one.seed) for one in held) == [
        (name, seed) for name in ("ann", "ben", "cleo") for seed in (0, 1)
    ]


def test_without_prices_it_is_said_once_that_money_is_unknown(demo_replay: RunFolder) -> None:
    assert printed(demo_replay).count("Money is unknown") == 1
