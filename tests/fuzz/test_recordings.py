"""Recordings in which anything stands: replayed and added to, they give a run or one sentence.

Most examples read a recording as a replay does. The others are whole commands.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import completion
from hallulab.testing.tiny_pack import flags, make_pack, words_for_vectors
from tests.fuzz.anything import changed, damaged, documents, written_leniently
from tests.fuzz.honest import Honest, emptied
from tests.fuzz.promises import check_whole, ended, examples, keeping

ENTRIES: list[object] = [
    {"kind": "model", "key": "a", "answer": {"status": 200, "latency_s": 0.5, "body": completion("Hello.")}},
    {
        "kind": "model",
        "key": "b",
        "answer": {"status": 200, "latency_s": 0.5, "body": completion({"Yes": 0.25, "No": 0.75})},
    },
    {"kind": "search", "key": "c", "answer": [["kettle#0", 0.5]]},
]


@st.composite
def recordings(draw: st.DrawFn, entries: Sequence[object]) -> bytes:
    """The lines of a recording: one entry with anything in it, or any bytes at any place."""
    lines = [written_leniently(entry) for entry in entries]
    place = draw(st.integers(0, len(lines) - 1))
    lines[place] = draw(documents(entries[place]))
    held = b"\n".join(lines) + draw(st.sampled_from([b"\n", b"\n", b"\n", b"", b"\n\n", b"\r\n"]))
    return draw(damaged(held)) if draw(st.integers(0, 3)) == 0 else held


@st.composite
def packed(draw: st.DrawFn, held: st.SearchStrategy[bytes]) -> bytes:
    """The same packed, and one in two damaged after that."""
    found = gzip.compress(draw(held), mtime=0)
    return draw(damaged(found)) if draw(st.booleans()) else found


@examples(400)
@given(
    held=st.one_of(recordings(ENTRIES), packed(recordings(ENTRIES))),
    suffix=st.sampled_from([".jsonl", ".jsonl.gz"]),
)
def test_a_recording_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, held: bytes, suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"read{suffix}"
    path.write_bytes(held)
    said = ""
    try:
        recording = Recording.replay(path)
    except (UsageError, OperationalError) as error:
        said = str(error)
    else:
        for kind, key in recording._answers:
            json.dumps(recording.get(kind, key), allow_nan=False, ensure_ascii=False).encode()
            _usable(kind, recording.get(kind, key))
    assert path.read_bytes() == held
    assert "\n" not in said
    assert len(said) < 1000


def _usable(kind: str, answer: object) -> None:
    if kind == "model":
        assert isinstance(answer, dict)
        assert 100 <= answer["status"] < 600
        assert 0 <= answer["latency_s"] <= 1e9
    if kind == "search":
        assert isinstance(answer, list)
        assert all(isinstance(name, str) and abs(score) <= 1e12 for name, score in answer)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a pack and the recording of a run of it."""
    folder = tmp_path_factory.mktemp("recordings")
    with (
        pytest.MonkeyPatch.context() as patched,
        words_for_vectors(),
        patch("hallulab.agents.models.transport.make_network", lambda: Honest()),
    ):
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        pack = make_pack(folder / "pack")
        made = ended(*flags(pack, "--out", folder / "run", "--record", folder / "recording.jsonl"))
        assert made.code == 0
        yield folder


def _entries(folder: Path) -> list[object]:
    return [json.loads(line) for line in (folder / "recording.jsonl").read_text().splitlines()]


@examples(40)
@given(data=st.data())
def test_a_replay_ends_and_what_it_wrote_can_be_read(recorded: Path, data: st.DataObject) -> None:
    folder = emptied(recorded / "replay")
    path = folder / data.draw(st.sampled_from(["r.jsonl", "r.jsonl.gz"]))
    held = recordings(_entries(recorded))
    path.write_bytes(data.draw(packed(held) if path.suffix == ".gz" else held))
    run = RunFolder(folder / "run")
    with keeping(folder):
        said = ended(*flags(recorded / "pack", "--replay", path, "--out", run.path))
    if said.code == 0:
        assert run.read_conversations()
        assert ended("report", run.path).code == 0
    # What was replayed by halves is gone on with.
    whole = ended(*flags(recorded / "pack", "--replay", recorded / "recording.jsonl", "--out", run.path))
    assert whole.code == 0
    assert all(conversation.stop_reason != "error" for conversation in run.read_conversations())


@examples(30)
@given(data=st.data())
def test_adding_to_a_recording_loses_nothing_of_it(recorded: Path, data: st.DataObject) -> None:
    folder = emptied(recorded / "record")
    path = folder / "r.jsonl"
    path.write_bytes(data.draw(recordings(_entries(recorded))) + b"\n")
    with keeping(folder, grows=["r.jsonl"]):
        said = ended(*flags(recorded / "pack", "--record", path, "--out", folder / "run"))
    if said.code == 0:
        check_whole(path)


@examples(30)
@given(data=st.data())
def test_a_recording_of_which_fields_are_changed_is_no_traceback(recorded: Path, data: st.DataObject) -> None:
    """Every entry at once, so that the first one read is not the only one that is met."""
    path = recorded / "changed.jsonl"
    lines = [written_leniently(data.draw(changed(entry))) for entry in _entries(recorded)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    ended(*flags(recorded / "pack", "--replay", path, "--out", recorded / "never", "--fresh"))
