"""The notebook in `examples` runs from top to bottom, and is stored without its outputs."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot

from hallulab.simulator.records.folder import RunFolder
from tests.places import ROOT

NOTEBOOK = json.loads((ROOT / "examples" / "first_look.ipynb").read_text(encoding="utf-8"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo_replay: RunFolder) -> Iterator[None]:
    """A working directory whose `runs/demo` was replayed already, and a place for figures in memory."""
    shutil.copytree(demo_replay.path, tmp_path / "runs" / "demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def execute_cells() -> dict[str, Any]:
    """Run the code of all cells in one namespace; return what each cell shows: its last expression."""
    names: dict[str, Any] = {}
    shown = {}
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            *body, last = ast.parse("".join(cell["source"])).body
            assert isinstance(last, ast.Expr)
            exec(compile(ast.Module(body, []), cell["id"], "exec"), names)
            shown[cell["id"]] = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
    return shown


def test_every_cell_runs_and_shows_what_the_text_says(here: None) -> None:
    shown = execute_cells()
    assert repr(shown["replay"]).startswith(
        "<Run 'runs/demo': 10 conversations, 20 replies; halludetect scored 20"
    )
    assert "<table>" in shown["replay"]._repr_html_()
    assert [label.get_text() for label in shown["plot"].get_yticklabels()] == [
        *("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
    ]
    assert set(shown["spans"].detector) == {"halludetect", "metarag"}
    assert repr(shown["judge"]) == (
        "<Run 'runs/chats': 5 conversations, 6 replies; lexical scored 6 of 6, flagged 4>"
    )
    assert list(shown["flags"].user) == [
        "How long can I send a jacket back?",
        "And who pays for the parcel?",
        "My zip broke after five months. What now?",
        "Can I change the address of my order?",
    ]
    assert list(shown["rows"].text) == ["It is 500 euros."]
    assert shown["page"] is None
    assert Path("chats.html").read_text(encoding="utf-8") == Path("runs/chats/report.html").read_text()


def test_it_is_a_notebook_of_version_4_5_without_outputs() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert NOTEBOOK["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids)
    fields = {cell["cell_type"]: set(cell) for cell in NOTEBOOK["cells"]}
    text = {"cell_type", "id", "metadata", "source"}
    assert fields == {"markdown": text, "code": {*text, "execution_count", "outputs"}}
    assert [
        cell["id"] for cell in NOTEBOOK["cells"] if cell.get("outputs") or cell.get("execution_count")
    ] == []


def test_it_names_no_absolute_path() -> None:
    lines = [line for cell in NOTEBOOK["cells"] for line in cell["source"]]
    assert [line for line in lines if str(ROOT) in line or '"/' in line or "~" in line] == []
