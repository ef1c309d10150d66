"""The tutorial, from its second page to its last: its files are written, its commands run, as they stand."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

from hallulab.simulator.records.folder import RunFolder
from tests.places import ROOT
from tests.simulator.cli.pack_writer import ENDPOINT, twelve_documents
from tests.simulator.command_line import CommandLine

PAGES = ("documents", "bot", "detector", "labels")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ASKING = ("init", "run")
"""Commands of the tutorial that ask a model, which is a scripted one here."""


def install(folder: Path, site: Path) -> None:
    """Install a distribution of one module, as pip does."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    about = site / f"{project['name']}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups))
    for module in folder.glob("*.py"):
        (site / module.name).write_text(module.read_text())
    importlib.invalidate_caches()


@pytest.mark.usefixtures("words", "writer")
def test_it_runs_as_it_is_written(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twelve_documents(tmp_path / "DOCS")
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("COLUMNS", "110")
    printed = ""
    for page in PAGES:
        text = (ROOT / "docs" / "tutorial" / f"{page}.md").read_text(encoding="utf-8")
        for language, title, block in BLOCK.findall(text):
            if title:
                (tmp_path / title).parent.mkdir(exist_ok=True)
                (tmp_path / title).write_text(block)
            elif language == "text":
                begun = printed.splitlines()[: block.count("\n")]
                assert [line.rstrip() for line in begun] == block.splitlines()
            elif language == "bash":
                for line in block.splitlines():
                    command, *words = line.split()
                    if command == "pip":
                        install(tmp_path / words[-1], tmp_path / "site")
                        continue
                    ended = hallulab(*words, *(ENDPOINT if words[0] in ASKING else ()))
                    assert ended.code == 0, ended.err
                    printed = ended.out
    verdicts = RunFolder(tmp_path / "runs" / "mine").read_journals().verdicts
    assert {(verdict.detector, verdict.outcome) for verdict in verdicts} == {
        ("lexical", "scored"),
        ("every-number", "scored"),
    }
    assert (tmp_path / "to-label.jsonl").is_file()
    assert "every-number" in (listed := hallulab("list", "detectors").out)
    assert "Flags every number of a reply." in listed
    sys.modules.pop("everynumber", None)
