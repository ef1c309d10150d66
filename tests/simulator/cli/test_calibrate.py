"""`hallulab calibrate`: detectors and thresholds of topics; what it fits, keeps and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.chatbots.guarded.policy import load_policy
from hallulab.scenarios.text.spans import split_words
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import Script, ScriptedTransport, last_user, pool_through
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

RECORDINGS = ROOT / "tests" / "recordings"
PACK = "consumer-grievance-india"


def fits(folder: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "cache" / "calibrations").glob("*"))]


def test_a_fit_is_kept_and_used_from_then_on(hallulab: CommandLine, tmp_path: Path) -> None:
    ended = hallulab("calibrate", PACK, "--detectors", "lexical", "--count", "40", "--quiet")
    assert ended.code == 0
    assert f"Thresholds fitted to 40 errors planted into {PACK}, with clean twins" in ended.out
    assert "Note: the clean twins are sentences copied from the documents." in ended.out
    [kept] = fits(tmp_path)
    assert hallulab("make-data", "planted", PACK, "--out", tmp_path / "p", "--count", "28").code == 0
    numbers = tmp_path / "numbers.json"
    assert hallulab("bench", tmp_path / "p", "--detectors", "lexical", "--json", numbers).code == 0
    [row] = [row for row in json.loads(numbers.read_text())["rows"] if row["detector"] == "lexical"][:1]
    assert row["threshold_protocol"] == "calibrated"
    assert row["thresholds"]["default"]["threshold"] == kept["threshold"]
    again = hallulab("calibrate", PACK, "--detectors", "lexical", "--count", "40", "--quiet", "--json")
    [said] = json.loads(again.out)["detectors"]
    assert (said["before"], said["before_protocol"]) == (kept["threshold"], "calibrated")
    assert fits(tmp_path) == [kept]


def test_a_run_is_corrected_by_the_calibration_of_the_detector_that_judged_it(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    """No reply of these two personas is clean, so that the errors stand in sentences of passages."""
    folder = RunFolder(tmp_path / "run")
    model = ("--model", "qwen2.5-coder-1.5b")
    replay = ("--replay", RECORDINGS / "headline.jsonl.gz", "--quiet")
    personas = ("--personas", "agartala-which-commission,upi-failed-transfer")
    run = hallulab(
        "run", "-c", ROOT / "examples" / "headline.yaml", *personas, *model, *replay, "--out", folder.path
    )
    assert (run.code, run.err) == (0, "")
    ended = hallulab(
        *("calibrate", folder.path, "--detectors", "halludetect", "--count", "460", "--quiet", "--json"),
        *(*model, "--replay", RECORDINGS / "planted" / "halludetect.jsonl.gz"),
    )
    assert (ended.code, ended.err) == (0, "")
    told = json.loads(ended.out)
    assert [note.partition(".")[0] for note in told["notes"]] == [
        "the clean twins are sentences copied from the documents"
    ]
    [said] = told["detectors"]
    assert (said["before"], said["before_protocol"], said["coverage"]) == (4.0, "tuned", 1.0)
    assert said["threshold"] == pytest.approx(2.175, abs=0.001)
    assert said["balanced_accuracy"] == pytest.approx(0.835, abs=0.001)
    report = json.loads(folder.report.read_text())
    assert {row["source"] for row in report["corrected"]} == {None}
    judged = hallulab("detect", folder.path, "--detectors", "halludetect", *replay)
    assert judged.code == 0
    report = json.loads(folder.report.read_text())
    sources = {row["detector"]: row["source"] for row in report["corrected"]}
    assert sources == {"halludetect": "calibration", "metarag": None}


def test_labelled_replies_are_fitted_to_beside_the_planted_errors(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    lines = [
        {
            "id": str(n),
            "passages": [{"id": "p", "document": "d", "text": "The fee is 200 rupees."}],
            "reply": "It costs nothing at all." if n % 2 else "The fee is 200 rupees.",
            "label": bool(n % 2),
        }
        for n in range(6)
    ]
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = hallulab(
        *("calibrate", PACK, "--detectors", "lexical", "--count", "40", "--quiet", "--data", mine, "--json")
    )
    assert ended.code == 0
    said = json.loads(ended.out)
    assert said["measured_on"] == f"40 errors planted into {PACK}, with clean twins; 6 replies of {mine}"
    assert said["detectors"][0]["replies"] == 86
    assert said["notes"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("no-such-pack", "--detectors", "lexical"), 2, "no-such-pack"),
        ((PACK, "--detectors", "no-such"), 2, "no-such"),
        ((PACK, "--detectors", "hhem"), 2, "detector hhem: its threshold cannot be fitted. Leave it out"),
        ((PACK, "--detectors", "lexical", "--data", "nowhere.jsonl"), 2, "nowhere.jsonl"),
        ((PACK, "--detectors", "lexical", "--count", "19"), 2, "--count"),
        (("no-such-pack", "--detectors", "combined"), 2, "no-such-pack"),
        ((PACK, "--detectors", "combined", "--data", "nowhere.jsonl"), 2, "nowhere.jsonl"),
        ((PACK, "--detectors", "combined,hhem"), 2, "detector hhem: its threshold cannot be fitted"),
        (
            ("no-such-pack", "--detectors", "combined", "--policy", "metarag", "--out", "mine.yaml"),
            2,
            "no-such-pack",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_and_nothing_is_kept(
    hallulab: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    """Not even the model in the package is loaded for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "hallulab.detectors.combined.detector._load_once", lambda _: pytest.fail("it was loaded")
    )
    ended = hallulab("calibrate", *arguments, "--quiet")
    assert ended.code == code
    assert told in ended.err
    assert not fits(tmp_path)


def test_too_few_errors_are_the_reason_and_nothing_is_kept(hallulab: CommandLine, tmp_path: Path) -> None:
    documents = tmp_path / "mine"
    documents.mkdir()
    text = " ".join(
        f"The fee of office {n} is {n}00 rupees and must be paid within {n} days." for n in range(2, 40)
    )
    (documents / "fees.md").write_text(text)
    ended = hallulab("calibrate", documents, "--detectors", "lexical", "--count", "30", "--quiet")
    assert ended.code == 1
    assert ended.err == (
        "error: no threshold could be fitted, nothing is kept: lexical: it scored 18 hallucinated and 18 "
        "clean replies, and a threshold takes 20 of each.\n"
    )
    assert not fits(tmp_path)


MEDICINE = "pregnancy-medication"
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
    command = ("calibrate", MEDICINE, "--policy", strict, "--detectors", "direct-judge", "--count", "70")
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
        *("calibrate", MEDICINE, "--policy", "metarag", "--detectors", "direct-judge", "--count", "60"),
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
    ended = hallulab("calibrate", MEDICINE, *(part.format(out=out) for part in arguments), "--quiet")
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert not out.exists()
