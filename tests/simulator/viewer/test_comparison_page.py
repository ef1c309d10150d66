"""Conversations laid out beside each other, and addresses of what is side by side that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hallulab.scenarios.transcript import Passage
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.comparison_page import BesideColumn, lay_out_beside
from hallulab.simulator.viewer.results import RunComparisons
from tests.builders import conversation, scored, unscored
from tests.simulator.viewer.serving import Served, append, serving
from tests.simulator.viewer.test_pages import hostile_run, id_of


def test_turns_are_laid_out_by_depth_with_the_findings_of_all_detectors(served: Served) -> None:
    run = served.runs.list()[0]
    long = conversation("a", ["one two", "three"])
    turn = long.turns[0].model_copy(
        update={"passages": (Passage(id="p#0", document="p", text="One. The x."),)}
    )
    long = long.model_copy(update={"turns": (turn, *long.turns[1:])})
    verdicts = [scored("a", 0, [(4, 7)]), scored("a", 0, [(0, 7)], detector="e"), unscored("a", 1)]
    first, second = lay_out_beside(
        [BesideColumn(run, long, verdicts), BesideColumn(run, conversation("b", ["x"]), [])], ["d", "e"]
    )
    left, right = first.cells
    assert left is not None
    assert right is not None
    assert [(piece.text, piece.findings) for piece in left.pieces] == [("one ", (1,)), ("two", (0, 1))]
    assert [one.detector for one in left.findings] == [0, 1]
    assert [(one.shown.passage, one.shown.sentence) for one in left.findings] == [(0, 1), (0, 1)]
    assert (left.states, right.states) == (("flagged", "flagged"), ("missing", "missing"))
    assert (first.flagging, second.flagging) == ([0, 1], [])
    assert second.cells[1] is None
    assert second.cells[0] is not None
    assert second.cells[0].states == ("failed", "missing")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("beside")
    for name in ("one", "other"):
        run = RunFolder(base / "runs" / name)
        run.path.mkdir(parents=True)
        append(run.conversations, [conversation("a", ["x"]), conversation("b", ["x"], "editor")])
        append(run.verdicts, [scored("a", 0, [(0, 1)] if name == "one" else [])])
    hostile_run(base / "runs" / "hostile")
    with serving([base / "runs"], base / "indices") as viewer:
        yield viewer


@pytest.mark.parametrize(
    "path",
    [
        "/runs/{one}/beside/unknown",
        "/runs/unknown/beside/a",
        "/runs/{one}/beside/..%2f..%2fone",
        "/beside",
        "/beside?run={one}",
        "/beside?run={one}&chat=unknown",
        "/beside?run=..%2fone&chat=a",
        "/compare?reference=unknown&run={one}",
        "/compare?reference={one}&run=..%2f..%2fetc",
    ],
)
def test_what_is_not_there_is_not_found(served: Served, path: str) -> None:
    assert served.get(path.replace("{one}", id_of(served, "one")))[0] == 404


@pytest.mark.parametrize("query", ["", "?reference={one}", "?reference={one}&run={one}", "?run={one}"])
def test_a_comparison_needs_a_reference_and_another_run(served: Served, query: str) -> None:
    status, page = served.get(f"/compare{query.replace('{one}', id_of(served, 'one'))}")
    assert status == 200
    assert "Choose a reference and at least one other run" in page


def test_an_unknown_chatbot_shows_all(served: Served) -> None:
    _, page = served.get(f"/runs/{id_of(served, 'one')}/beside/a?bot=unknown")
    assert page.count('class="cell head"') == 2


@pytest.mark.parametrize("number", range(4))
def test_hostile_texts_stay_text(served: Served, number: int) -> None:
    status, page = served.get(f"/runs/{id_of(served, 'hostile')}/beside/c{number}")
    assert status == 200
    assert "<img" not in page
    assert "<svg onload" not in page


def test_a_comparison_is_made_once_until_a_run_changes(served: Served) -> None:
    runs = {run.name: run for run in served.runs.list()}
    found = RunComparisons()
    pair = [runs["one"], runs["other"]]
    first = found.compare(pair)
    assert first.compared is not None
    assert [turn.kind for turn in first.compared.runs[0].turns.turns] == ["gone"]
    assert found.compare(pair) is first
    append(runs["other"].folder.conversations, [conversation("c", ["x"], persona="ravi")])
    assert found.compare(pair) is not first


def test_runs_of_too_many_conversations_are_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.simulator.viewer.results.MOST", 1)
    runs = [run for run in served.runs.list() if run.name != "hostile"]
    for run in runs:
        run.updater.update()
    reason = RunComparisons().compare(runs).reason
    assert reason is not None
    assert "has more than 1 conversations" in reason
    assert f"`hallulab compare {runs[0].folder.path} {runs[1].folder.path} --html FILE`" in reason


def test_a_run_that_cannot_be_summarized_is_told(tmp_path: Path) -> None:
    for name in ("one", "other"):
        run = RunFolder(tmp_path / "runs" / name)
        run.path.mkdir(parents=True)
        twice = [conversation("a", ["x"]), conversation("b", ["x"])]
        append(run.conversations, twice if name == "one" else twice[:1])
    with serving([tmp_path / "runs"], tmp_path / "indices") as viewer:
        _, page = viewer.get(f"/compare?reference={id_of(viewer, 'one')}&run={id_of(viewer, 'other')}")
        assert '<p class="note">' in page
