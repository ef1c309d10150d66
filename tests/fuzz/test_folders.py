"""Run folders that hold anything: what is derived from one is whole, or refused in one sentence.

A folder of a run is changed: any value in any field of its files, any bytes at any place, lines that are
missing, doubled or in another order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hallulab import Run, UsageError
from hallulab.scenarios.datasets.rows import load_rows
from hallulab.scenarios.transcript import Call, Conversation, Passage, Span, Step, Turn, Unit, Verdict
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.app import make_app
from hallulab.simulator.viewer.guard import Access, Guard
from hallulab.simulator.viewer.runs import ShownRuns
from hallulab.testing.tiny_pack import make_pack
from tests.fuzz.anything import TEXTS, damaged, documents, written_leniently
from tests.fuzz.promises import check_whole, ended, examples, keeping

Files = dict[str, bytes]
"""Name of a file of the run folder → what it holds."""

REPORTS = ("report.json", "report.csv", "report.html", "concentration.csv")
OLD = b"{}"
"""What was in the reports before."""
TIES = ("id", "conversation", "turn", "index", "outcome", "stop_reason", "start", "end", "reply")
NASTY = "\x1b[31m\u202e[bold]</script>\n"
"""A name that terminals, libraries and browsers obey."""
EVIDENCE = (Passage(id="kettle#0", document="kettle", text="A kettle takes three minutes.", score=0.5),)
CALL = Call(
    purpose="chatbot.reply",
    model="m",
    prompt_tokens=9,
    completion_tokens=3,
    latency_s=0.5,
    finish_reason="stop",
)


def _conversation(id: str, seed: int, *replies: str, **more: Any) -> Conversation:
    turns = tuple(
        Turn(
            index=index,
            user="How long does a kettle take to boil?",
            query="kettle time",
            passages=EVIDENCE,
            reply=reply,
            steps=(Step(name="draft", text=reply),),
            calls=(CALL,),
        )
        for index, reply in enumerate(replies)
    )
    values = {"persona": "ann", "chatbot": "vanilla", "model": "m", "stop_reason": "max_turns", **more}
    return Conversation.model_validate({"id": id, "scenario": "tiny", "seed": seed, "turns": turns, **values})


def _verdict(id: str, turn: int, **more: Any) -> Verdict:
    values = {"outcome": "scored", "score": 0.5, "flagged": True, "spans": (), **more}
    return Verdict.model_validate(
        {"conversation": id, "turn": turn, "detector": "d", "version": "1", **values}
    )


SPAN = Span(
    start=3, end=8, text="takes", score=0.5, reason="not so", evidence="A kettle takes three minutes."
)
NOWHERE = Span(start=None, end=None, text="five hours", severity=3.0)
CONVERSATIONS = [
    _conversation("a", 0, "It takes three minutes.", "You are welcome."),
    _conversation("b", 1, "It takes", stop_reason="error", error="chatbot vanilla: no answer", calls=(CALL,)),
    _conversation("b-try2", 1, "It takes five hours."),
    _conversation("c", 0, "Wer weiß. 😀", chatbot="mine"),
]
VERDICTS = [
    _verdict("a", 0, spans=(SPAN, NOWHERE), calls=(CALL,)),
    _verdict("a", 1, outcome="failed", score=None, flagged=None, spans=None, error="no answer"),
    _verdict("a", 1, flagged=False, word_scores=(0.1, 0.2, 0.3)),
    _verdict("b", 0, spans=None, units=(Unit(text="It", start=0, end=2, details={"p": 0.5, "q": None}),)),
    _verdict("b-try2", 0, outcome="abstained", score=None, flagged=None, spans=None, error="no words"),
]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The pack that the run is of."""
    folder = tmp_path_factory.mktemp("folders")
    with pytest.MonkeyPatch.context() as patched, patch("webbrowser.open"):
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        yield make_pack(folder / "pack")


def _experiment(pack: Path) -> dict[str, Any]:
    mine = {"name": "mine", "kind": "callable", "options": {"target": "my_bot:answer", "a": [1, {"b": 0.5}]}}
    chosen = {"scenario": str(pack), "model": "m", "chatbots": ["vanilla", mine], "detectors": ["lexical"]}
    return {
        "schema": 1,
        "hallulab": "0.1.0",
        "packages": {},
        "experiment": load_experiment(None, chosen).model_dump(mode="json"),
        "identity": {"scenario": "tiny 1"},
        "seeds": [0, 1],
        "model_revision": None,
        "detectors": {"d": "1"},
    }


@st.composite
def alike(draw: st.DrawFn, value: Any) -> Any:
    """A JSON document with other values of the same kind in places: a reader has to look at them."""
    found = json.loads(json.dumps(value))
    leaves = _leaves(found)
    # What ties lines together is changed seldom: else hardly a folder would be read to its end.
    free = [(holder, step) for holder, step in leaves if step not in TIES]
    for _ in range(draw(st.integers(1, 3))):
        holder, step = draw(st.sampled_from(draw(st.sampled_from([free, free, free, leaves]))))
        holder[step] = draw(_of_kind(holder[step]))
    return found


def _leaves(value: Any) -> list[tuple[Any, Any]]:
    """Every value that holds no other: what holds it, and its key or index there."""
    found: list[tuple[Any, Any]] = []
    for step in range(len(value)) if isinstance(value, list) else list(value):
        inner = value[step]
        found += _leaves(inner) if isinstance(inner, dict | list) and inner else [(value, step)]
    return found


def _of_kind(value: Any) -> st.SearchStrategy[Any]:
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.integers(0, 3) | st.integers()
    if isinstance(value, float):
        return st.floats()
    return TEXTS | st.sampled_from(["a", "b-try2", "c", "vanilla", "mine", "tiny", "1", "error", "d", NASTY])


@st.composite
def journals(draw: st.DrawFn, values: Sequence[Conversation] | Sequence[Verdict]) -> bytes:
    """A journal: one line with anything in it, lines out of order, or any bytes at any place."""
    lines = [value.model_dump(mode="json") for value in values]
    written = [written_leniently(line) for line in lines]
    kind = draw(st.sampled_from(["alike", "alike", "anything", "order", "bytes", "cut"]))
    if kind == "order":
        written = draw(st.lists(st.sampled_from(written), max_size=len(written) + 1))
    if kind in ("alike", "anything"):
        place = draw(st.integers(0, len(lines) - 1))
        any_way = (
            documents(lines[place]) if kind == "anything" else alike(lines[place]).map(written_leniently)
        )
        written[place] = draw(any_way)
    held = b"\n".join(written) + draw(st.sampled_from([b"\n", b"\n", b"\n", b"", b"\n\n", b"\r\n"]))
    if kind == "bytes":
        held = draw(damaged(held))
    return held[: draw(st.integers(0, len(held)))] if kind == "cut" else held


@st.composite
def folders(draw: st.DrawFn, pack: Path) -> Files:
    """The files of a run, one or two of them changed, and perhaps one missing."""
    experiment = _experiment(pack)
    ways = {
        "conversations.jsonl": journals(CONVERSATIONS),
        "verdicts.jsonl": journals(VERDICTS),
        "experiment.json": alike(experiment).map(written_leniently) | documents(experiment),
    }
    files = {
        "conversations.jsonl": _written(CONVERSATIONS),
        "verdicts.jsonl": _written(VERDICTS),
        "experiment.json": written_leniently(experiment),
    }
    for name in draw(st.lists(st.sampled_from(sorted(ways)), min_size=1, max_size=2, unique=True)):
        files[name] = draw(ways[name])
    missing = draw(st.sampled_from([None] * 8 + ["verdicts.jsonl", "experiment.json"]))
    return {name: held for name, held in files.items() if name != missing}


def _written(values: Sequence[Conversation] | Sequence[Verdict]) -> bytes:
    return b"".join(value.model_dump_json().encode() + b"\n" for value in values)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the folder of each example is made."""
    return tmp_path_factory.mktemp("run")


def _made(folder: Path, files: Files) -> RunFolder:
    """The run folder, with reports that were there before."""
    for path in folder.iterdir():
        path.unlink()
    for name, held in {**files, **dict.fromkeys(REPORTS, OLD)}.items():
        (folder / name).write_bytes(held)
    return RunFolder(folder)


def _require_all_or_none(run: RunFolder) -> bool:
    """Whether the reports are new; assert that all are, or none is. No run here is under attack."""
    assert not run.attacks.exists()
    new = {path.read_bytes() != OLD for path in run.derived if path != run.attacks}
    assert len(new) == 1
    return new.pop()


SHARED = [HealthCheck.function_scoped_fixture, *settings().suppress_health_check]


@settings(examples(300), suppress_health_check=SHARED)
@given(data=st.data(), shown=st.sampled_from(["table", "json"]))
def test_reports_are_made_of_a_folder_or_it_is_refused(
    pack: Path, folder: Path, data: st.DataObject, shown: str
) -> None:
    run = _made(folder, data.draw(folders(pack)))
    with keeping(folder, derived=REPORTS):
        said = ended("report", folder, *(["--json"] if shown == "json" else []))
    assert _require_all_or_none(run) == (said.code != 2)
    if said.code == 0 and shown == "json":
        assert json.loads(said.out) == json.loads(run.report.read_bytes())


@settings(examples(50), suppress_health_check=SHARED)
@given(data=st.data())
def test_a_folder_is_shown_or_the_reason_is_told(pack: Path, folder: Path, data: st.DataObject) -> None:
    run = _made(folder, data.draw(folders(pack)))
    with keeping(folder), TemporaryDirectory() as indices:
        runs = ShownRuns([folder], Path(indices))
        app = make_app(runs, ACCESS)
        shown = [one for one in runs.list() if one.folder.path == folder]
        assert bool(shown) == run.has_journal
        for one in shown:
            for page in ("", "/conversations", "/conversations?flagged=1"):
                status, text = ask(app, f"/runs/{one.id}{page}")
                assert status == 200 or (status == 500 and text.count("\n") == 1), text


ACCESS = Access(8765)


def ask(app: Guard, address: str) -> tuple[int, str]:
    """The status and the body of an answer of the viewer."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    path, _, query = address.partition("?")
    cookie = f"{ACCESS.cookie}={ACCESS.token}"
    headers = [(b"host", b"localhost:8765"), (b"cookie", cookie.encode())]
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "headers": headers}
    scope["query_string"] = query.encode()
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()


@settings(examples(100), suppress_health_check=SHARED)
@given(data=st.data())
def test_a_folder_becomes_frames_or_is_refused(pack: Path, folder: Path, data: st.DataObject) -> None:
    _made(folder, data.draw(folders(pack)))
    with keeping(folder):
        try:
            run = Run(folder)
            report = run.report()
        except UsageError:
            return
        turns, verdicts, spans = run.turns(), run.verdicts(), run.spans()
    for detector in {row.detector for row in report.rows}:
        assert sum(row.turns for row in report.rows if row.detector == detector) == len(turns)
    assert len(spans) == verdicts["spans"].sum()


@settings(examples(200), suppress_health_check=SHARED)
@given(data=st.data(), detector=st.sampled_from([None, "d"]))
def test_what_is_exported_can_be_measured_on(
    pack: Path, folder: Path, data: st.DataObject, detector: str | None
) -> None:
    _made(folder, data.draw(folders(pack)))
    out = pack.parent / "exported.jsonl"
    out.unlink(missing_ok=True)
    with keeping(folder):
        said = ended("export", folder, "--out", out, *(["--detector", detector] if detector else []))
    assert out.exists() == (said.code == 0)
    if said.code == 0:
        check_whole(out)
        assert sum(load_rows(out).left_out.values()) == (0 if detector else _lines_of(out))
        assert len(load_rows(out)) == (_lines_of(out) if detector else 0)


def _lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n")


@settings(examples(150), suppress_health_check=SHARED)
@given(data=st.data())
def test_a_folder_is_judged_or_refused_and_loses_nothing(
    pack: Path, folder: Path, data: st.DataObject
) -> None:
    run = _made(folder, data.draw(folders(pack)))
    journals = ("conversations.jsonl", "verdicts.jsonl")
    with keeping(folder, grows=journals, derived=(*REPORTS, "experiment.json")):
        said = ended("detect", folder, "--detectors", "lexical", "--quiet")
    _require_all_or_none(run)
    if said.code == 0:
        judged = {
            (one.conversation, one.turn) for one in run.read_journals().verdicts if one.detector == "lexical"
        }
        turns = {(held.id, turn.index) for held in run.read_conversations() for turn in held.turns}
        assert turns <= judged
        assert ended("report", folder).code == 0
