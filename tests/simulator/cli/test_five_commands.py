"""README's way from a folder of documents and a bot over HTTP to a report: its commands, a scripted model."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.records.folder import RunFolder
from hallulab.testing import endpoint as endpoint_stub
from hallulab.testing.endpoint import MODEL, serve_stub
from hallulab.testing.scripted import completion
from tests.places import ROOT
from tests.simulator.cli.pack_writer import Writer, twelve_documents, without_weights
from tests.simulator.command_line import CommandLine

BLOCK = re.compile(r"## Five commands\n.*?```bash\n(.*?)```", re.DOTALL)


@pytest.fixture
def endpoint() -> Iterator[str]:
    writer = Writer()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        said = writer(request)
        # Detectors ask for instances of schemas that the writer of packs does not know.
        unknown = "response_format" in request and not str(said).startswith("{")
        return endpoint_stub.completion(request) if unknown else completion(said, MODEL)

    with serve_stub(answer) as url:
        yield url


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples and somebody's documents, as working directory."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    twelve_documents(tmp_path / "DOCS")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_five_commands_lead_from_documents_to_a_report(
    hallulab: CommandLine, clone: Path, endpoint: str
) -> None:
    [block] = BLOCK.findall((ROOT / "README.md").read_text())
    _, *written = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [words[:2] for words in written] == [
        ["hallulab", "init-scenario"],
        ["python", "examples/http_bot.py"],
        ["hallulab", "run"],
        ["hallulab", "report"],
    ]
    # What stands after `--` is for the model server, which is another one here.
    init, bot, run, report = [" ".join(words[1:]).partition(" -- ")[0].split() for words in written]
    model = ("--base-url", endpoint, "--model", MODEL, "--quiet")
    with without_weights():
        assert hallulab(*init, *model).code == 0
        command = [sys.executable, *(word for word in bot if word != "&"), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            config = clone / "examples" / "own_bot.yaml"
            url = process.stdout.readline().strip()
            config.write_text(config.read_text().replace("http://127.0.0.1:9000/v1", url))
            ended = hallulab(*run, *model)
            process.terminate()
        assert (ended.code, ended.err) == (0, "")
    conversations = list(RunFolder(clone / "runs" / "mine").read_conversations())
    assert len(conversations) == 12
    replies = [turn.reply for held in conversations for turn in held.turns]
    # The bot searches for the last message alone, so it has nothing for "more".
    answers = re.compile(r"The (fee|fine) for thing\d+ is \d+ cents\.|I am sorry, I know nothing about")
    assert all(map(answers.match, replies))
    assert sum(reply.startswith("The f") for reply in replies) > len(replies) / 2
    told = hallulab(*report)
    assert told.code == 0
    assert "mine" in told.out
    assert (clone / "runs" / "mine" / "report.html").is_file()
