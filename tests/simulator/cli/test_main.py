"""The command as a whole: its help, and former names of commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import pytest

from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.agents.users.user import MAX_TOKENS
from hallulab.chatbots.pipeline import GenerationOptions
from hallulab.simulator.cli.commands import COMMANDS
from hallulab.simulator.cli.main import RENAMED
from hallulab.simulator.options.commands import RunOptions
from hallulab.simulator.options.groups import list_fields
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_fields import UntilDecided
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedTransport, pool_through
from tests.heavy_libraries import HEAVY
from tests.places import RECORDINGS, ROOT
from tests.simulator.command_line import CommandLine

CHAT = "User: My fan broke.\nAssistant: When?\nUser: In May.\n"
ENDPOINT = "--base-url http://127.0.0.1:9/v1 --model scripted"
RUN = f"-c {ROOT}/examples/demo.yaml --limit 1 --model qwen2.5-coder-1.5b --replay {RECORDINGS}/demo.jsonl.gz"
PLANT = "town-library --count 4 --kinds number --out planted"

FORMER = {
    f"simulate {RUN} --out new -q": f"run --no-judge {RUN} --out new -q",
    "compact run": "export run --format tables",
    "baseline run": "compare run --save -",
    "baseline run --out base.json": "compare run --save base.json",
    "baseline --out=base.json run": "compare --save=base.json run",
    "audit run": "report --guards run",
    f"summarize chat.txt {ENDPOINT}": f"init-scenario --summarize chat.txt {ENDPOINT}",
    f"summarize -q {ENDPOINT} chat.txt -- --x": f"init-scenario -q {ENDPOINT} --summarize chat.txt -- --x",
    "summarize --help": "init-scenario --help",
    "build audit-corpus --out corpus.jsonl": "make-data audit-corpus --out corpus.jsonl",
    "build --help": "make-data --help",
    f"plant {PLANT}": f"make-data planted {PLANT}",
    "stress --data run --out new": "rag-trust --data run --out new",
}
"""A command by its former name → by its new one."""


def written(folder: Path) -> dict[str, bytes]:
    """Name → content of the files below a folder, without the one that has the time of the run."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "experiment.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_gives_the_same_bytes_and_says_the_new_one(
    hallulab: CommandLine,
    demo_replay: RunFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    former: str,
) -> None:
    transport = ScriptedTransport(lambda _: "The user had a broken fan.")
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(transport))
    ended, files = [], []
    for line in (former, FORMER[former]):
        place = tmp_path / str(len(ended))
        shutil.copytree(demo_replay.path, place / "run")
        (place / "chat.txt").write_text(CHAT)
        monkeypatch.chdir(place)
        ended.append(hallulab(*line.split()))
        files.append(written(place))
    old, new = ended
    notice, _, rest = old.err.partition("\n")
    name = former.split()[0]
    assert notice == (
        f"`hallulab {name}` is now `hallulab {' '.join(RENAMED[name])}`; version 0.2 drops the old name."
    )
    assert (old.code, old.out, rest) == (new.code, new.out, new.err)
    assert files[0] == files[1]


def test_each_former_name_is_tried_and_is_no_command() -> None:
    assert {former.split()[0] for former in FORMER} == set(RENAMED)
    assert [name for group in COMMANDS.values() for name in group if name in RENAMED] == []


def list_boxes(text: str) -> list[tuple[str, list[str]]]:
    """Heading → first words of the rows of each box of a help text, in its order."""
    boxes = re.findall(r"^╭─ (.+?) ─+╮$(.*?)^╰", text, re.MULTILINE | re.DOTALL)
    return [(heading, re.findall(r"^│ (?:\* +)?(-*\w[\w-]*)", rows, re.MULTILINE)) for heading, rows in boxes]


def test_commands_stand_in_groups(hallulab: CommandLine) -> None:
    said = hallulab("--help").out
    groups = {
        heading: re.findall(r"^  (\S+(?:, \S+)?)  ", rows, re.MULTILINE)
        for heading, rows in re.findall(r"^(\S.*):\n((?:  .*\n?)+)", said, re.MULTILINE)
    }
    assert groups.pop("Options") == ["--version", "--install-completion", "--show-completion", "-h, --help"]
    assert groups == {heading: list(commands) for heading, commands in COMMANDS.items()}
    assert list(COMMANDS) == ["Start", "Run", "Read", "Measure detectors", "Data"]


@pytest.mark.parametrize("command", [(), ("run",), ("report", "no-run"), ("init", "pack")])
def test_the_short_flag_shows_the_same_help(hallulab: CommandLine, command: tuple[str, ...]) -> None:
    assert hallulab(*command, "-h") == hallulab(*command, "--help")


def test_without_a_command_the_help_is_shown(hallulab: CommandLine) -> None:
    assert hallulab.code_and_error() == (2, hallulab("--help").out)


def test_each_command_has_one_line_of_the_list(hallulab: CommandLine) -> None:
    lines = [line.split(maxsplit=1) for line in hallulab("--help").out.splitlines()]
    for name, place in [pair for group in COMMANDS.values() for pair in group.items()]:
        assert [name, place.help] in lines


@pytest.mark.parametrize("command", ["report", "realism", "annotate"])
def test_a_folder_that_is_no_run_is_refused_before_anything_heavy_is_imported(
    command: str, tmp_path: Path
) -> None:
    asked = [sys.executable, "-X", "importtime", "-m", "hallulab", command, tmp_path]
    ended = subprocess.run(asked, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert f"error: {tmp_path} is no run folder" in ended.stderr
    assert (
        imported & {"pandas", "scipy", "numpy", "autogen_core", "hallulab.simulator.records.folder"} == set()
    )


def test_common_flags_stand_first_and_the_others_under_headings(hallulab: CommandLine) -> None:
    first, *others = list_boxes(hallulab("run", "--help").out)
    assert first == (
        "Options",
        [
            *("--config", "--model", "--base-url", "--scenario", "--chatbots", "--limit", "--out"),
            *("--detectors", "--estimate", "--no-judge", "--json", "--help"),
        ],
    )
    assert [heading for heading, _ in others] == [
        *("Conversations", "Until it is decided", "Models", "Recording and resuming", "Output", "Processes")
    ]
    assert dict(others)["Models"] == ["--api-key-env", "--concurrency", "--timeout", "--batch"]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", [name for group in COMMANDS.values() for name in group])
def test_a_paragraph_of_a_help_breaks_where_the_line_is_full(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = hallulab(command, "--help").out.partition("╭")[0]
    for line, following in pairwise(line.strip() for line in said.splitlines()):
        if line and following:
            assert len(line) + 1 + len(following.split()[0]) > width - 2, line


def test_defaults_that_a_help_says_are_the_experiments() -> None:
    said = {
        field.name: field.flag.default
        for field in list_fields(RunOptions)
        if field.flag is not None and field.flag.default is not None
    }
    experiment, deciding = Experiment(), UntilDecided()
    assert said == {
        "model": f"the file's or the run's, else {DEFAULT_CPU_MODEL}",
        "scenario": experiment.scenario,
        "chatbots": "the five of the paper",
        "detectors": ",".join(one.name for one in experiment.detectors),
        "limit": "all",
        "api_key_env": "OPENAI_API_KEY",
        "reply_tokens": f"{MAX_TOKENS} and {GenerationOptions().max_tokens}",
        "margin": str(deciding.margin),
        "timeout": f"{experiment.timeout:.0f}",
        **{
            name: str(getattr(experiment, name))
            for name in ("concurrency", "repeats", "seed", "min_turns", "max_turns", "top_k")
        },
    }


@pytest.mark.parametrize(
    ("typed", "offered"), [("hallulab rep", "report"), ("hallulab run --until", "--until-decided")]
)
def test_a_shell_completes_commands_and_flags(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch, typed: str, offered: str
) -> None:
    """By the protocol of the script that `--install-completion` writes for bash."""
    monkeypatch.setenv("_HALLULAB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    assert hallulab().out == f"{offered}\n"


def test_help_keeps_what_stands_in_brackets(hallulab: CommandLine) -> None:
    assert "runs/ and the time" in hallulab("run", "--help").out
    assert "a free one" in hallulab("serve", "--help").out


def test_the_version_is_printed_without_a_command(hallulab: CommandLine) -> None:
    ended = hallulab("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"hallulab {version('hallulab')}\n", "")


@pytest.mark.parametrize("command", ["run", "detect", "bench", "init-scenario", "rag-trust"])
def test_the_help_says_what_becomes_of_flags_of_the_server(hallulab: CommandLine, command: str) -> None:
    assert "Arguments after `--` are passed on to the model server." in hallulab(command, "--help").out


def test_ctrl_c_while_the_command_is_imported_leaves_no_traceback() -> None:
    script = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from hallulab.__main__ import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_reader_that_wants_no_more_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    asked = [sys.executable, "-m", "hallulab", "--help"]
    ended = subprocess.run(asked, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


def imported_by(*arguments: str) -> set[str]:
    """Top-level modules in memory after a command."""
    script = (
        "import sys\n"
        f"sys.argv = ['hallulab', *{list(arguments)!r}]\n"
        "from hallulab.simulator.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ended.stderr.split())


@pytest.mark.parametrize(
    "arguments", [["--help"], ["report", "none"], ["realism", "none"], ["annotate", "none"]]
)
def test_commands_that_say_little_import_no_pydantic_and_no_flags(arguments: list[str]) -> None:
    """Each takes longer than all else of them: their times are near that of importing typer."""
    assert imported_by(*arguments) & {"pydantic", "hallulab.simulator.cli.options"} == set()


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_imports_no_heavy_library(arguments: list[str]) -> None:
    modules = imported_by(*arguments)
    assert sorted(modules & {*HEAVY, "jinja2"}) == []
    assert len(modules) < 600


@pytest.mark.parametrize("kind", ["scenarios", "personas", "models"])
def test_lists_of_data_import_no_model_library(kind: str) -> None:
    heavy = {"torch", "transformers", "sklearn", "lancedb", "openai", "autogen_core"}
    assert sorted(imported_by("list", kind) & heavy) == []
