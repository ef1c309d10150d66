"""JSON Schemas of files: what they say, the command that prints them, and the examples that name them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.cli.schemas import FILES, render_schema
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def schema(name: str) -> Any:
    return json.loads(render_schema(name))


def test_fields_are_described_by_their_docstrings() -> None:
    assert schema("experiment")["properties"]["top_k"] == {
        "default": 4,
        "description": "Passages retrieved for a query (HalluDetect section 4.1).",
        "minimum": 1,
        "title": "Top K",
        "type": "integer",
    }


def test_a_name_may_stand_for_a_chatbot() -> None:
    text, keys = schema("experiment")["$defs"]["Component"]["anyOf"]
    assert text == {"type": "string"}
    assert keys["required"] == ["name"]


def test_a_script_may_stand_for_what_a_persona_must_have() -> None:
    persona = schema("personas")["$defs"]["Persona"]
    assert persona["required"] == ["id"]
    assert persona["anyOf"] == [
        {"required": ["messages"]},
        {"required": ["id", "name", "grievance", "goals", "manner", "summary"]},
    ]


@pytest.mark.parametrize("name", FILES)
def test_a_schema_refuses_unknown_keys_as_the_file_does(name: str) -> None:
    made = schema(name)
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["additionalProperties"] is False


def test_the_command_prints_a_schema_or_writes_it(hallulab: CommandLine, tmp_path: Path) -> None:
    assert hallulab("schema").out == render_schema("experiment")
    file = tmp_path / "sweep.json"
    ended = hallulab("schema", "sweep", "--out", file)
    assert (ended.code, ended.out, file.read_text()) == (0, f"{file}\n", render_schema("sweep"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_names_its_schema_for_editors(path: Path) -> None:
    """A relative path begins at the file's folder. `hallulab schema NAME --out` renews a stale one."""
    [name] = re.findall(r"\A# yaml-language-server: \$schema=schema/([a-z-]+)\.json\n", path.read_text())
    assert (path.parent / "schema" / f"{name}.json").read_text() == render_schema(name)
