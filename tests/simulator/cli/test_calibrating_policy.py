"""`hallulab calibrate --policy`: thresholds of a safeguard's topics, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.chatbots.guarded.policy import load_policy
from hallulab.scenarios.text.spans import split_words
from hallulab.testing.scripted import Script, ScriptedTransport, last_user, pool_through
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

PACK = "pregnancy-medication"
SERVED = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--quiet")


def supported(body: dict[str, Any]) -> dict[str, float]:
    """Support: 0.1 where the evidence lacks a word, of other replies 0.57 where they are long, else 0.9."""
    evidence, _, rest = last_user(body).partition("\n\nResponse:\n")
    reply = rest.partition("\n\nIs every piece")[0]
    held = set(split_words(reply.removeprefix("Yes. "))) <= set(split_words(evidence))
    yes = 0.1 if not held else 0.57 if len(reply) > 150 else 0.9
    return {"Yes": yes, "No": 1 - yes}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Callable[[Script], None]:
    """Serves a script in place of the network."""

    def serve(script: Script) -> None:
        made = pool_through(ScriptedTransport(script, "m", "a/model"))
        monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", made)

    return serve


def test_a_policy_gets_thresholds_that_pass_grounded_replies(
    hallulab: CommandLine, endpoint: Callable[[Script], None], tmp_path: Path
) -> None:
    """A grounded reply that the model supports with 0.57 has S = 0.43: τ = 0.3 flags it."""
    endpoint(supported)
    out, recording, strict = tmp_path / "mine.yaml", tmp_path / "r.jsonl", tmp_path / "strict.yaml"
    built_in = (ROOT / "chatbots" / "guarded" / "policies" / "metarag.yaml").read_text()
    strict.write_text(built_in.replace("probability: 0.49", "probability: 0.3"))
    command = ("calibrate", PACK, "--policy", strict, "--detectors", "direct-judge", "--count", "70")
    ended = hallulab(*command, *SERVED, "--out", out, "--record", recording, "--json")
    assert (ended.code, ended.err) == (0, "")
    rows = {row["topic"]: row for row in json.loads(ended.out)["rows"]}
    found = rows["pregnancy"]
    assert found["controls"] >= 60
    assert (found["before"], found["threshold"]) == (0.3, 0.431)
    assert found["flagged_before"] > 0.1
    assert (found["flagged"], found["flagged_held_out"]) == (0.0, 0.0)
    assert 0.5 < found["recall"] < found["recall_before"]
    assert rows["asylum"]["not_fitted"] == "0 grounded controls, and 60 are needed (--count plants more)"
    written = load_policy(str(out))
    assert written.decision(["pregnancy"], {"pregnancy": 0.3}, False).threshold == 0.431
    before = load_policy(str(strict)).resolve("probability")
    assert written.decision(["asylum"], {}, False) == before.decision(["asylum"], {}, False)
    assert out.read_text().startswith(
        "# Thresholds of topics by `hallulab calibrate --policy`: with the detector direct-judge,\n"
        "# at most 10% of the grounded replies that they were fitted to reach those of: pregnancy.\n"
        "# All others are as they were.\n"
    )
    again = hallulab(
        *(*command, "--model", "m", "--replay", recording, "--quiet"), "--out", tmp_path / "other.yaml"
    )
    assert again.code == 0
    assert "Thresholds of direct-judge on 70 errors planted into pregnancy-medication" in again.out
    assert "asylum: stays as it is: 0 grounded controls" in again.out
    assert (tmp_path / "other.yaml").read_bytes() == out.read_bytes()


def test_a_detector_that_fails_on_part_writes_nothing(
    hallulab: CommandLine, endpoint: Callable[[Script], None], tmp_path: Path
) -> None:
    def failing(body: dict[str, Any]) -> Any:
        text = last_user(body)
        broken = "Response:" in text and len(text) % 2
        return httpx2.Response(400, json={"error": {"message": "too hot"}}) if broken else supported(body)

    endpoint(failing)
    out = tmp_path / "mine.yaml"
    ended = hallulab(
        *("calibrate", PACK, "--policy", "metarag", "--detectors", "direct-judge", "--count", "60"),
        *(*SERVED, "--out", out),
    )
    assert ended.code == 1
    assert "and 90% are needed; nothing is written. The first reason:" in ended.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policy", "metarag"), "--policy and --out go together"),
        (("--out", "{out}"), "--policy and --out go together"),
        (("--policy", "none", "--out", "{out}"), "none: no such policy"),
        (
            ("--policy", "metarag", "--out", "{out}", "--data", "x.jsonl"),
            "--data x.jsonl: a policy is fitted",
        ),
        (
            ("--policy", "metarag", "--out", "{out}", "--detectors", "lexical,combined"),
            "a policy is for one detector. Name it with --detectors.",
        ),
        (
            ("--policy", "metarag", "--out", "{out}", "--detectors", "halludetect"),
            "detector halludetect: its scores are not from 0 to 1",
        ),
        (
            ("--policy", "metarag", "--out", "{out}", "--detectors", "lexical", "--count", "30"),
            "no threshold is fitted, nothing is written: pregnancy: 30 grounded controls, and 60 are needed",
        ),
    ],
)
def test_bad_input_is_a_sentence_and_writes_nothing(
    hallulab: CommandLine, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    out = tmp_path / "mine.yaml"
    ended = hallulab("calibrate", PACK, *(part.format(out=out) for part in arguments), "--quiet")
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert not out.exists()
