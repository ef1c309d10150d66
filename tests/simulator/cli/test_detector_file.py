"""A detector in one file, named as `module:Class`: no packaging, no entry point."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hallulab import UsageError
from hallulab.scenarios.components import import_code
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.offer import Offer
from tests.simulator.command_line import CommandLine

SOURCE = r"""
import pathlib
import re

from hallulab import Detector, Judgement, Span, Traits

pathlib.Path("imported").touch()


class EveryNumber(Detector):
    threshold = 0.5
    traits = Traits(needs_model=False)

    def __init__(self, name, context):
        self.name, self.version = name, "1"

    async def detect(self, view):
        spans = [
            Span(start=m.start(), end=m.end(), text=m[0], reason="a number")
            for m in re.finditer(r"\d+", view.reply)
        ]
        return Judgement(outcome="scored", score=float(bool(spans)), flagged=bool(spans), spans=tuple(spans))
"""
ROWS = [
    {"question": "The fee?", "answer": "It is 500.", "contexts": ["The fee is 200."]},
    {"question": "Who?", "answer": "The clerk.", "contexts": ["The clerk."]},
]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The working directory has a file with a detector; gives its module's name, of this test only."""
    name = f"numbers_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


@pytest.fixture
def run(module: str, hallulab: CommandLine) -> RunFolder:
    """A run folder of two chats in the working directory."""
    Path("rows.json").write_text(json.dumps(ROWS))
    assert hallulab("import", "rows.json", "--out", "run").code == 0
    return RunFolder(Path("run"))


def list_flags(run: RunFolder, detector: str) -> list[bool | None]:
    return [one.flagged for one in run.read_journals().verdicts if one.detector == detector]


def test_a_flag_names_the_file(module: str, run: RunFolder, hallulab: CommandLine) -> None:
    assert hallulab("detect", "run", "--detectors", f"{module}:EveryNumber").code == 0
    assert list_flags(run, "EveryNumber") == [True, False]


def test_an_experiment_file_names_it_and_its_name(module: str, run: RunFolder, hallulab: CommandLine) -> None:
    Path("mine.yaml").write_text(f"detectors: [{{name: mine, kind: '{module}:EveryNumber'}}]\n")
    assert hallulab("detect", "run", "-c", "mine.yaml").code == 0
    assert list_flags(run, "mine") == [True, False]


def test_it_is_measured(module: str, hallulab: CommandLine) -> None:
    replies = [{"id": str(number), "label": not number, **row} for number, row in enumerate(ROWS)]
    lines = [{"passages" if key == "contexts" else key: one for key, one in row.items()} for row in replies]
    Path("labelled.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    told = hallulab("bench", "labelled.jsonl", "--detectors", f"{module}:EveryNumber", "--json", "b.json")
    assert told.code == 0, told.err
    rows = json.loads(Path("b.json").read_text())["rows"]
    assert [row["auroc"] for row in rows if row["detector"] == "EveryNumber"][:1] == [1.0]


def test_a_run_folder_alone_does_not_start_it(module: str, run: RunFolder, hallulab: CommandLine) -> None:
    saved = json.loads(run.experiment.read_text())
    saved["experiment"]["detectors"] = [{"name": "m", "kind": f"{module}:EveryNumber", "options": {}}]
    run.experiment.write_text(json.dumps(saved))
    code, said = hallulab.code_and_error("detect", "run")
    assert (code, said) == (
        2,
        f"error: run: its detector 'm' is other people's code ({module}:EveryNumber), which a run folder "
        "alone does not start. Name the detectors that judge with --detectors.\n",
    )
    Path("run/view-experiment.yaml").write_text(f"detectors: ['{module}:EveryNumber']\n")
    for command in (["detect", "run"], ["judge", "rows.json"], ["run", "--out", "new"]):
        code, said = hallulab.code_and_error(*command, "-c", "run/view-experiment.yaml")
        assert (code, "is other people's code" in said) == (2, True)
    assert not Path("imported").exists()


def test_a_file_in_a_run_folder_does_not_start_a_chatbot(run: RunFolder, hallulab: CommandLine) -> None:
    bot = "{name: b, kind: callable, options: {target: 'tests.kit:nothing'}}"
    Path("run/view-experiment.yaml").write_text(f"chatbots: [{bot}]\ndetectors: [lexical]\n")
    code, said = hallulab.code_and_error("run", "-c", "run/view-experiment.yaml", "--out", "new")
    assert (code, said) == (
        2,
        "error: run/view-experiment.yaml: its chatbot 'b' is other people's code or service (callable), "
        "which a run folder alone does not start. Name it in an experiment file outside any run folder, "
        "given with -c, or leave it out with --chatbots.\n",
    )


def test_what_judged_imported_chats_judges_on(run: RunFolder, hallulab: CommandLine) -> None:
    assert hallulab("detect", "run", "--detectors", "lexical").code == 0
    Path("run/verdicts.jsonl").write_text("")
    assert hallulab("detect", "run").code == 0
    assert len(list_flags(run, "lexical")) == 2


def test_no_page_may_start_it(module: str) -> None:
    asked = Experiment(detectors=(Component(name="m", kind=f"{module}:EveryNumber"),))
    with pytest.raises(UsageError, match=r"^m: no page may start .*, which is code, a file or a folder"):
        Offer().require_allowed(asked)
    assert not Path("imported").exists()
    Offer(asked).require_allowed(asked)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("numbers", "write module:Class, such as my_detector:Mine."),
        ("../x:Mine", "write module:Class, such as my_detector:Mine."),
        ("no_such_module:Mine", "cannot import no_such_module from "),
        ("json:Mine", "the module json has no 'Mine'."),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(target: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        import_code("detector", target)
    assert str(caught.value).startswith(f"detector {target!r}: {said}")
