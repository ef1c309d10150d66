"""Whole runs whose retriever fails, or whose writer invents: the report blames the right one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hallulab
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import write_reports
from hallulab.testing.scripted import ScriptedModel, last_user
from hallulab.testing.tiny_pack import make_pack, words_for_vectors

ASKED = "How many minutes does a kettle of water take?"
TRUE = "The kettle takes three minutes."
INVENTED = "The kettle whistles for nineteen hours."
EMPTY = {"retrieval": {"empty_ratio": 1.0}}


def answer(reply: str, request: dict[str, Any]) -> str:
    """A chatbot that says one thing, a user who asks one thing, and a judge who believes nothing."""
    wanted = last_user(request)
    if '"title": "RoughAnalysis"' in wanted:
        return json.dumps({"hallucinations": [{"reason": "No document says so.", "sentence": reply}]})
    if '"title": "FineAnalysis"' in wanted:
        return json.dumps({"grades": [{"number": 1, "explanation": "It matters.", "severity": 5}]})
    if '"title": "Result"' in wanted:
        return json.dumps({"hallucinations": [{"number": 1, "reason": "No document says so."}]})
    return reply if "Documents found for the user" in str(request) else ASKED


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    with words_for_vectors():
        yield make_pack(tmp_path / "pack")


def run(pack: Path, reply: str, detector: str, **more: Any) -> tuple[dict[str, Any], Path]:
    """Hold and judge a conversation of one turn; return its row of the table, and the run's folder."""
    experiment = {
        "scenario": str(pack),
        "chatbots": ["vanilla"],
        "detectors": [detector],
        "min_turns": 1,
        "max_turns": 1,
        **more,
    }
    folder = pack.parent / "run"
    with ScriptedModel(lambda request: answer(reply, request)) as model:
        hallulab.run(
            experiment, model=model.name, base_url=model.base_url, out=folder, fresh=True, quiet=True
        )
    [row] = json.loads((folder / "report.json").read_text())["blame"]
    return row, folder


def blamed(row: dict[str, Any]) -> list[Any]:
    names = ("hallucinated", "retriever", "writer", "supported", "recall", "precision")
    return [row[name] for name in names]


@pytest.mark.parametrize("reply", [TRUE, INVENTED])
def test_where_searches_find_nothing_the_retriever_is_to_blame(pack: Path, reply: str) -> None:
    row, folder = run(pack, reply, "halludetect", attack=EMPTY)
    assert blamed(row) == [1, 1, 0, 0, 0.0, None]
    [held] = map(json.loads, (folder / "conversations.jsonl").read_text().splitlines())
    assert held["turns"][0]["passages"] == []
    assert held["turns"][0]["steps"][-1] == {"name": "attacked search", "text": f"empty: {ASKED}"}
    assert json.loads((folder / "experiment.json").read_text())["planted"]["retrieval"] == {
        "empty_ratio": 1.0,
        "stale_ratio": 0.0,
        "top_k": None,
    }
    assert "halludetect,search,missed,1,1,1.0,1,1.0" in (folder / "concentration.csv").read_text()


def test_a_writer_that_invents_is_to_blame(pack: Path) -> None:
    row, folder = run(pack, INVENTED, "lexical")
    assert blamed(row) == [1, 0, 1, 0, 1.0, 1.0]
    assert "lexical,search,among the passages,1,1,1.0,1,1.0" in (folder / "concentration.csv").read_text()
    assert (folder / "report-blame.csv").read_text().splitlines()[
        1
    ] == "lexical,vanilla,1,1.0,0.0,,,1.0,0.0,0.0,1.0,1,1.0,1"
    assert "Whose fault hallucinated replies are" in (folder / "report.html").read_text()


def test_a_judge_that_is_wrong_is_seen(pack: Path) -> None:
    row, _ = run(pack, TRUE, "halludetect")
    assert blamed(row) == [1, 0, 0, 1, 1.0, 1.0]


def test_a_writer_that_repeats_an_outdated_passage_is_not_to_blame(pack: Path) -> None:
    said = "The water in the kettle boils at 100 degrees. A kettle of cold water takes 3 minutes."
    (pack / "documents" / "kettle.md").write_text(f"# The kettle\n\n{said}\n")
    old = "A kettle of cold water takes 5 minutes."
    row, folder = run(pack, old, "halludetect", attack={"retrieval": {"stale_ratio": 1.0}})
    [held] = map(json.loads, (folder / "conversations.jsonl").read_text().splitlines())
    assert old in held["turns"][0]["passages"][0]["text"]
    assert blamed(row) == [1, 1, 0, 0, 1.0, 1.0]
    assert (folder / "attacks.csv").read_text().splitlines()[1:] == [
        "vanilla,outdated passage,search,all,1,1,0,1,1.0,,"
    ]


def test_a_later_report_has_the_same_unless_the_documents_are_others_now(pack: Path) -> None:
    said = "The water in the kettle boils at 100 degrees. A kettle of cold water takes 3 minutes."
    (pack / "documents" / "kettle.md").write_text(f"# The kettle\n\n{said}\n")
    attack = {"poison_ratio": 1.0, "retrieval": {"empty_ratio": 1.0}}
    row, folder = run(pack, INVENTED, "halludetect", attack=attack)
    write_reports(RunFolder(folder))
    assert json.loads((folder / "report.json").read_text())["blame"] == [row]
    (pack / "documents" / "pot.md").write_text("# The pot\n\nA pot holds six cups.\n")
    write_reports(RunFolder(folder))
    assert json.loads((folder / "report.json").read_text())["blame"] == []
    assert len((folder / "report-blame.csv").read_text().splitlines()) == 1
