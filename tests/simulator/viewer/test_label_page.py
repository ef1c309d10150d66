"""Labelling over the viewer's addresses: what is written, told and refused."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets.annotations import read_annotations
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Span
from hallulab.simulator.annotate.marks import MarkedFlag
from hallulab.simulator.metrics.corrected import CorrectedSection
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import report_of
from hallulab.simulator.viewer.index import RunIndex
from hallulab.simulator.viewer.labels import map_shown, name_annotator
from tests.builders import conversation, scored
from tests.simulator.viewer.serving import Served, append, serving
from tests.simulator.viewer.test_pages import HOSTILE, hostile_run, id_of

FLAG = MarkedFlag("d", 5, 11, "Rs 500").id
REPLY = "Fee: Rs 500.\r\nIt takes 3 days 😀 or so."


def small_run(folder: Path) -> RunFolder:
    """Eight personas with two turns each; the first one's reply is flagged."""
    run = RunFolder(folder)
    span = Span(start=5, end=11, text="Rs 500", severity=4, reason="It is Rs 200.")
    for number in range(8):
        name = f"c{number}"
        append(run.conversations, [conversation(name, [REPLY, "Yes."], persona=name)])
        flagged = scored(name, 0).model_copy(update={"spans": (span,), "flagged": True, "score": 0.9})
        append(run.verdicts, [flagged, scored(name, 1)])
    return run


@contextmanager
def serving_small_run(folder: Path) -> Iterator[Served]:
    (folder / "runs").mkdir()
    small_run(folder / "runs" / "small")
    with serving([folder / "runs"], folder / "indices") as viewer:
        yield viewer


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving_small_run(tmp_path) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests whose requests are refused."""
    with serving_small_run(tmp_path_factory.mktemp("untouched")) as viewer:
        yield viewer


def post(served: Served, path: str, body: Any, **headers: str | None) -> tuple[int, Any]:
    """The status and the JSON or text of an answer to a request that writes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, text = served.post(path, data, **({"content-type": "application/json"} | headers))
    return status, json.loads(text) if text.startswith("{") else text


def press(served: Served, run: str = "small", **key: Any) -> tuple[int, Any]:
    said = {"conversation": "c0", "turn": 0, **key}
    return post(served, f"/runs/{id_of(served, run)}/marks", said)


def folder_of(served: Served, name: str = "small") -> RunFolder:
    return next(run.folder for run in served.runs.list() if run.name == name)


def labels(served: Served, name: str = "small") -> list[tuple[str, int, list[tuple[str, int, str]]]]:
    found = read_annotations(folder_of(served, name).annotations)
    return [
        (line.annotator, line.turn, [(span.quote, span.severity, span.reason) for span in line.spans])
        for _, line in found
    ]


def test_a_flag_that_is_called_right_becomes_a_label_with_its_words(served: Served) -> None:
    status, told = press(served, kind="right", flag=FLAG, annotator="Asha")
    assert status == 200
    assert labels(served) == [("person:Asha", 0, [("Rs 500", 4, "It is Rs 200.")])]
    assert told["turns"][0] == {
        "turn": 0,
        "drawn": False,
        "flags": [{"flag": FLAG, "stands": True, "mark": "right"}],
        "missed": [],
        "line": {
            "spans": [{"quote": "Rs 500", "severity": 4, "reason": "It is Rs 200.", "start": None}],
            "unknown": False,
        },
    }


def test_a_severity_of_ones_own_counts_before_the_detectors(served: Served) -> None:
    press(served, kind="right", flag=FLAG, severity=1)
    assert labels(served) == [("person", 0, [("Rs 500", 1, "It is Rs 200.")])]


def test_a_flag_that_another_one_replaced_is_not_labelled(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    run = RunFolder(tmp_path / "runs" / "small")
    append(run.conversations, [conversation("c0", [REPLY])])
    append(
        run.verdicts, [scored("c0", 0).model_copy(update={"spans": (Span(start=24, end=30, text="3 days"),)})]
    )
    with serving([tmp_path / "runs"], tmp_path / "indices") as viewer:
        status, told = press(viewer, kind="right", flag=FLAG)  # of a page with the flag of another version
    said = "Load the page again: this turn does not have that flag any more."
    assert (status, told["error"], run.marks.exists()) == (400, said, False)


def test_selected_words_are_found_in_the_reply_as_it_is_stored(served: Served) -> None:
    # A browser has one line end where the reply has two characters.
    shown = REPLY.replace("\r\n", "\n")
    start = shown.index("3 days 😀")
    words: dict[str, Any] = {
        "start": start,
        "end": start + 8,
        "text": "3 days 😀",
        "severity": 2,
        "reason": "<b>Why</b>",
    }
    assert press(served, kind="missed", **words)[0] == 200
    assert press(served, kind="done")[0] == 200
    assert labels(served) == [("person", 0, [("3 days 😀", 2, "<b>Why</b>")])]


def test_undo_leads_to_the_turn_of_the_last_key(served: Served) -> None:
    press(served, kind="clean", conversation="c1", turn=1)
    status, told = press(served, kind="undo")
    assert (status, told["undone"], told["turn"]) == (200, "clean", 1)
    assert told["at"] == f"/runs/{id_of(served, 'small')}/conversations/c1#turn-1"
    assert labels(served) == []
    assert press(served, kind="undo")[1]["undone"] is None


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ({"kind": "maybe"}, "kind"),
        ({"kind": "clean", "more": 1}, "more"),
        ({"kind": "clean", "turn": 9}, "no turn 9"),
        ({"kind": "clean", "conversation": "../../secret"}, "no turn 0"),
        ({"kind": "clean", "annotator": "a\nb"}, "characters that can be seen"),
        ({"kind": "clean", "annotator": "x" * 61}, "at most 60"),
        ({"kind": "right"}, "Load the page again"),
        ({"kind": "wrong", "flag": "x"}, "Load the page again"),
        ({"kind": "wrong", "flag": FLAG, "turn": 1}, "Load the page again"),
        ({"kind": "right", "flag": FLAG, "severity": 6}, "severity"),
        ({"kind": "missed", "start": 0, "end": 999, "text": "Fee"}, "do not stand"),
        ({"kind": "missed", "start": 0, "end": 3, "text": "fee"}, "other words"),
        ({"kind": "missed", "start": 3, "end": 3, "text": ""}, "do not stand"),
        ({"kind": "unknown", "adjudicate": True}, "`unknown` does not settle a turn"),
        ({"kind": "take", "takes": "person"}, "`take` needs `adjudicate`"),
        ({"kind": "clean", "adjudicate": True}, "Fewer than two annotators"),
    ],
)
def test_a_wrong_key_is_refused_with_a_reason(untouched: Served, key: dict[str, Any], reason: str) -> None:
    status, told = press(untouched, **key)
    assert status == 400
    assert reason in told["error"]
    assert not folder_of(untouched).marks.exists() or folder_of(untouched).marks.read_text() == ""


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'"x"', b"\xff"])
@pytest.mark.parametrize("path", ["marks", "draw"])
def test_what_is_no_object_is_refused(untouched: Served, path: str, body: bytes) -> None:
    status, told = post(untouched, f"/runs/{id_of(untouched, 'small')}/{path}", body)
    assert (status, list(told)) == (400, ["error"])


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": None},
        {"origin": "null"},
        {"x-hallulab": None},
        {"x-hallulab": "0"},
        {"cookie": None},
        {"sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["marks", "draw"])
def test_other_pages_write_nothing(untouched: Served, path: str, headers: dict[str, str | None]) -> None:
    before = sorted(file.name for file in folder_of(untouched).path.iterdir())
    said = {"conversation": "c0", "turn": 0, "kind": "clean"}
    status, _ = post(untouched, f"/runs/{id_of(untouched, 'small')}/{path}", said, **headers)
    assert status == 403
    assert sorted(file.name for file in folder_of(untouched).path.iterdir()) == before


def test_a_client_that_still_sends_sees_the_refusal_and_no_reset(served: Served) -> None:
    body = b"x" * 200_000
    with closing(HTTPConnection("127.0.0.1", served.listening.access.port, timeout=120)) as client:
        client.putrequest("POST", f"/runs/{id_of(served, 'small')}/marks")
        for name, value in (("content-length", str(len(body))), ("connection", "close")):
            client.putheader(name, value)
        client.endheaders()
        for part in (body[:100_000], body[100_000:]):
            time.sleep(0.2)
            client.send(part)
        answer = client.getresponse()
        told = answer.read().decode()
    assert answer.status == 403
    assert told.startswith("The token is missing or wrong.")


def test_an_address_that_writes_cannot_be_visited(served: Served) -> None:
    assert served.get(f"/runs/{id_of(served, 'small')}/marks")[0] == 405


def test_a_run_that_is_not_there_is_refused(served: Served) -> None:
    assert post(served, "/runs/none/marks", {})[0] == 400
    assert served.get("/runs/none/labels")[0] == 404


def test_the_numbers_are_those_of_the_report(served: Served) -> None:
    for number in range(8):
        kinds: list[dict[str, Any]] = [{"kind": "right", "flag": FLAG}, {"kind": "clean"}]
        press(served, conversation=f"c{number}", **kinds[number % 3 == 0])
    press(served, turn=1, kind="unknown")
    press(served, conversation="c1", turn=1, kind="clean")
    told = json.loads(served.get(f"/runs/{id_of(served, 'small')}/numbers")[1])
    run = folder_of(served)
    rows = report_of(run, run.read_journals()).of(CorrectedSection).corrected
    assert told["detector"] == "d"
    assert told["rows"] == [row.model_dump(mode="json", exclude={"detector"}) for row in rows]
    assert told["rows"][-1]["annotated"] == 9


def test_turns_are_drawn_once_and_keep_their_propensity(served: Served) -> None:
    path = f"/runs/{id_of(served, 'small')}/draw"
    status, told = post(served, path, {"annotator": "Asha"})
    assert (status, told["next"]["left"]) == (200, 16)
    assert post(served, path, {})[1]["error"] == "16 drawn turns wait. Label them first."
    chat, turn = told["next"]["address"].split("/")[-1].split("#turn-")
    press(served, conversation=chat, turn=int(turn), kind="clean")
    [(_, line)] = read_annotations(folder_of(served).annotations)
    assert (line.draw, line.propensity) == (1, 1.0)


def test_a_guideline_of_the_run_is_kept_by_the_page(served: Served) -> None:
    folder_of(served).annotations.write_text(
        '{"conversation": "c7", "turn": 1, "key": "k", "spans": [], "guideline": "abc"}\n'
    )
    press(served, kind="clean")
    assert [line.guideline for _, line in read_annotations(folder_of(served).annotations)] == ["abc", "abc"]


def test_the_page_of_labels_has_agreement_and_conflicts(served: Served) -> None:
    assert "Nobody yet." in served.get(f"/runs/{id_of(served, 'small')}/labels")[1]
    for name, kind in (("Asha", "clean"), ("<img src=x>", "clean")):
        press(served, kind=kind, annotator=name, turn=1)
    press(served, kind="clean", annotator="Asha")
    press(served, kind="right", flag=FLAG, annotator="<img src=x>")
    status, page = served.get(f"/runs/{id_of(served, 'small')}/labels")
    assert status == 200
    assert "<img" not in page
    assert "person:&lt;img src=x&gt;, person:Asha" in page
    assert f'<a href="/runs/{id_of(served, "small")}/settle/c0/0">c0, turn 1</a>' in page
    assert '<td class="n">2</td><td class="n">1</td><td class="n">0.00</td>' in page
    assert "No gamma of person:&lt;img src=x&gt; and person:Asha: one of them marked no place." in page
    assert "<b>1</b> conflict open, <b>0</b> settled." in page


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_texts_are_labelled_as_they_are(served: Served, tmp_path: Path, number: int) -> None:
    hostile_run(tmp_path / "runs" / "hostile")
    text = HOSTILE[number]
    shown = text.replace("\0", "")
    words: dict[str, Any] = {
        "start": 0,
        "end": min(500, len(shown)),
        "text": shown[:500],
        "reason": shown[:200],
    }
    about = {"conversation": f"c{number}", "turn": 0}
    assert press(served, "hostile", kind="missed", severity=3, **about, **words)[0] == 200
    assert press(served, "hostile", kind="done", **about)[0] == 200
    [(_, _, [(quote, _, reason)])] = labels(served, "hostile")
    assert quote.replace("\0", "") == shown[:500]
    assert reason == shown[:200]


def test_a_folder_with_a_link_out_is_not_written(served: Served, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("")
    folder_of(served).annotations.symlink_to(tmp_path / "outside")
    status, told = press(served, kind="clean")
    assert status == 400
    assert "leads out of the run folder" in told["error"]
    assert (tmp_path / "outside").read_text() == ""


def test_line_ends_and_nul_are_mapped() -> None:
    assert map_shown("a\r\nb\rc\0d") == [0, 1, 3, 4, 5, 7, 8]


@pytest.mark.parametrize(
    ("given", "name"),
    [("", "person"), ("person", "person"), (" Asha ", "person:Asha"), ("model:m", "model:m")],
)
def test_annotators_are_named(given: str, name: str) -> None:
    assert name_annotator(given) == name


@pytest.mark.parametrize("given", ["model:", "a\tb", "\u202ea", "x" * 61])
def test_a_name_that_cannot_be_read_is_refused(given: str) -> None:
    with pytest.raises(UsageError):
        name_annotator(given)


def replace_failed(served: Served) -> None:
    """Label a failed conversation's turn; then its next try succeeds."""
    run = folder_of(served)
    append(run.conversations, [conversation("f", ["No."], persona="f", stop_reason="error", error="late")])
    assert press(served, conversation="f", kind="clean")[0] == 200
    append(run.conversations, [conversation("f-try2", ["Yes."], persona="f")])


def test_a_label_of_a_conversation_that_was_replaced_locks_nobody_out(served: Served) -> None:
    replace_failed(served)
    status, told = press(served, conversation="c1", turn=1, kind="clean")
    assert (status, told["turns"][1]["line"]) == (200, {"spans": [], "unknown": False})


def test_undo_of_a_key_in_a_replaced_conversation_stays_on_the_page(served: Served) -> None:
    replace_failed(served)
    status, told = press(served, conversation="c1", turn=1, kind="undo")
    at = f"/runs/{id_of(served, 'small')}/conversations/c1#turn-1"
    assert (status, told["undone"], told["turn"], told["at"]) == (200, "clean", None, at)


def test_labels_of_a_replaced_conversation_are_left_out_of_numbers_and_counted(served: Served) -> None:
    replace_failed(served)
    press(served, kind="clean")
    run = f"/runs/{id_of(served, 'small')}"
    status, text = served.get(f"{run}/numbers")
    assert (status, [row["annotated"] for row in json.loads(text)["rows"]]) == (200, [1, 1])
    status, page = served.get(f"{run}/labels")
    said = "Labels left out, because their conversations do not count any more: 1."
    assert (status, said in page) == (200, True)


def test_a_key_is_refused_while_the_last_marks_conversation_may_not_be_read_yet(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(served, kind="clean")
    monkeypatch.setattr(RunIndex, "grow", lambda index: True)
    status, told = press(served, conversation="unread", kind="clean")
    said = "The journals of this run are still being read. Try again in a moment."
    assert (status, told["error"]) == (400, said)
