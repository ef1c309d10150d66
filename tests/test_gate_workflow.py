"""The GitHub Actions example: valid, least permissions, pinned, and its commands can be given."""

from __future__ import annotations

import re
import shlex
from typing import Any

import typer
import yaml

from hallulab.simulator.cli.main import app
from tests.places import ROOT

TEXT = (ROOT / "examples" / "gate-workflow.yml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["gate"]["steps"]


def test_the_page_shows_the_file() -> None:
    [shown] = re.findall(
        r"^```yml\n(.*?)^```$", (ROOT / "docs/gate.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert shown == TEXT


def test_it_runs_on_pull_requests_and_may_comment_only() -> None:
    # YAML 1.1 reads the key `on` as true. `pull_request_target` would give strangers' code a writing token.
    assert WORKFLOW[True] == "pull_request"
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}


def test_actions_are_githubs_own_and_pinned_to_a_release() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert [one for one in used if not re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", one)] == []


def test_its_commands_can_be_given_and_ask_no_model() -> None:
    commands = [step["run"] for step in STEPS if step.get("run", "").startswith("hallulab ")]
    group: Any = typer.main.get_command(app)
    for line in commands:
        _, name, *words = shlex.split(line)
        group.commands[name].make_context(name, words)
    assert [shlex.split(line)[1] for line in commands] == ["run", "gate"]
    assert "--replay" in commands[0]


def test_no_expression_stands_in_a_script() -> None:
    """A branch may be called `$(curl …)`: what the event says reaches a shell in variables alone."""
    assert [step["run"] for step in STEPS if "${{" in step.get("run", "")] == []


def test_the_answer_is_kept_where_the_gate_failed() -> None:
    told = [step for step in STEPS if "gate." in str(step) and not step.get("run", "").startswith("hallulab")]
    assert len(told) == 3
    assert all(step["if"].startswith("${{ !cancelled()") for step in told)
