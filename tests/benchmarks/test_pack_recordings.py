"""The parts of recorded answers that are kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.pack_recordings import lean, main, pack
from hallulab.agents.models.recording import Recording


def token(word: str, logprob: float) -> dict[str, Any]:
    return {"token": word, "logprob": logprob, "bytes": list(word.encode())}


def entry(*likely: dict[str, Any]) -> dict[str, Any]:
    content = [{**likely[0], "top_logprobs": list(likely)}]
    message = {"role": "assistant", "content": "Yes"}
    choice = {"index": 0, "message": message, "finish_reason": "length", "logprobs": {"content": content}}
    usage = {"prompt_tokens": 9, "total_tokens": 10, "completion_tokens": 1}
    body = {"id": "chatcmpl-1", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return {"kind": "model", "key": "k", "answer": {"status": 200, "latency_s": 1.2345, "body": body}}


def test_of_a_decision_the_options_are_kept() -> None:
    found = lean(entry(token("Yes", -0.1234567), token("The", -2.0), token(" no", -3.5)))
    yes = {"token": "Yes", "logprob": -0.12346}
    assert found["answer"] == {
        "status": 200,
        "latency_s": 1.23,
        "body": {
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "Yes"},
                    "finish_reason": "length",
                    "logprobs": {
                        "content": [{**yes, "top_logprobs": [yes, {"token": " no", "logprob": -3.5}]}]
                    },
                }
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        },
    }


def test_of_a_decision_without_options_all_is_kept() -> None:
    found = lean(entry(token("A", -0.5), token("B", -1.0)))
    [content] = found["answer"]["body"]["choices"][0]["logprobs"]["content"]
    assert [one["token"] for one in content["top_logprobs"]] == ["A", "B"]


def test_other_entries_stay_as_they_are() -> None:
    vector = {"kind": "vector", "key": "k", "answer": "AAAA"}
    assert lean(vector) == vector


def test_a_folder_is_packed_and_can_be_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = tmp_path / "from" / "d.judge.jsonl"
    recorded.parent.mkdir()
    recorded.write_text(json.dumps(entry(token("Yes", -0.1))) + "\n")
    monkeypatch.setattr("sys.argv", ["pack", str(recorded.parent), str(tmp_path / "to")])
    main()
    packed = tmp_path / "to" / "d.judge.jsonl.gz"
    assert Recording.replay(packed).get("model", "k") == lean(entry(token("Yes", -0.1)))["answer"]
    again = tmp_path / "again.gz"
    assert pack(recorded, again) == 1
    assert again.read_bytes() == packed.read_bytes()
    assert gzip.decompress(again.read_bytes()).count(b"\n") == 1
