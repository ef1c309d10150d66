"""A YAML bomb is one sentence at once, in whatever file it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hallulab.testing.tiny_pack import make_pack
from tests.scenarios.files.test_yaml_text import bomb
from tests.simulator.command_line import CodeAndError


@pytest.mark.parametrize("place", ["scenario", "personas", "front matter", "experiment", "sweep"])
def test_a_bomb_goes_off_in_no_file(code_and_error: CodeAndError, tmp_path: Path, place: str) -> None:
    pack = make_pack(tmp_path / "pack")
    data = tmp_path / "data.jsonl"
    data.write_text('{"reply": "A.", "passages": ["A."], "label": false}\n')
    armed = {
        "scenario": pack / "scenario.yaml",
        "personas": pack / "personas.yaml",
        "front matter": pack / "documents" / "kettle.md",
    }.get(place, tmp_path / "armed.yaml")
    armed.write_text(f"---\n{bomb()}---\nWater boils.\n" if place == "front matter" else bomb())
    command = {
        "experiment": ("run", "-c", armed, "--out", tmp_path / "run"),
        "sweep": ("bench", data, "--sweep", armed, "--quiet"),
    }.get(place, ("list", "personas", "--scenario", pack))
    started = time.process_time()
    code, said = code_and_error(*command)
    assert time.process_time() - started < 10
    assert (code, said.count("\n")) == (2, 1)
    assert "the alias *a: aliases are not read" in said
