"""The commands that README and docs name are there, with these flags, and print what the pages show."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer

from hallulab.simulator.cli.main import app
from hallulab.simulator.runs.folder import RunFolder
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
)
HALLULAB: Any = typer.main.get_command(app)
IN_A_BLOCK = re.compile(rf"^(?: {{4}})?(hallulab (?:{'|'.join(HALLULAB.commands)}) .*)", re.MULTILINE)
IN_THE_TEXT = re.compile(r"`(hallulab [a-z][^`]*)`")


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


def test_targets_that_the_docs_name_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = {target for page in PAGES for target in re.findall(r"(?:`|    )make ([a-z-]+)", text_of(page))}
    assert named - targets == set()


def test_scripts_that_the_docs_name_are_there() -> None:
    named = {
        script for page in PAGES for script in re.findall(r"python -m (benchmarks[\w.]*\w)", text_of(page))
    }
    places = [ROOT / script.replace(".", "/") for script in sorted(named)]
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
