"""Examples in docstrings and in the docs are true."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

from tests.places import ROOT, module_of
from tests.simulator.cli.test_commands import saved_run

MODULES = (
    "hallulab.agents.models.model_names",
    "hallulab.agents.retrieval.word_search",
    "hallulab.agents.users.chats",
    "hallulab.agents.users.questions",
    "hallulab.chatbots.passages",
    "hallulab.detectors.base.judging",
    "hallulab.detectors.trained_judges.detector",
    "hallulab.results",
    "hallulab.scenarios.arguments",
    "hallulab.scenarios.attacks.repeated",
    "hallulab.scenarios.chats.cells",
    "hallulab.scenarios.chats.csv",
    "hallulab.scenarios.chats.evidence",
    "hallulab.scenarios.chats.reading",
    "hallulab.scenarios.chats.row_order",
    "hallulab.scenarios.chats.unknown",
    "hallulab.scenarios.datasets.offsets",
    "hallulab.scenarios.near_names",
    "hallulab.scenarios.packs.goals",
    "hallulab.scenarios.packs.kinds.cell_lines",
    "hallulab.scenarios.packs.kinds.html_marks",
    "hallulab.scenarios.packs.kinds.number_formats",
    "hallulab.scenarios.packs.kinds.spaced_letters",
    "hallulab.scenarios.packs.kinds.table_text",
    "hallulab.scenarios.packs.kinds.word_styles",
    "hallulab.scenarios.packs.pack",
    "hallulab.scenarios.packs.pack_files",
    "hallulab.scenarios.text.abbreviations",
    "hallulab.scenarios.text.declining",
    "hallulab.scenarios.text.framing",
    "hallulab.scenarios.text.lacking",
    "hallulab.scenarios.text.languages",
    "hallulab.scenarios.text.numbers",
    "hallulab.scenarios.text.one_form",
    "hallulab.scenarios.text.citations",
    "hallulab.scenarios.text.page_marks",
    "hallulab.scenarios.text.refusals",
    "hallulab.scenarios.text.scripts",
    "hallulab.scenarios.text.spans",
    "hallulab.scenarios.text.wording",
    "hallulab.scenarios.text.words",
    "hallulab.scenarios.transcript",
    "hallulab.scenarios.turn_views",
    "hallulab.simulator.authoring.personas",
    "hallulab.simulator.authoring.tau_knowledge.layout",
    "hallulab.simulator.authoring.tau_knowledge.third_person",
    "hallulab.simulator.bench.chats",
    "hallulab.simulator.chat.drafts",
    "hallulab.simulator.compare.sentences",
    "hallulab.simulator.decide.run",
    "hallulab.simulator.engine.judging",
    "hallulab.simulator.engine.replies",
    "hallulab.simulator.metrics.decision",
    "hallulab.simulator.metrics.depth",
    "hallulab.simulator.metrics.failures",
    "hallulab.simulator.metrics.findings",
    "hallulab.simulator.metrics.goal_replies",
    "hallulab.simulator.metrics.hallucinations",
    "hallulab.simulator.metrics.messages",
    "hallulab.simulator.metrics.spending",
    "hallulab.simulator.metrics.tokens",
    "hallulab.simulator.rag_trust.meteor",
    "hallulab.simulator.records.experiment",
    "hallulab.simulator.records.experiment_fields",
    "hallulab.simulator.records.experiment_file",
    "hallulab.simulator.records.given_chats",
    "hallulab.simulator.records.journal_files",
    "hallulab.simulator.records.run_files",
    "hallulab.simulator.report.first_screen",
    "hallulab.simulator.show.charts",
    "hallulab.simulator.show.markdown",
    "hallulab.simulator.show.reply_text",
    "hallulab.simulator.statistics.agreement",
    "hallulab.simulator.statistics.detection",
    "hallulab.simulator.statistics.differences",
    "hallulab.simulator.statistics.intervals",
    "hallulab.simulator.statistics.answering",
    "hallulab.simulator.statistics.planning",
    "hallulab.simulator.statistics.mean_sequence",
    "hallulab.simulator.statistics.sequence",
    "hallulab.simulator.statistics.sums",
    "hallulab.simulator.statistics.survival",
    "hallulab.simulator.planting.draws",
    "hallulab.simulator.planting.quotas",
    "hallulab.simulator.report.card",
    "hallulab.simulator.report.cited",
    "hallulab.simulator.report.scores",
    "hallulab.simulator.viewer.conversation_page",
    "hallulab.simulator.viewer.labels",
)
"""The modules with examples."""


@pytest.fixture
def beside_a_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that has `examples` and `tests`, and a small run in `runs/demo`."""
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    verdicts = saved_run(tmp_path / "runs" / "demo").verdicts
    verdicts.write_text(verdicts.read_text().replace('"text":"x"', '"text":"Rs 500"'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str, beside_a_demo: Path) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_no_example_is_left_out() -> None:
    floors = ("scenarios", "agents", "detectors", "chatbots", "simulator", "hallulab")
    with_examples = {
        module_of(path)
        for floor in floors
        for path in (ROOT / floor).rglob("*.py")
        if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert with_examples == set(MODULES)


def blocks(name: str) -> list[str]:
    """The Python blocks of a document."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(r"^```python(?: title=\S+)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_notebook_of_the_first_run(beside_a_demo: Path) -> None:
    """It replays the recorded demo, so its numbers are those of `make replay`."""
    [session] = blocks("docs/tutorial/first-run.md")
    example = doctest.DocTestParser().get_doctest(session, {}, "first-run.md", "first-run.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example) == (0, 5)


@pytest.mark.parametrize(
    "name", ["docs/python.md", "docs/tutorial/documents.md", "docs/tutorial/detector.md"]
)
def test_code_of_the_docs_imports_the_front_door_only(name: str) -> None:
    for block in blocks(name):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                assert node.module in {"hallulab", "hallulab.testing.scripted", "collections.abc"}
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= {"hallulab", "re"}
