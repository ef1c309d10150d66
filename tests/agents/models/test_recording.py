from __future__ import annotations

import gzip
import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.models.recording import Recording
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import digest
from tests.kit.refusals import refusal


def test_a_digest_is_known_and_does_not_depend_on_key_order() -> None:
    assert digest({"b": [1, "é"], "a": None}) == digest({"a": None, "b": [1, "é"]})
    assert digest([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5"
    assert digest("a") != digest("b")


@given(st.dictionaries(st.text(), st.integers()))
def test_a_digest_is_32_hex_digits_of_the_value_alone(value: dict[str, int]) -> None:
    assert len(digest(value)) == 32
    assert digest(value) == digest(dict(reversed(value.items())))


def test_the_first_answer_to_a_key_wins() -> None:
    recording = Recording()
    assert recording.put("note", "k", {"n": 1}) == {"n": 1}
    assert recording.put("note", "k", {"n": 2}) == {"n": 1}
    assert recording.get("note", "k") == {"n": 1}
    assert recording.get("search", "k") is None
    assert len(recording) == 1


def test_an_empty_recording_is_one() -> None:
    empty = Recording()
    assert len(empty) == 0
    assert (empty or None) is empty


def test_what_is_recorded_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    recording.put("note", "k", {"text": "naïve ₹"})
    recording.put("note", "k", {"text": "other"})
    recording.close()
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1
    replayed = Recording.replay(path)
    assert replayed.get("note", "k") == {"text": "naïve ₹"}
    assert (replayed.replaying, replayed.source, len(replayed)) == (True, path, 1)


def test_recording_again_reuses_and_adds(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = Recording.record(path)
    first.put("note", "a", 1)
    first.close()
    second = Recording.record(path)
    assert second.get("note", "a") == 1
    assert not second.replaying
    second.put("note", "b", 2)
    second.close()
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "b"]


def test_a_torn_line_in_a_recording_is_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    whole = '{"kind":"note","key":"a","answer":1}\n'
    path.write_text(whole + '{"kind":"note","key":"b","ans')
    assert Recording.replay(path).get("note", "b") is None
    recording = Recording.record(path)
    recording.put("note", "b", 2)
    recording.close()
    assert path.read_text() == whole + '{"kind":"note","key":"b","answer":2}\n'


@pytest.mark.parametrize("precious", ['{"very": "precious"}', '{"kind":"note"}', "notes", "[1, 2"])
def test_a_file_that_is_no_recording_is_left_as_it_is(tmp_path: Path, precious: str) -> None:
    path = tmp_path / "precious.json"
    path.write_text(precious)
    assert refusal(Recording.record, path) == (
        f"--record {path}: the file is there, and no recording. Give another file, or delete that one."
    )
    assert path.read_text() == precious


@pytest.mark.parametrize("torn", ["", "{", '{"ki', '{"kind":"note","key":"a","answer":1}'])
def test_recording_goes_on_in_a_file_of_one_torn_entry(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(torn)
    recording = Recording.record(path)
    recording.put("note", "a", 1)
    recording.put("note", "b", 2)
    recording.close()
    assert path.read_text() == (
        '{"kind":"note","key":"a","answer":1}\n{"kind":"note","key":"b","answer":2}\n'
    )


def test_a_packed_recording_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    text = "one\u2028two\x85three"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        entry = {"kind": "note", "key": "a", "answer": text}
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    assert Recording.replay(path).get("note", "a") == text


def test_a_recording_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    with pytest.raises(
        UsageError, match=r"--replay .*none\.jsonl: no such recording\. Make one with --record"
    ):
        Recording.replay(path)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        *((".jsonl", text) for text in (b"", b"\n", b'{"kind":"note","key":"a","ans')),
        *((".jsonl.gz", text) for text in (b"", b"\n")),
    ],
)
def test_a_file_without_an_answer_is_not_replayed(tmp_path: Path, suffix: str, text: bytes) -> None:
    path = tmp_path / f"r{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    assert refusal(Recording.replay, path) == (
        f"--replay {path}: the file holds no recorded answer. Name a recording that does, or make one with "
        "--record."
    )


@pytest.mark.parametrize(
    "line",
    [
        *('{"kind":"note","key":"a"}', "[1]", '"kind key answer"'),
        *(f'{{"kind":{value},"key":"a","answer":1}}' for value in ("[]", '["x"]', "{}", "7", "null")),
        *(f'{{"kind":"note","key":{value},"answer":1}}' for value in ("[]", '["x"]', "{}", "7", "null")),
    ],
)
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"kind":"note","key":"a","answer":1}\n' + line + "\n")
    with pytest.raises(UsageError, match=r"r\.jsonl, line 2: not an entry of a recording"):
        Recording.replay(path)


def test_a_damaged_packed_recording_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"kind":"note","key":"a","answer":1}\n' * 50)[:40])
    with pytest.raises(OperationalError, match=r"r\.jsonl\.gz: cannot be read as a recording"):
        Recording.replay(path)


def test_a_file_that_is_only_named_as_packed_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_text('{"kind":"note","key":"a","answer":1}\n')
    with pytest.raises(
        UsageError, match=r"r\.jsonl\.gz: not packed with gzip\. Name it \.jsonl, or pack it\."
    ):
        Recording.replay(path)


def test_a_folder_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--replay .*: this is a folder\. Name a recording in it\.$"):
        Recording.replay(tmp_path)
    with pytest.raises(UsageError, match=r": this is a folder\. Name a file\.$"):
        Recording.record(tmp_path)


def test_recording_into_a_packed_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--record .*r\.jsonl\.gz: a packed file cannot grow"):
        Recording.record(tmp_path / "r.jsonl.gz")


ANSWER = {"status": 200, "latency_s": 1.5, "body": {"choices": []}}


def entry(answer: object, kind: str = "model") -> str:
    return json.dumps({"kind": kind, "key": "a", "answer": answer}) + "\n"


def told_of(path: Path) -> str:
    """Return what is wrong with a recording of `ANSWER`; nothing where it is replayed."""
    try:
        answer = Recording.replay(path).get("model", "a")
    except Exception as error:  # noqa: BLE001 - any is told with its place
        return f"{type(error).__name__}: {error}"
    return "" if answer == ANSWER else f"answered {answer}"


def test_a_flipped_bit_in_a_packed_recording_is_one_sentence_or_changes_nothing(tmp_path: Path) -> None:
    """Of some bytes of the header nothing depends."""
    path = tmp_path / "r.jsonl.gz"
    packed = gzip.compress(entry(ANSWER).encode(), mtime=0)
    wrong: list[tuple[int, int, str]] = []
    # Changed in place, because emptying a file takes some disks milliseconds.
    path.write_bytes(packed)
    with path.open("r+b", buffering=0) as file:
        for place, bit in product(range(len(packed)), range(8)):
            file.seek(place)
            file.write(bytes([packed[place] ^ 1 << bit]))
            told = told_of(path)
            if told and not told.startswith(f"OperationalError: {path}: cannot be read as a recording ("):
                wrong.append((place, bit, told))
            file.seek(place)
            file.write(packed[place : place + 1])
    assert wrong == []
    assert told_of(path) == ""


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
@pytest.mark.parametrize("line", ["[" * 200_000, '{"kind":' * 200_000, '{"kind":"model","key":"\\ud800"}'])
def test_a_line_that_no_parser_reads_is_one_sentence(tmp_path: Path, suffix: str, line: str) -> None:
    path = tmp_path / f"r{suffix}"
    path.write_bytes(gzip.compress(f"{line}\n".encode()) if suffix.endswith("gz") else f"{line}\n".encode())
    with pytest.raises((UsageError, OperationalError)) as caught:
        Recording.replay(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        (1, "answer: "),
        ({**ANSWER, "latency_s": 1.7e308}, "answer.latency_s: "),
        ({**ANSWER, "latency_s": -1}, "answer.latency_s: "),
        ({**ANSWER, "latency_s": "soon"}, "answer.latency_s: "),
        ({**ANSWER, "status": 7}, "answer.status: "),
        ({**ANSWER, "status": "fine"}, "answer.status: "),
        ({**ANSWER, "body": []}, "answer.body: "),
        ({"status": 200, "latency_s": 1}, "answer.body: "),
    ],
)
def test_an_answer_that_no_endpoint_gave_is_named(tmp_path: Path, answer: object, where: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(entry(ANSWER).replace('"a"', '"b"') + entry(answer))
    said = refusal(Recording.replay, path)
    assert said.startswith(f"{path}, line 2: {where}")
    assert said.endswith(". Restore the recording, or make a new one.")


@pytest.mark.parametrize("found", [{}, "d#0", [["d#0"]], [["d#0", None]], [[1, 0.5]], [["d#0", 1e300]]])
def test_a_search_that_no_knowledge_base_gave_is_named(tmp_path: Path, found: object) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(entry(found, "search"))
    with pytest.raises(UsageError, match=r"r\.jsonl, line 1: answer"):
        Recording.replay(path)


@pytest.mark.parametrize("value", ["b\ud800", float("nan"), float("inf"), [[float("-inf")]], {"\udfff": 1}])
def test_what_cannot_be_written_again_is_not_replayed(tmp_path: Path, value: object) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(entry({**ANSWER, "body": {"a": value}}))
    with pytest.raises(UsageError, match=r"r\.jsonl, line 1: "):
        Recording.replay(path)


def test_a_packed_recording_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.models.recording._LARGEST", 1000)
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 1001))
    with pytest.raises(UsageError, match=r"unpacks to more than 1,000 bytes\. Split the recording\."):
        Recording.replay(path)


def test_answers_of_a_stretch_are_forgotten_when_it_ends() -> None:
    recording = Recording()
    with recording.stretch():
        recording.put("model", "a", {"x": 1})
        assert recording.get("model", "a") == {"x": 1}
    assert (recording.get("model", "a"), len(recording)) == (None, 0)


def test_an_answer_stays_while_a_stretch_goes_on_that_had_begun_when_it_was_used() -> None:
    recording = Recording()
    first, second = recording.stretch(), recording.stretch()
    first.__enter__()
    recording.put("model", "a", 1)
    second.__enter__()
    recording.put("model", "b", 2)
    first.__exit__(None, None, None)
    assert (recording.get("model", "a"), recording.get("model", "b")) == (None, 2)
    second.__exit__(None, None, None)
    assert len(recording) == 0


def test_an_answer_that_is_used_again_stays_for_those_under_way() -> None:
    recording = Recording()
    with recording.stretch():
        recording.put("model", "a", 1)
        later = recording.stretch()
        later.__enter__()
        assert recording.get("model", "a") == 1
    assert recording.get("model", "a") == 1
    later.__exit__(None, None, None)
    assert len(recording) == 0


def test_answers_outside_any_stretch_are_kept() -> None:
    recording = Recording()
    recording.put("model", "a", 1)
    with recording.stretch():
        recording.put("model", "b", 2)
    assert (recording.get("model", "a"), recording.get("model", "b")) == (1, None)


def test_answers_of_a_file_are_kept(tmp_path: Path) -> None:
    recording = Recording.record(tmp_path / "a.jsonl")
    with recording.stretch():
        recording.put("model", "a", 1)
    assert recording.get("model", "a") == 1
    recording.close()
