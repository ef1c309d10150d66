"""What the viewer's addresses answer, for ordinary runs and for hostile ones."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Passage, Span, Turn
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import list_shards
from hallulab.simulator.viewer import conversation_page
from hallulab.simulator.viewer.conversation_page import A_PAGE
from hallulab.simulator.viewer.index import Rate
from hallulab.simulator.viewer.responses import read_scripts
from hallulab.simulator.viewer.runs import ShownRuns
from hallulab.simulator.viewer.runs_page import find_fewest
from tests.builders import conversation, scored
from tests.simulator.viewer.serving import Served, append, serving

HOSTILE = (
    "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>",
    '</title></style><svg onload="window.hit = 1">{{ 7 * 7 }}{% raw %}',
    "\u202eevil\u2066 \x1b[31mred\x1b[0m \x00 &amp; &#60;b&#62; javascript:window.hit=1",
    "x" * 1_000_000,
)
"""Texts that a model or a document may have."""


def hostile_run(folder: Path) -> RunFolder:
    """A run with such texts in every field that a page shows."""
    run = RunFolder(folder)
    for number, text in enumerate(HOSTILE):
        short = text[:200]
        chat = conversation(f"c{number}", [text], short, short, manner=short, user_model=short)
        turn = chat.turns[0]
        passage = Passage(id=short, document=short, text=text)
        turn = Turn(index=0, user=text, query=text, reply=turn.reply, passages=(passage,))
        span = Span(start=0, end=min(20, len(text)), text=text[:20], reason=text, evidence=short)
        verdict = scored(chat.id, 0).model_copy(update={"spans": (span,), "flagged": True, "detector": short})
        append(run.conversations, [chat.model_copy(update={"turns": (turn,)})])
        append(run.verdicts, [verdict])
    return run


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("viewer")
    chats = [conversation(f"id{number}", ["one", "two"], persona="asha") for number in range(A_PAGE + 5)]
    run = RunFolder(base / "runs" / "plain")
    run.path.parent.mkdir()
    append(run.conversations, chats)
    append(run.verdicts, [scored("id3", 1, [(0, 2)])])
    hostile_run(base / "runs" / "hostile")
    (base / "secret.txt").write_text("secret")
    (base / "runs" / "link").symlink_to(base)
    with serving([base / "runs"], base / "indices") as viewer:
        yield viewer


def id_of(served: Served, name: str) -> str:
    return next(run.id for run in served.runs.list() if run.name == name)


def test_the_runs_of_a_folder_are_listed(served: Served) -> None:
    status, page = served.get("/")
    assert status == 200
    assert f'<a href="/runs/{id_of(served, "plain")}">plain</a>' in page
    assert {run.name for run in served.runs.list()} == {"plain", "hostile"}


def test_a_runs_page_has_the_reports_findings(served: Served) -> None:
    status, page = served.get(f"/runs/{id_of(served, 'plain')}")
    assert status == 200
    assert "<b>55</b> conversations" in page
    assert "HPT-1" in page
    assert "<svg" in page


def test_conversations_are_paged(served: Served) -> None:
    id = id_of(served, "plain")
    _, first = served.get(f"/runs/{id}/conversations")
    _, second = served.get(f"/runs/{id}/conversations?page=2")
    assert first.count("/conversations/id") == A_PAGE
    assert second.count("/conversations/id") == 5
    assert "page 2 of 2" in second


def test_a_persona_of_many_is_typed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_page, "MOST_NAMES", 1)
    _, page = served.get(f"/runs/{id_of(served, 'hostile')}/conversations?persona=%22%3Cimg%20src=x%3E")
    assert '<input id="persona" name="persona" value="&#34;&lt;img src=x&gt;"' in page
    assert '<select id="persona"' not in page


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 40, "1e3", "c2b2"])
def test_a_page_that_is_no_number_or_too_large_is_no_error(served: Served, page: str) -> None:
    assert served.get(f"/runs/{id_of(served, 'plain')}/conversations?page={page}")[0] == 200


def test_the_next_flagged_turn_is_led_to(served: Served) -> None:
    id = id_of(served, "plain")
    status, page = served.get(f"/runs/{id}/conversations/id0/next/0")
    assert status == 200
    assert 'id="turn-1" data-turn="1" data-flagged' in page


OUTSIDE = [
    "/secret.txt",
    "/../secret.txt",
    "/runs/../secret.txt",
    "/runs/..%2f..%2fsecret.txt",
    "/runs/%2e%2e/%2e%2e/secret.txt",
    "/runs/..%5csecret.txt",
    "/runs//etc/passwd",
    "/runs/%2fetc%2fpasswd",
    "/runs/link",
    "/runs/{run}/../../secret.txt",
    "/runs/{run}/conversations/../../../secret.txt",
    "/runs/{run}/conversations/..%2f..%2fsecret.txt",
    "/runs/{run}/conversations/%2fetc%2fpasswd",
    "/runs/{run}/conversations/id0%00",
    "/runs/{run}/conversations/' OR 1=1 --".replace(" ", "%20"),
    "/runs/{run}/experiment.json",
    "/runs/{run}/conversations.jsonl",
    "/runs/{run}%00",
    "/static/../../secret.txt",
    "/file:///etc/passwd",
    "/runs/{run}/conversations/id0/sideways/0",
    "/runs/{run}/conversations/id0/next/x",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_of_the_runs_is_shown(served: Served, path: str) -> None:
    status, body = served.get(path.replace("{run}", id_of(served, "plain")))
    assert status in (404, 400)
    assert "secret" not in body.replace("secret.txt", "")
    assert "root:" not in body


@pytest.mark.parametrize("path", ["/nowhere", "/runs/none", "/runs/{run}/conversations/none"])
def test_an_address_that_leads_nowhere_has_a_page_with_a_way_back_and_a_text_for_scripts(
    served: Served, path: str
) -> None:
    path = path.replace("{run}", id_of(served, "plain"))
    status, page = served.get(path, accept="text/html")
    assert (status, page.count("<h1>There is no such page</h1>")) == (404, 1)
    assert '<a href="/">All runs</a>' in page
    said = "The run, conversation or turn was removed or renamed.\n"
    assert served.get(path) == (404, said)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_texts_stay_text(served: Served, number: int) -> None:
    status, page = served.get(f"/runs/{id_of(served, 'hostile')}/conversations/c{number}")
    assert status == 200
    assert page.count("<script>") == len(read_scripts())
    assert "<img" not in page
    assert "<svg onload" not in page
    text = HOSTILE[number][:200].replace("\x00", "")
    assert text[:60] in html.unescape(page).replace("\x00", "")


@pytest.mark.parametrize("path", ["", "/conversations", "/conversations?flagged=1", "/live"])
def test_hostile_names_stay_text(served: Served, path: str) -> None:
    status, page = served.get(f"/runs/{id_of(served, 'hostile')}{path}")
    assert status == 200
    assert "<img" not in page
    assert "window.hit = 1</script>" not in page


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        ShownRuns([tmp_path / "runs"])


def test_a_damaged_experiment_is_told_in_a_sentence(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    append(run.conversations, [conversation("a", ["x"])])
    run.experiment.write_text(json.dumps([]))
    with serving([run.path], tmp_path / "indices") as viewer:
        assert viewer.get(f"/runs/{id_of(viewer, 'run')}") == (
            500,
            f"{run.experiment}: not an object. Restore it or use --fresh.\n",
        )


def damage_experiment(run: RunFolder) -> None:
    run.experiment.write_text("{")


def add_a_shard(run: RunFolder) -> None:
    append(list_shards(run.conversations)[0], [conversation("b", ["x"])])


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [(damage_experiment, "experiment.json: "), (add_a_shard, "journals are in one file or in shards.")],
)
def test_a_damaged_run_leaves_the_others_on_the_page_of_all(
    tmp_path: Path, damage: Callable[[RunFolder], None], sentence: str
) -> None:
    good, bad = (RunFolder(tmp_path / "runs" / name) for name in ("good", "<b>bad"))
    good.path.parent.mkdir()
    for run in (good, bad):
        append(run.conversations, [conversation("a", ["x"])])
    damage(bad)
    with serving([good.path.parent], tmp_path / "indices") as viewer:
        status, page = viewer.get("/")
        assert (status, sentence in page, "<b>bad" in page) == (200, True, False)
        assert viewer.get(f"/runs/{id_of(viewer, 'good')}")[0] == 200
        status, told = viewer.get(f"/runs/{id_of(viewer, '<b>bad')}")
        assert (status, sentence in told) == (500, True)


def test_the_fewest_hallucinations_are_those_a_turn() -> None:
    rates = [
        Rate("a", "d", 10, 5, 4, 0),
        Rate("b", "d", 4, 1, 4, 0),
        Rate("c", "d", 0, 0, 4, 0),
        Rate("a", "e", 0, 0, 4, 0),
    ]
    assert find_fewest(rates) == [("d", ["b"], 0.25, False)]


def test_a_chatbot_that_declines_never_has_the_fewest_hallucinations() -> None:
    rates = [Rate("a", "d", 4, 2, 4, 0), Rate("silent", "d", 4, 0, 0, 4)]
    assert find_fewest(rates) == [("d", ["a"], 0.5, False)]


def test_all_that_tie_have_the_fewest_hallucinations() -> None:
    rates = [Rate("a", "d", 6, 2, 6, 0), Rate("b", "d", 3, 1, 3, 0), Rate("c", "d", 4, 4, 4, 0)]
    assert find_fewest(rates) == [("d", ["a", "b"], 2 / 6, False)]


def test_where_all_tie_none_has_the_fewest_hallucinations() -> None:
    rates = [Rate("a", "d", 6, 2, 6, 0), Rate("b", "d", 3, 1, 3, 0), Rate("a", "e", 2, 1, 2, 0)]
    assert find_fewest(rates) == [("d", ["a", "b"], 2 / 6, True), ("e", ["a"], 0.5, False)]
