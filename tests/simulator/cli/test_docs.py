"""What README and docs show is so: commands with their flags, files that are read, and what is printed."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

import hallulab as front_door
from hallulab.agents.machine.cache import CACHE_VARIABLE
from hallulab.chatbots.guarded.policy import Policy
from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.packs.goals import LabelledGoal
from hallulab.scenarios.packs.pack_files import PersonasFile, ScenarioFile
from hallulab.simulator.annotate.sheet import Sheet
from hallulab.simulator.bench.sweep import Sweep
from hallulab.simulator.cli.main import app
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
)
HALLULAB: Any = typer.main.get_command(app)
IN_A_BLOCK = re.compile(rf"^(?: {{4}})?(hallulab (?:{'|'.join(HALLULAB.commands)}) .*)", re.MULTILINE)
IN_THE_TEXT = re.compile(r"`(hallulab [a-z][^`]*)`")


class LabelledGoals(BaseModel):
    """The goals of a persona, as a part of its file."""

    goals: tuple[LabelledGoal, ...]


KINDS: dict[str, type[BaseModel]] = {
    "annotator": Sheet,
    "detector": Sweep,
    "goals": LabelledGoals,
    "name": Policy,
    "personas": PersonasFile,
    "schema": ScenarioFile,
}
"""First key of a YAML file → what reads it. All others are experiment files."""


def blocks_of(name: str, language: str) -> list[str]:
    """The blocks of a page in a language, those that are whole files included."""
    return re.findall(rf"^```{language}(?: title=\S+)?\n(.*?)^```$", text_of(name), re.MULTILINE | re.DOTALL)


def text_of(name: str) -> str:
    """A page, with commands that a backslash continues in one line."""
    return (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")


def find_command(line: str) -> tuple[Any, list[str]]:
    """The command of a line of a shell, and what is given to it: all before the next command."""
    command = HALLULAB
    words = shlex.split(re.split(r" (?:[|>&]|&&) ", line)[0], comments=True)[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    return command, words


def without_alternatives(line: str) -> str:
    """A synopsis with all that may be left out, and with the first of its alternatives."""
    return re.sub(r"[][]", "", re.sub(r" \| [^]]*(?=\])", "", line))


@pytest.mark.parametrize("name", [page for page in PAGES if IN_A_BLOCK.search(text_of(page))])
def test_a_command_in_a_block_can_be_given(name: str) -> None:
    for line in IN_A_BLOCK.findall(text_of(name)):
        command, words = find_command(without_alternatives(line))
        command.make_context(line, words)


@pytest.mark.parametrize("name", [page for page in PAGES if IN_THE_TEXT.search(text_of(page))])
def test_flags_of_a_command_in_the_text_are_there(name: str) -> None:
    for line in IN_THE_TEXT.findall(text_of(name)):
        command, words = find_command(line)
        known = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
        ours = words[: words.index("--")] if "--" in words else words
        assert {word for word in ours if word.startswith("-")} <= {*known, "--help"}, line


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    """Those of docs are checked when the site is built."""
    linked = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text_of(name))
    assert linked
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_targets_that_the_docs_name_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = {target for page in PAGES for target in re.findall(r"(?:`|    )make ([a-z-]+)", text_of(page))}
    assert named - targets == set()


def test_scripts_that_the_docs_name_are_there_or_have_their_commit() -> None:
    script = re.compile(r"([Cc]ommit [0-9a-f]{8}:\s+`)?python -m (benchmarks[\w.]*\w)")
    named = {found for page in PAGES for found in script.findall(text_of(page))}
    places = [ROOT / module.replace(".", "/") for commit, module in sorted(named) if not commit]
    assert [place for place in places if not (place.with_suffix(".py").is_file() or place.is_dir())] == []


def test_the_page_of_the_first_run_has_what_replay_prints(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`report` prints what the run did, up to the table that the page leaves out."""
    shutil.copytree(demo_replay.path, tmp_path / "runs" / "replay")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    printed, _, _ = hallulab("report", "runs/replay").out.partition("\nwhere hallucinated replies are:")
    _, begun = text_of("docs/tutorial/first-run.md").split("<!-- make replay begins -->\n```\n")
    shown, _ = begun.split("\n```\n<!-- make replay ends -->")
    assert shown.splitlines() == [line.rstrip() for line in printed.rstrip().splitlines()]


@pytest.mark.slow
def test_the_study_of_calibration_has_what_its_command_fits(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow, because two detectors judge 878 replies."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    page = text_of("docs/studies/calibration.md")
    run, calibrate = re.findall(r"^    hallulab (.*runs/replay.*)$", page, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    for line in (run, calibrate):
        here = re.sub(r"(examples|tests)/(?=\S)", rf"{ROOT}/\1/", line)
        ended = hallulab(*here.split())
        assert ended.code == 0, ended.err
    printed = ended.out
    rows = re.findall(r"^\| `([a-z-]+)` \| ([\d. |]+) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == ["halludetect", "evidence-chain-rf"]
    for name, numbers in rows:
        [row] = [line.split() for line in printed.splitlines() if line.startswith(name)]
        assert [cell for cell in row if re.fullmatch(r"\d\.\d{3}", cell)] == numbers.split(" | ")


@pytest.mark.parametrize("name", [page for page in PAGES if blocks_of(page, "yaml")])
def test_a_yaml_file_of_the_docs_can_be_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    for text in blocks_of(name, "yaml"):
        file = tmp_path / "shown.yaml"
        file.write_text(text)
        [first, *_] = re.findall(r"^(\w+):", text, re.MULTILINE)
        if first in KINDS:
            read_yaml(file, name).check(KINDS[first])
        else:
            load_experiment(file, {})


@pytest.mark.parametrize("name", ["docs/python.md", "docs/tutorial/documents.md", "docs/tutorial/bot.md"])
def test_a_run_in_python_is_called_as_it_can_be(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tutorial's command runs such an experiment; here it is only looked at."""
    settings = inspect.signature(front_door.run).parameters
    called = []

    def look(experiment: Any, **options: Any) -> None:
        fields = {key: value for key, value in options.items() if key not in settings}
        if isinstance(experiment, dict):
            called.append(load_experiment(None, {**experiment, **fields}))
        else:
            called.append(load_experiment(Path(experiment), fields))

    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.yaml").write_text("chatbots: [vanilla]\n")
    monkeypatch.setattr(front_door, "run", look)
    for block in blocks_of(name, "python"):
        if "hallulab.run(" in block:
            exec(block, {"hallulab": front_door})
    assert called


def test_the_team_of_the_docs_is_one() -> None:
    [block] = blocks_of("docs/experiment.md", "python")
    module = {"MODEL": ReplayChatCompletionClient(["It is 5 euros."])}
    exec(block, module)
    assert isinstance(module["make"](), RoundRobinGroupChat)


def test_the_labelled_files_of_the_docs_are_measured_on(hallulab: CommandLine, tmp_path: Path) -> None:
    own, other, annotated, chats = blocks_of("docs/labelled-data.md", "json")
    (tmp_path / "own.jsonl").write_text(own)
    (tmp_path / "other.jsonl").write_text(other)
    (tmp_path / "chats.jsonl").write_text(chats)
    passages = [{"id": "d#0", "document": "d", "text": "The fee is Rs 200."}]
    turn = {"index": 0, "user": "What is the fee?", "reply": "It is Rs 500.", "passages": passages}
    held = conversation("388095d7767c45cf", [], turns=[turn])
    (tmp_path / "conversations.jsonl").write_text(held.model_dump_json() + "\n")
    (tmp_path / "annotations.jsonl").write_text(annotated)
    for data in (
        [tmp_path / "own.jsonl"],
        [tmp_path / "other.jsonl"],
        ["gold", "--data", tmp_path],
        ["detector-eval", "--data", tmp_path],
    ):
        ended = hallulab("bench", *data, "--detectors", "lexical")
        assert ended.code == 0, ended.err
        assert ended.out.startswith("response level: 1 repl")


def test_the_session_of_the_readme_is_what_the_demo_prints() -> None:
    shown = text_of("README.md").split("\n```\n")[1]
    assert shown.startswith("5 of 20 replies")
    assert f"\n{shown}\n" in text_of("docs/tutorial/first-run.md")


def test_the_python_of_the_readme_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    [code] = re.findall(r"```python\n(.*?)```", text_of("README.md"), re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.split() == code.splitlines()[-1].removeprefix("# ").split()
