"""Conflicts over the viewer's addresses: what is shown, told, and read by the numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hallulab.scenarios.datasets.annotations import read_annotations
from tests.simulator.viewer.serving import Served, serving
from tests.simulator.viewer.test_label_page import FLAG, folder_of, press, small_run
from tests.simulator.viewer.test_pages import id_of

BAD = "<img src=x>"


@contextmanager
def serving_conflicts(folder: Path, other: str) -> Iterator[Served]:
    """Serve a run with two conflicts: Asha finds flags of `c0` and `c1` right, another calls these clean."""
    (folder / "runs").mkdir()
    small_run(folder / "runs" / "small")
    with serving([folder / "runs"], folder / "indices") as viewer:
        for chat in ("c0", "c1"):
            press(viewer, conversation=chat, kind="right", flag=FLAG, annotator="Asha")
            press(viewer, conversation=chat, kind="clean", annotator=other)
        yield viewer


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving_conflicts(tmp_path, BAD) as viewer:
        yield viewer


def path_of(served: Served, more: str) -> str:
    return f"/runs/{id_of(served, 'small')}/{more}"


def test_a_conflict_is_shown_with_a_lane_for_each_annotator(served: Served) -> None:
    status, page = served.get(path_of(served, "settle/c0/0"))
    assert status == 200
    assert "<img" not in page
    assert 'data-annotator="person:&lt;img src=x&gt;"' in page
    lane = page[page.index('data-annotator="person:Asha"') :]
    assert '<mark class="b1">Rs 500</mark>' in lane
    assert "<p>“Rs 500” <small>severity 4 of 5</small></p>" in lane


@pytest.mark.parametrize("more", ["settle/c0/9", "settle/nobody/0", "settle/..%2F..%2Fsecret/0"])
def test_a_turn_that_is_not_there_has_no_page(served: Served, more: str) -> None:
    assert served.get(path_of(served, more))[0] == 404


def test_a_decision_is_written_told_and_counted(served: Served) -> None:
    status, told = press(served, kind="take", takes="person:Asha", adjudicate=True, annotator="Cora")
    assert status == 200
    assert told["turns"] == [
        {
            "turn": 0,
            "flags": [],
            "missed": ["Rs 500"],
            "line": {
                "spans": [{"quote": "Rs 500", "severity": 4, "reason": "It is Rs 200.", "start": None}],
                "unknown": False,
            },
            "by": "person:Cora",
        }
    ]
    assert told["next"] == {"left": 1, "address": path_of(served, "settle/c1/0")}
    found = served.get(path_of(served, "labels"))[1]
    assert "<b>1</b> conflict open, <b>1</b> settled." in found
    assert "<td>1 by person:Cora</td>" in found
    assert 'scope="row">person:Cora' not in found  # no annotator of a turn of their own


def test_a_decision_counts_in_the_corrected_number_before_the_first_line(served: Served) -> None:
    path = path_of(served, "numbers")
    before = json.loads(served.get(path)[1])["rows"][-1]["corrected_hpt_1"]
    press(served, kind="clean", adjudicate=True, annotator="Cora")
    after = json.loads(served.get(path)[1])["rows"][-1]["corrected_hpt_1"]
    assert after < before
    lines = [line for _, line in read_annotations(folder_of(served).annotations) if line.adjudicates]
    assert [(line.annotator, line.spans) for line in lines] == [("person:Cora", ())]


def test_undo_of_a_decision_leads_to_the_conflict(served: Served) -> None:
    press(served, kind="clean", adjudicate=True, annotator="Asha")
    status, told = press(served, kind="undo", annotator="Asha", conversation="c5")
    assert (status, told["undone"], told["at"]) == (200, "clean", path_of(served, "settle/c0/0"))
    assert told["turns"][0]["line"] is None
    told = press(served, kind="undo", annotator="Asha")[1]
    assert (told["undone"], told["at"]) == ("right", path_of(served, "conversations/c1#turn-0"))


def test_the_page_of_a_conversation_does_not_show_what_settles_its_turns(served: Served) -> None:
    press(served, kind="take", takes=f"person:{BAD}", adjudicate=True, annotator="Asha")
    told = json.loads(served.get(path_of(served, "conversations/c0/marks?annotator=Asha"))[1])
    assert [span["quote"] for span in told["turns"][0]["line"]["spans"]] == ["Rs 500"]


def test_conflicts_under_another_guideline_lead_nowhere(served: Served) -> None:
    lines = [
        {"conversation": "c7", "turn": 1, "key": "k", "spans": spans, "guideline": "abc", "annotator": name}
        for name, spans in (("person:Asha", []), ("person:Ben", [{"quote": "Yes", "severity": 2}]))
    ]
    with folder_of(served).annotations.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)
    page = served.get(path_of(served, "labels"))[1]
    assert "<td>c7, turn 2 <small>under guideline abc</small></td>" in page
    assert "<code>hallulab view --guideline FILE</code>" in page
