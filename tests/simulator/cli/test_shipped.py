"""Files that are installed beside the code."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from hallulab.simulator.cli.shipped import locate_shipped
from tests.extras import read_project
from tests.places import RECORDINGS, ROOT


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_examples_are_those_of_the_repository() -> None:
    shipped = read_files(locate_shipped("examples"))
    assert shipped == read_files(ROOT / "examples")
    assert "demo.yaml" in shipped


def test_the_recording_is_that_of_the_demo() -> None:
    assert locate_shipped("demo.jsonl.gz").read_bytes() == (RECORDINGS / "demo.jsonl.gz").read_bytes()


def test_every_example_is_installed() -> None:
    patterns = [*read_project()["tool"]["setuptools"]["package-data"]["*"], "*.py"]
    names = read_files(locate_shipped("examples"))
    assert [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)] == []
