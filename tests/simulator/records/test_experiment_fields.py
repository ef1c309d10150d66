from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_fields import Budget, UntilDecided
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.testing.tiny_pack import flags, make_pack
from tests.simulator.command_line import CodeAndError


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("40personas", Budget(amount=40, unit="personas")),
        ("40 personas", Budget(amount=40, unit="personas")),
        ("200000tokens", Budget(amount=200_000, unit="tokens")),
        ("30 minutes", Budget(amount=30, unit="minutes")),
    ],
)
def test_a_budget_is_a_number_with_its_unit(text: str, budget: Budget) -> None:
    until = UntilDecided.model_validate({"budget": text})
    assert until.budget == budget
    assert UntilDecided.model_validate(until.model_dump(mode="json")) == until


@pytest.mark.parametrize("text", ["40", "personas", "0personas", "1.5minutes", "-3tokens", "3 hours", "4p"])
def test_what_has_no_number_or_unit_is_no_budget(text: str) -> None:
    with pytest.raises(ValidationError, match="such as 40personas, 200000tokens or 30minutes"):
        UntilDecided.model_validate({"budget": text})


@pytest.mark.parametrize(
    ("fields", "until"),
    [
        ({}, None),
        ({"until_decided": True}, UntilDecided()),
        ({"until_decided": False}, None),
        ({"until_decided": {"margin": 0.5}}, UntilDecided(margin=0.5)),
    ],
)
def test_true_is_all_defaults(fields: dict[str, object], until: UntilDecided | None) -> None:
    assert Experiment.model_validate(fields).until_decided == until


def test_flags_leave_the_other_fields_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("until_decided: {margin: 0.4, budget: 8 personas}\n")
    found = load_experiment(file, {"until_decided": {"budget": "9 personas"}}).until_decided
    assert found == UntilDecided(margin=0.4, budget=Budget(amount=9, unit="personas"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--until-decided", "--budget", "40"], "field `until_decided.budget`: must be a whole number"),
        (["--until-decided", "--margin", "0"], "field `until_decided.margin`"),
        (["--until-decided", "--margin", "3"], "field `until_decided.margin`"),
        (["--until-decided", "--chatbots", "vanilla"], "`until_decided` tells chatbots apart"),
        (["--until-decided", "--count", "4"], "`until_decided` and `count` exclude each other"),
        (["--until-decided", "--detectors", ""], "`until_decided` needs a detector"),
        (["--until-decided", "--batch", "api"], "--batch asks for all conversations at once"),
        (["--margin", "0.3"], "--margin says how --until-decided goes on. Give --until-decided, too."),
        (["--keep-all"], "--keep-all says how --until-decided goes on."),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_asked(
    tmp_path: Path, code_and_error: CodeAndError, more: list[str], said: str
) -> None:
    pack = make_pack(tmp_path / "pack")
    command = flags(pack, "--out", tmp_path / "run", "--chatbots", "vanilla,editor", *more)
    code, error = code_and_error(*command)
    assert (code, said in error) == (2, True), error
    assert not (tmp_path / "run").exists()


def test_what_is_only_simulated_is_not_decided(tmp_path: Path, code_and_error: CodeAndError) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(f"until_decided: true\nscenario: {make_pack(tmp_path / 'pack')}\n")
    code, error = code_and_error("run", "--no-judge", "-c", file, "--out", tmp_path / "run")
    assert (code, "needs verdicts while conversations run" in error) == (2, True)


def test_a_mistake_in_the_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("seed: 1\nuntil_decided:\n  budget: 12 hours\n")
    with pytest.raises(UsageError, match=r"experiment\.yaml, line 3: until_decided\.budget: must be"):
        load_experiment(file, {})
