"""A run that goes on after an edit of our code: what the code decides is computed again, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hallulab.simulator.records.folder import RunFolder
from tests.edited_code import Edit
from tests.simulator.command_line import CommandLine

ROOT = Path(__file__).parents[3]
RECORDING = ROOT / "tests" / "recordings" / "demo.jsonl.gz"
EXPERIMENT = (
    "model: qwen2.5-coder-1.5b\npersonas: [refrigerator-stops-cooling]\nmin_turns: 2\nmax_turns: 2\n"
    "manners: [plain, plain, plain, terse, plain+pushes-back, plain+misspelling]\n"
    "chatbots: [vanilla, fact-checker]\ndetectors: [lexical, metarag]\n"
)
USER_CHANGED = "warning: the simulated user or how conversations go has changed:"
FROM_BEFORE = "from before no longer counts, and what is asked for is run again."


def go_on(house: Path, run: Path) -> str:
    """Run, or go on with, the recorded experiment with the code of a house; what standard error says."""
    config = run.with_name("experiment.yaml")
    config.write_text(EXPERIMENT)
    program = (
        f"import sys; sys.argv = ['hallulab', 'run', '-c', {str(config)!r}, '--replay', {str(RECORDING)!r}, "
        f"'--out', {str(run)!r}, '--quiet']; from hallulab.simulator.cli.main import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house), "HALLULAB_CACHE": str(run.with_name("cache"))},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def lines(file: Path, key: str) -> Counter[str]:
    """How many lines of a journal there are of each chatbot or detector."""
    return Counter(json.loads(line)[key] for line in file.read_text().splitlines())


CASES = pytest.mark.parametrize(
    ("edits", "conversations", "verdicts", "said"),
    [
        (
            {
                "chatbots/fact_checker.py": (
                    "draft = await super()",
                    "# first of all\n        draft = await super()",
                ),
                "agents/users/user.py": ('"""Hash what decides', '"""Hash all that decides'),
                "agents/models/transport.py": ("if status < 400", "if status <= 399"),
                "detectors/lexical/detector.py": ("from __future__", "# a remark\nfrom __future__"),
            },
            {},
            {},
            "",
        ),
        (
            {"chatbots/fact_checker.py": ("MOST = 10", "MOST = 5 + 5")},
            {"fact-checker": 1},
            {"lexical": 2, "metarag": 2},
            f"warning: chatbot fact-checker has changed: 1 conversation with fact-checker {FROM_BEFORE}\n",
        ),
        (
            {"agents/users/user.py": ("MAX_TOKENS = 96", "MAX_TOKENS = 90 + 6")},
            {"vanilla": 1, "fact-checker": 1},
            {"lexical": 4, "metarag": 4},
            f"{USER_CHANGED} 1 conversation with fact-checker {FROM_BEFORE}\n"
            f"{USER_CHANGED} 1 conversation with vanilla {FROM_BEFORE}\n",
        ),
        (
            {"detectors/lexical/detector.py": ("class Lexical", "EDITED = True\n\n\nclass Lexical")},
            {},
            {"lexical": 4},
            "warning: detector lexical has changed: its verdicts are computed again.\n",
        ),
    ],
    ids=["comments", "chatbot", "user", "detector"],
)
"""Old and new text by file; the lines that are added to the journals; standard error."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with our packages (`house`) and a finished run of theirs (`run`)."""
    folder = tmp_path_factory.mktemp("begun")
    for floor in ("scenarios", "agents", "detectors", "chatbots", "simulator"):
        shutil.copytree(ROOT / floor, folder / "house" / floor, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "hallulab", folder / "house" / "hallulab", symlinks=True)
    assert go_on(folder / "house", folder / "run") == ""
    assert lines(folder / "run" / "verdicts.jsonl", "detector") == {"lexical": 4, "metarag": 4}
    return folder


@pytest.mark.slow
@CASES
def test_what_an_edit_decides_is_made_anew_and_nothing_else(
    edits: dict[str, tuple[str, str]],
    conversations: dict[str, int],
    verdicts: dict[str, int],
    said: str,
    begun: Path,
    tmp_path: Path,
) -> None:
    shutil.copytree(begun, tmp_path / "here", symlinks=True)
    house, run = tmp_path / "here" / "house", RunFolder(tmp_path / "here" / "run")
    for name, (old, new) in edits.items():
        text = (house / name).read_text()
        assert old in text
        (house / name).write_text(text.replace(old, new, 1))
    held, judged = lines(run.conversations, "chatbot"), lines(run.verdicts, "detector")
    assert go_on(house, run.path) == said
    assert lines(run.conversations, "chatbot") - held == conversations
    assert lines(run.verdicts, "detector") - judged == verdicts
    counted = {row["chatbot"]: row["conversations"] for row in json.loads(run.report.read_text())["rows"]}
    assert counted == {"vanilla": 1, "fact-checker": 1}


def replay(hallulab: CommandLine, run: Path) -> str:
    """Run, or go on with, the recorded experiment in this process; what standard error says."""
    config = run.with_name("experiment.yaml")
    config.write_text(EXPERIMENT)
    ended = hallulab("run", "-c", config, "--replay", RECORDING, "--out", run, "--quiet")
    assert ended.code == 0, ended.err
    return ended.err


@CASES
def test_what_files_decide_is_made_anew_when_they_are_read_as_edited(
    edits: dict[str, tuple[str, str]],
    conversations: dict[str, int],
    verdicts: dict[str, int],
    said: str,
    hallulab: CommandLine,
    tmp_path: Path,
    edit_code: Edit,
) -> None:
    """The code that runs stays; what is hashed for the versions is the edited text."""
    run = RunFolder(tmp_path / "run")
    assert replay(hallulab, run.path) == ""
    held, judged = lines(run.conversations, "chatbot"), lines(run.verdicts, "detector")
    for name, (old, new) in edits.items():
        assert old in (ROOT / name).read_text()
        module = f"hallulab.{name.removesuffix('.py').replace('/', '.')}"
        edit_code(module, lambda text, old=old, new=new: text.replace(old, new, 1))
    assert replay(hallulab, run.path) == said
    assert lines(run.conversations, "chatbot") - held == conversations
    assert lines(run.verdicts, "detector") - judged == verdicts
    counted = {row["chatbot"]: row["conversations"] for row in json.loads(run.report.read_text())["rows"]}
    assert counted == {"vanilla": 1, "fact-checker": 1}
