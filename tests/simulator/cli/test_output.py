"""Standard output that cannot be written, and paths of users that do not exist."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import pytest

from hallulab.simulator.cli.console import open_closed_streams
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.command_line import CodeAndError, CommandLine

FULL = Path("/dev/full")
NO_ROOM = "error: standard output cannot be written: No space left on device.\n"

needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@pytest.fixture
def into(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str]]:
    """Runs a command whose standard output is that file; gives its exit code and standard error."""
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    command = CommandLine(monkeypatch, capsys)

    def run(descriptor: int, *arguments: str | Path) -> tuple[int, str]:
        with os.fdopen(descriptor, "w") as output, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", output)
            return command.code_and_error(*arguments)

    return run


COMMANDS = [
    ("--help",),
    ("--version",),
    ("list", "detectors"),
    ("init-scenario", "{folder}/new"),
    ("report", "{folder}/run"),
    ("report", "{folder}/run", "--json"),
    ("export", "{folder}/run", "--out", "{folder}/lines.jsonl", "--detector", "metarag"),
    ("bench", "{folder}/data.jsonl", "--detectors", "lexical"),
    ("make-data", "audit-corpus", "--out", "{folder}/corpus.jsonl"),
]


@needs_full
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_full_disk_is_one_sentence(
    into: Callable[..., tuple[int, str]], tmp_path: Path, command: tuple[str, ...]
) -> None:
    saved_run(tmp_path / "run")
    (tmp_path / "data.jsonl").write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
    arguments = [argument.format(folder=tmp_path) for argument in command]
    assert into(os.open(FULL, os.O_WRONLY), *arguments) == (1, NO_ROOM)


@needs_full
def test_what_a_command_writes_besides_is_whole(into: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    run = saved_run(tmp_path / "run")
    assert into(os.open(FULL, os.O_WRONLY), "report", run.path) == (1, NO_ROOM)
    assert run.report.read_text().endswith("}\n")
    assert run.page.read_text().rstrip().endswith("</html>")


def test_a_reader_that_has_gone_is_nothing_to_talk_about(into: Callable[..., tuple[int, str]]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert into(writing, "list", "personas") == (1, "")


def test_a_character_that_the_terminal_lacks_is_written_as_its_number(
    into: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    def latin_1(descriptor: int, mode: str) -> IO[Any]:
        return open(descriptor, mode, encoding=None if "b" in mode else "latin-1")

    said = tmp_path / "said"
    with patch("os.fdopen", latin_1):
        assert into(os.open(said, os.O_WRONLY | os.O_CREAT), "init-scenario", tmp_path / "☃") == (0, "")
    assert said.read_text().startswith(f"{tmp_path}/\\u2603: edit scenario.yaml, ")


@needs_full
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_end_of_the_process_adds_nothing(tmp_path: Path, stream: str) -> None:
    command = "import sys; sys.argv[1:] = ['list', 'scenarios', '--nonsense'][: {}]".format(
        2 if stream == "stdout" else 3
    )
    with FULL.open("w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        ended = subprocess.run(
            [sys.executable, "-c", f"{command}; from hallulab.simulator.cli.main import main; main()"],
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            text=True,
            **streams,
        )
    assert ended.returncode == 1
    assert (ended.stderr or NO_ROOM, ended.stdout or "") == (NO_ROOM, "")


NOBODY = "~nosuchuser/x"


@pytest.mark.parametrize(
    "command",
    [
        ("list", "personas", "--scenario", NOBODY),
        ("run", "--scenario", NOBODY),
        ("run", "-c", "{folder}/e.yaml"),
        ("bench", NOBODY),
        ("serve", NOBODY),
        ("run", "-c", "{folder}/peer.yaml", "--model", "m"),
        ("run", "--out", NOBODY),
        ("run", f"--record={NOBODY}", "--model", "m"),
        ("init-scenario", NOBODY),
        ("report", NOBODY),
        ("make-data", "audit-corpus", "--out", NOBODY),
    ],
    ids=" ".join,
)
def test_the_home_of_nobody_is_one_sentence(
    code_and_error: CodeAndError, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "e.yaml").write_text(f"scenario: {NOBODY}\n")
    options = f"{{name: lettucedetect, options: {{weights: {NOBODY}}}}}"
    (tmp_path / "peer.yaml").write_text(f"detectors: [{options}]\n")
    code, said = code_and_error(*(argument.format(folder=tmp_path) for argument in command))
    assert code == 2
    assert said.endswith(f"{NOBODY}: there is no user with such a home folder. Correct the path.\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "command", [("judge", "-"), ("export", "runs/a", "--out", "-"), ("schema", "--out=-")]
)
def test_a_dash_is_no_file(code_and_error: CodeAndError, command: tuple[str, ...]) -> None:
    said = f"error: {command[-1]}: give the name of a file; none is read from a pipe or printed.\n"
    assert code_and_error(*command) == (2, said)


def test_a_home_folder_is_found_as_a_shell_finds_it(
    code_and_error: CodeAndError, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert code_and_error("init-scenario", "~/pack") == (0, "")
    assert (tmp_path / "pack" / "scenario.yaml").is_file()


def test_a_cache_in_the_home_of_nobody_is_one_sentence(
    code_and_error: CodeAndError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALLULAB_CACHE", NOBODY)
    assert code_and_error("serve", "smollm2-135m", "--prepare", "--quiet") == (
        2,
        f"error: {NOBODY}: there is no user with such a home folder. Correct the path.\n",
    )


@pytest.mark.parametrize("flag", ["-c", "--sweep", "--replay", "--record", "--out", "--data", "--train"])
def test_no_flag_with_a_path_prints_a_traceback(
    code_and_error: CodeAndError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = flag in ("--sweep", "--data", "--train")
    command = ["bench", "begin", "--detectors", "lexical"] if bench else ["run"]
    endpoint = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"]
    code, said = code_and_error(*command, *endpoint, flag, f"{NOBODY}/y")
    assert code in (1, 2)
    assert said.startswith("error: ")


@pytest.mark.parametrize(
    "command",
    [("list", "personas", "--scenario"), ("bench",), ("serve",), ("make-data", "planted", "--out", "p")],
    ids=" ".join,
)
def test_a_path_that_no_system_takes_is_one_sentence(
    code_and_error: CodeAndError, command: tuple[str, ...]
) -> None:
    path = "x" * 300 + "/y"
    assert code_and_error(*command, path) == (
        2,
        f"error: {path}: cannot be read (File name too long). Correct the path.\n",
    )


@pytest.mark.parametrize("seconds", ["inf", "nan", "1e400", "1e10", "0"])
def test_a_timeout_is_a_finite_time(code_and_error: CodeAndError, seconds: str) -> None:
    code, said = code_and_error(
        "run", "--timeout", seconds, "--base-url", "http://127.0.0.1:9/v1", "--model", "m"
    )
    assert code == 2
    assert said.startswith("error: field `timeout`: ")


def test_an_error_of_the_system_is_one_sentence_without_keys_and_escapes(
    code_and_error: CodeAndError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(5, "no such\nsk-canary-1234", "a\nb\x1b[31m")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234")
    monkeypatch.setattr("hallulab.simulator.cli.main.app", fails)
    assert code_and_error("list") == (1, "error: a b\ufffd[31m: no such [key].\n")


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param("<&-", marks=pytest.mark.slow),
        ">&-",
        pytest.param("2>&-", marks=pytest.mark.slow),
        "<&- >&- 2>&-",
    ],
)
def test_closed_streams_change_nothing_but_what_is_printed(tmp_path: Path, closed: str) -> None:
    """A file that is opened next does not take the number of a stream, so nothing is printed into it."""
    script = (
        "import os, sys; from hallulab.simulator.cli.main import main; sys.argv[1:] = ['list', 'scenarios']\n"
        "try: main()\n"
        "finally: open(sys.orig_argv[-1], 'w').write(f'{os.open(os.devnull, 0)} {sys.exc_info()[1]}')"
    )
    told = tmp_path / "told"
    command = f'exec "$0" -c "$1" "$2" {closed}'
    ended = subprocess.run(
        ["sh", "-c", command, sys.executable, script, told], stdin=subprocess.DEVNULL, capture_output=True
    )
    number, _, code = told.read_text().partition(" ")
    assert (int(number) > 2, code, ended.returncode, ended.stderr) == (True, "0", 0, b"")
    assert bool(ended.stdout) == (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_missing_is_opened_onto_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, name, None)
    open_closed_streams()
    assert getattr(sys, name).isatty() in (True, False)


def test_a_working_directory_that_was_deleted_is_named(
    code_and_error: CodeAndError, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = "error: The working directory was deleted: change to one that is there.\n"
    assert code_and_error("init-scenario", "pack") == (1, said)
    assert code_and_error("report", "run")[1].endswith(said.removeprefix("error:"))


def test_used_up_handles_are_told_with_the_remedy(
    code_and_error: CodeAndError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "file")

    monkeypatch.setattr("hallulab.simulator.cli.main.app", fails)
    told = "error: file: Too many open files. Raise the limit (`ulimit -n`).\n"
    assert code_and_error("list") == (1, told)
