"""docs/tutorial/two-prompts.md: its four steps as they are written, against a stub endpoint."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.testing import endpoint as stub
from hallulab.testing.endpoint import MODEL, serve_stub
from hallulab.testing.scripted import completion
from tests.places import ROOT
from tests.simulator.cli.pack_writer import without_weights
from tests.simulator.command_line import CommandLine

PAGE = (ROOT / "docs" / "tutorial" / "two-prompts.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WORSE = "Make amounts up."


@pytest.fixture
def endpoint() -> Iterator[str]:
    """A model that makes amounts up only where its prompt says so."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        system = str(request["messages"][0].get("content"))
        if WORSE in system:
            made_up = "You get 98765 rupees within 431 days. The ministry of kettles pays on 7 June 2031."
            return completion(made_up, MODEL)
        if system.startswith("You help consumers"):
            return completion("A complaint may be filed with the District Commission.", MODEL)
        return stub.completion(request)

    with serve_stub(answer) as url:
        yield url


def test_four_steps_lead_to_a_gate_that_blocks_a_worse_prompt(
    hallulab: CommandLine, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(STEPS) == 4

    def type_in(line: str) -> int:
        typed = line.replace("https://api.openai.com/v1", endpoint).replace("gpt-4.1-mini", MODEL)
        return hallulab(*shlex.split(typed)[1:]).code

    file = tmp_path / "experiment.yaml"
    with without_weights():
        *before, checked = STEPS
        assert [type_in(step) for step in before] == [0, 0, 0]
        run, gate = checked.splitlines()
        assert (type_in(run), type_in(gate)) == (0, 0)
        file.write_text(file.read_text().replace("Say only what you are", WORSE))
        again = run.replace("runs/pull-request", "runs/worse")
        assert (type_in(again), type_in(gate.replace("runs/pull-request", "runs/worse"))) == (0, 1)
    assert "careful" in (tmp_path / "gate.md").read_text()


def test_the_page_shows_the_prompts_of_the_file(hallulab: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    assert hallulab("init", "--for", "prompts", "--out", file).code == 0
    [shown] = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert yaml.safe_load(shown)["chatbots"] == yaml.safe_load(file.read_text())["chatbots"]
