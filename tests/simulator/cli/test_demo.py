"""`hallulab demo`: the recorded run as a page, and the same on a model that is served here."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.options.commands import RunOptions
from hallulab.simulator.records.folder import RunFolder
from tests.extras import EXTRAS, hide_extras
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

MODEL = "qwen2.5-coder-1.5b"
FOUND = "5 of 20 replies are flagged by both detectors"
REPLAYED = f"This run was replayed from a recording of {MODEL}: no model was asked."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)


class Copies:
    """Stands for `run`: puts the finished demo into each new folder."""

    def __init__(self, source: RunFolder) -> None:
        self.source = source
        self.asked: list[RunOptions] = []
        self.prepared: list[str] = []
        self.fails = False

    async def run(self, options: RunOptions, on_start: Callable[[], object]) -> tuple[RunFolder, Scenario]:
        self.asked.append(options)
        if self.fails and options.replay is None:
            raise OperationalError("the server ended.")
        shutil.copytree(self.source.path, str(options.out), dirs_exist_ok=True)
        return RunFolder(Path(str(options.out))), load_scenario("consumer-grievance-india")

    def prepare(self, model: str, *, prepare_only: bool) -> None:
        assert prepare_only
        self.prepared.append(model)

    @property
    def folders(self) -> list[str]:
        return [str(options.out) for options in self.asked]


@pytest.fixture
def copies(demo_replay: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Copies:
    made = Copies(demo_replay)
    monkeypatch.setattr("hallulab.simulator.decide.run.run_from_options", made.run)
    monkeypatch.setattr("hallulab.agents.serving.command.serve_command", made.prepare)
    return made


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pages that a browser shows."""
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    return shown


def type_at_a_terminal(monkeypatch: pytest.MonkeyPatch, display: str) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)


def test_the_base_installation_replays_it_without_model_and_network(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch, opened: list[str], demo_replay: RunFolder
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("an address is asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    hide_extras(monkeypatch, *EXTRAS)
    ended = hallulab("demo")
    run = RunFolder(Path("runs/demo"))
    assert ended.code == 0, ended.err
    assert ended.out.startswith(FOUND)
    assert ended.out.splitlines()[-2:] == [
        "report: runs/demo/report.html",
        f"{REPLAYED} The same with a model: hallulab demo --live",
    ]
    assert FOUND in run.page.read_text()
    assert run.report.read_bytes() == demo_replay.report.read_bytes()
    assert opened == []


def test_a_second_call_makes_a_second_folder(hallulab: CommandLine, copies: Copies) -> None:
    Path("runs/demo").mkdir(parents=True)
    Path("runs/demo/report.html").write_text("mine")
    assert hallulab("demo").code == 0
    [made] = copies.folders
    assert made.startswith("runs/demo-20")
    assert Path("runs/demo/report.html").read_text() == "mine"


def test_a_live_run_that_is_there_is_left_alone(hallulab: CommandLine, copies: Copies) -> None:
    Path("runs/demo-live").mkdir(parents=True)
    assert hallulab("demo", "--live").code == 0
    recorded, live = copies.folders
    assert recorded.startswith("runs/demo-20")
    assert live == f"{recorded}-live"


def test_a_folder_is_named_by_out(hallulab: CommandLine, demo_replay: RunFolder) -> None:
    shutil.copytree(demo_replay.path, "mine")
    ended = hallulab("demo", "--out", "mine")
    assert (ended.code, ended.out.startswith(FOUND)) == (0, True)
    assert "report: mine/report.html\n" in ended.out


def test_live_has_the_recorded_page_first_and_then_runs_a_served_model(
    hallulab: CommandLine, copies: Copies, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    type_at_a_terminal(monkeypatch, ":0")
    ended = hallulab("demo", "--live")
    assert ended.code == 0, ended.err
    recorded, live = copies.asked
    assert copies.folders == ["runs/demo", "runs/demo-live"]
    assert copies.prepared == [MODEL]
    assert (recorded.replay is None, recorded.server_flags) == (False, ())
    assert (live.replay, live.server_flags) == (None, ("--enforce-eager",))
    assert (recorded.model, recorded.config) == (live.model, live.config) == (MODEL, recorded.config)
    assert f"{REPLAYED} Now the same with {MODEL}, into runs/demo-live.\n" in ended.out
    assert opened == [Path(name, "report.html").absolute().as_uri() for name in copies.folders]


def test_another_model_is_served_but_not_replayed(hallulab: CommandLine, copies: Copies) -> None:
    assert hallulab("demo", "--live", "--model", "smollm2-135m").code == 0
    assert [options.model for options in copies.asked] == [MODEL, "smollm2-135m"]
    assert copies.prepared == ["smollm2-135m"]


def test_no_page_is_opened_without_a_display(
    hallulab: CommandLine, copies: Copies, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    type_at_a_terminal(monkeypatch, "")
    assert hallulab("demo").code == 0
    assert opened == []


def test_after_a_failure_a_command_goes_on(hallulab: CommandLine, copies: Copies) -> None:
    copies.fails = True
    ended = hallulab("demo", "--live")
    assert (ended.code, ended.err) == (
        1,
        f"The live run is not finished. Go on by: hallulab demo --live --model {MODEL} --out runs/demo\n"
        "error: the server ended.\n",
    )
    copies.fails = False
    assert hallulab("demo", "--live", "--model", MODEL, "--out", "runs/demo").code == 0
    assert copies.folders == ["runs/demo", "runs/demo-live"] * 2


def test_live_without_its_extra_is_one_sentence(
    hallulab: CommandLine, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_extras(monkeypatch, "local")
    assert hallulab.code_and_error("demo", "--live") == (
        2,
        "error: --live needs lancedb, which is not installed: pip install 'hallulab[local]'\n",
    )
    assert copies.asked == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--model", "smollm2-135m"],
            f"error: --model smollm2-135m: the recorded run is one of {MODEL}. Give --live, too, or leave "
            "out --model.\n",
        ),
        (["--live", "--model", "gpt"], "error: there is no model 'gpt'. The catalogue has "),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_replayed(
    hallulab: CommandLine, copies: Copies, arguments: list[str], said: str
) -> None:
    code, error = hallulab.code_and_error("demo", *arguments)
    assert (code, error.count("\n"), error[: len(said)]) == (2, 1, said)
    assert copies.asked == []


def test_make_demo_is_the_live_demo() -> None:
    rules = (ROOT / "Makefile").read_text().split("\n\n")
    [demo] = [rule for rule in rules if rule.startswith("demo:")]
    assert demo.splitlines()[1:] == ["\t$(BIN)/hallulab demo --live --model $(MODEL)"]
