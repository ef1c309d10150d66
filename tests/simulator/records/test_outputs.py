"""Outputs of `run`, `bench` and `build`: refused before the work if they cannot be written or cost a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.simulator.bench import command
from tests.simulator.command_line import CommandLine

LINE = '{"reply": "Chalk.", "passages": ["Chalk."], "label": false}\n'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(LINE)
    return path


def lost(path: Path) -> str:
    return f"error: cannot write {path}: a file of the input would be lost. Give another file.\n"


@pytest.mark.parametrize("flag", ["--json", "--csv", "--html", "through a link"])
def test_the_data_are_not_overwritten(hallulab: CommandLine, data: Path, tmp_path: Path, flag: str) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(data)
    flag, out = ("--json", link) if flag == "through a link" else (flag, data)
    ended = hallulab("bench", data, flag, out)
    assert (ended.code, ended.out, ended.err, data.read_text()) == (2, "", lost(out), LINE)


@pytest.mark.parametrize("flag", ["--train", "-c", "--sweep", "--replay", "--record"])
def test_no_other_file_that_is_read_is_overwritten(
    hallulab: CommandLine, data: Path, tmp_path: Path, flag: str
) -> None:
    read = tmp_path / "read"
    read.write_text("kept")
    ended = hallulab("bench", data, flag, read, "--json", read)
    assert (ended.code, ended.err, read.read_text()) == (2, lost(read), "kept")


def begin(folder: Path) -> Path:
    turn = {"model_name": "t5", "data_source": "wow", "begin_label": "Fully attributable"}
    said = {"knowledge": "Chalk.", "message": "What?", "response": "Chalk."}
    folder.mkdir()
    (folder / "turns.jsonl").write_text(json.dumps(turn | said) + "\n")
    return folder


@pytest.mark.parametrize("flag", ["--json", "--csv", "--html"])
@pytest.mark.parametrize("given", ["--data", "--train"])
def test_a_file_in_the_folder_of_the_data_is_not_overwritten(
    hallulab: CommandLine, tmp_path: Path, given: str, flag: str
) -> None:
    read = begin(tmp_path / "begin") / "turns.jsonl"
    before = read.read_text()
    ended = hallulab("bench", "begin", given, tmp_path / "begin", flag, read)
    assert (ended.code, ended.err, read.read_text()) == (2, lost(read), before)


def test_earlier_results_in_the_folder_of_the_data_are_overwritten(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    folder = begin(tmp_path / "begin")
    outputs = ("--json", folder / "a.json", "--csv", folder / "a.csv", "--html", folder / "a.html")
    bench = ("bench", "begin", "--data", folder, *outputs)
    assert [(ended.code, ended.err) for ended in (hallulab(*bench), hallulab(*bench))] == [(0, "")] * 2


def test_two_outputs_are_not_one_file(hallulab: CommandLine, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = hallulab("bench", data, "--json", out, "--html", tmp_path / "x" / ".." / "out")
    assert (ended.code, ended.out, out.exists()) == (2, "", False)
    assert ended.err == (
        f"error: --json and --html name the same file, {tmp_path / 'x' / '..' / 'out'}. Give each its own.\n"
    )


@pytest.mark.parametrize("flag", ["--json", "--csv", "--html"])
@pytest.mark.parametrize("name", ["", "."])
def test_a_folder_is_no_output(
    hallulab: CommandLine, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = name or str(tmp_path)
    ended = hallulab("bench", data, flag, folder)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {flag} {folder}: this is a folder. Name a file.\n"


@pytest.mark.parametrize(
    "command",
    [
        *(("bench", "DATA", flag) for flag in ("--json", "--csv", "--html")),
        ("make-data", "hotpotqa-derived", "--data", ".", "--out"),
        ("make-data", "audit-corpus", "--out"),
    ],
    ids=" ".join,
)
def test_an_output_below_a_file_is_refused_before_the_work(
    hallulab: CommandLine, data: Path, command: tuple[str, ...]
) -> None:
    out = data / "x"
    ended = hallulab(*(data if word == "DATA" else word for word in command), out)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {command[-1]} {out}: {data} is no folder. Give another path.\n"


@pytest.mark.parametrize("flags", [(), ("--no-judge",)])
def test_a_run_folder_that_is_a_file_is_refused_before_a_server_is_started(
    hallulab: CommandLine, data: Path, flags: tuple[str, ...]
) -> None:
    ended = hallulab("run", *flags, "--model", "qwen-9000", "--out", data)
    assert (ended.code, ended.out, data.read_text()) == (2, "", LINE)
    assert ended.err == f"error: --out {data}: this is a file. Name a folder.\n"


@pytest.mark.parametrize("flags", [(), ("--no-judge",)])
def test_a_run_folder_where_nothing_can_be_written_is_refused_before_a_server_is_started(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.setattr("hallulab.simulator.records.outputs.os.access", lambda place, mode: False)
    out = tmp_path / "run"
    ended = hallulab("run", *flags, "--model", "qwen-9000", "--out", out)
    assert (ended.code, ended.out, out.exists()) == (2, "", False)
    assert ended.err == f"error: --out {out}: nothing can be written to {tmp_path}. Give another path.\n"


def test_an_output_may_be_a_device(hallulab: CommandLine, data: Path) -> None:
    assert hallulab("bench", data, "--json", "/dev/null", "-q").code == 0


def test_what_cannot_be_written_after_all_does_not_cost_the_table(
    hallulab: CommandLine, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "check_outputs", lambda *given: None)
    ended = hallulab("bench", data, "--json", data / "out", "-q")
    assert (ended.code, ended.out.startswith("response level: 1 reply ")) == (1, True)


@pytest.mark.parametrize("flag", ["-c", "--replay", "--record"])
def test_built_data_do_not_overwrite_what_they_are_built_with(
    hallulab: CommandLine, tmp_path: Path, flag: str
) -> None:
    read = tmp_path / "read"
    read.write_text("timeout: 5\n")
    ended = hallulab("make-data", "hotpotqa-derived", "--data", tmp_path, flag, read, "--out", read)
    assert (ended.code, ended.err, read.read_text()) == (2, lost(read), "timeout: 5\n")


@pytest.mark.parametrize("name", ["distractor.jsonl", "hotpot_dev_distractor_v1.json"])
def test_built_data_do_not_overwrite_the_questions(hallulab: CommandLine, tmp_path: Path, name: str) -> None:
    read = tmp_path / name
    read.write_text("[]")
    ended = hallulab("make-data", "hotpotqa-derived", "--data", tmp_path, "--out", read)
    assert (ended.code, ended.err, read.read_text()) == (2, lost(read), "[]")
