"""The files of waves: what they hold, and what is read of other people's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.redaction import make_redaction
from hallulab.agents.models.wave_files import Asked, Wave, WaveResult, WaveStore, clear_waves
from hallulab.scenarios.errors import UsageError

URL = "http://127.0.0.1:9/v1"
ASKED = Asked(f"{URL}/chat/completions", {"model": "m", "messages": []})


def result_of(line: dict[str, Any], folder: Path, key: str = "") -> WaveResult:
    """The result that a line of a batch tells."""
    store = WaveStore(folder, fresh=False)
    wave = store.write("api", URL, [ASKED])
    wave.raw.write_text(json.dumps({"custom_id": ASKED.id, **line}) + "\n")
    [(id, result)] = store.close(wave, make_redaction(key))
    assert id == ASKED.id
    return result


@pytest.mark.parametrize(
    ("line", "status", "body"),
    [
        ({"response": {"status_code": 200, "body": {"a": 1}}, "error": None}, 200, {"a": 1}),
        # OpenAI's error, in the response and without one.
        ({"response": {"status_code": 400, "body": {"error": {}}}}, 400, {"error": {}}),
        (
            {"response": None, "error": {"code": "batch_expired", "message": "late"}},
            500,
            {"error": {"code": "batch_expired", "message": "late"}},
        ),
        # vLLM's.
        (
            {"response": {"status_code": 400, "body": None}, "error": {"error": {"message": "long"}}},
            400,
            {"error": {"message": "long"}},
        ),
        ({"response": {"status_code": 400}, "error": "bad"}, 400, {"error": {"message": "bad"}}),
        # Nonsense.
        ({"response": {"status_code": 200}}, 500, {"error": {"message": "the batch gave no answer"}}),
        ({"response": {"status_code": "200", "body": {"a": 1}}}, 500, {"a": 1}),
        ({}, 500, {"error": {"message": "the batch gave no answer"}}),
        (
            {"response": {"status_code": 400, "body": [{"error": {"code": 400, "message": "no seed"}}]}},
            400,
            {"error": {"message": "no seed"}},
        ),
        ({"response": {"status_code": 400, "body": "no seed"}}, 400, {"error": {"message": "no seed"}}),
        (
            {"response": {"status_code": 200, "body": {"error": {"code": 429, "message": "slow down"}}}},
            429,
            {"error": {"code": 429, "message": "slow down"}},
        ),
        (
            {"response": {"status_code": 200, "body": {"error": "crashed"}}},
            500,
            {"error": "crashed"},
        ),
    ],
)  # fmt: skip
def test_a_line_tells_status_and_body(
    line: dict[str, Any], status: int, body: dict[str, Any], tmp_path: Path
) -> None:
    assert result_of(line, tmp_path) == WaveResult(status, body)


def test_a_key_is_in_no_file(tmp_path: Path) -> None:
    key = "sk-very-secret"
    said = {"response": {"status_code": 401, "body": {"error": {"message": f"{key} is no key"}}}}
    assert result_of(said, tmp_path, key).body == {"error": {"message": "[key] is no key"}}
    assert not any(key in file.read_text() for file in tmp_path.iterdir())


@pytest.mark.parametrize(("status", "known"), [(200, True), (400, True), (429, False), (500, False)])
def test_only_what_lasts_is_known_later(status: int, known: bool, tmp_path: Path) -> None:
    result = result_of({"response": {"status_code": status, "body": {"a": 1}}}, tmp_path)
    assert WaveStore(tmp_path, fresh=False).get(ASKED.id) == (result if known else None)
    assert WaveStore(tmp_path, fresh=True).get(ASKED.id) is None


def test_a_wave_says_to_whom_it_went(tmp_path: Path) -> None:
    wave = WaveStore(tmp_path, fresh=False).write("api", URL, [ASKED])
    wave.note("batch_1")
    told = json.loads((tmp_path / "wave-0001.json").read_text())
    assert (len(told.pop("token")), told) == (
        32,
        {"service": "api", "base_url": URL, "model": "m", "requests": 1, "batch": "batch_1"},
    )


def test_a_wave_at_an_api_is_taken_up_and_one_of_a_process_is_not(tmp_path: Path) -> None:
    store = WaveStore(tmp_path, fresh=False)
    at_api = store.write("api", URL, [ASKED])
    store.write("vllm", URL, [ASKED])
    [found] = WaveStore(tmp_path, fresh=False).open
    assert (found.number, found.state, found.taken_up) == (1, at_api.state, True)
    assert found.ids == frozenset({ASKED.id})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["wave-0001-input.jsonl", "wave-0001.json"]


def test_an_input_without_its_state_was_not_handed_over(tmp_path: Path) -> None:
    wave = WaveStore(tmp_path, fresh=False).write("api", URL, [ASKED])
    (tmp_path / "wave-0001.json").unlink()
    assert WaveStore(tmp_path, fresh=False).open == []
    assert not wave.input.exists()


def _write(folder: Path) -> Wave:
    return WaveStore(folder, fresh=False).write("api", URL, [ASKED])


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("wave-0001.json", "{", "wave-0001.json or wave-0001-input.jsonl is damaged"),
        ("wave-0001-input.jsonl", "{}\n", "wave-0001.json or wave-0001-input.jsonl is damaged"),
        ("wave-0001-output.jsonl", "[]\n", "wave-0001-output.jsonl, line 1: no result of a request"),
        ("wave-0001-output.jsonl", "[" * 9_999, "wave-0001-output.jsonl, line 1: no result of a request"),
        ("wave-0001-input.jsonl", "[" * 9_999, "wave-0001.json or wave-0001-input.jsonl is damaged"),
    ],
)
def test_a_damaged_file_is_told(name: str, text: str, complaint: str, tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=complaint):
        WaveStore(tmp_path, fresh=False)


def test_a_link_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "batch"
    wave = _write(folder)
    wave.output.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="a link, which is neither read nor written here"):
        WaveStore(folder, fresh=False)


def test_waves_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "batch"
    _write(folder)
    (folder / "mine.txt").touch()
    clear_waves(folder)
    assert [file.name for file in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    _write(folder)
    clear_waves(folder)
    assert not folder.exists()
