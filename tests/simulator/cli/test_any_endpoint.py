"""Whole runs against endpoints that lack something: five chatbots, two judges, and what the report says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.fuzz.promises import ended
from tests.simulator.command_line import Ended
from tests.simulator.limited_endpoint import (
    Limit,
    ignoring,
    limited_endpoint,
    plain,
    printed_word,
    refusing,
    thinking,
)

ALL = {
    "model": "stub",
    "decisions": "log-probabilities",
    "seed": "kept",
    "json": "JSON schema",
    "asked": True,
    "asked_with": [],
    "under_test": False,
}


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("endpoints")
    with pytest.MonkeyPatch.context() as patched, words_for_vectors():
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        yield make_pack(folder / "pack")


def run(pack: Path, url: str, out: Path, *more: str | Path) -> Ended:
    """All chatbots and the default judges, one persona, one turn."""
    flags = ("--model", "stub", "--base-url", url, "--min-turns", "1", "--max-turns", "1", "--quiet")
    return ended("run", "--scenario", pack, "--out", out, *flags, *more)


@pytest.mark.parametrize(
    ("limit", "differs", "line"),
    [
        (ignoring(), {}, "log-probabilities, JSON schema, seed kept."),
        (refusing("logprobs"), {"decisions": "printed word"}, "printed word, JSON schema, seed kept."),
        (ignoring("logprobs"), {"decisions": "printed word"}, "printed word, JSON schema, seed kept."),
        (ignoring("seed"), {"seed": "ignored"}, "log-probabilities, JSON schema, seed ignored."),
        (refusing("seed"), {"seed": "refused"}, "log-probabilities, JSON schema, seed refused."),
        (
            refusing("response_format"),
            {"json": "asked for in the prompt"},
            "log-probabilities, JSON asked for in the prompt, seed kept.",
        ),
        (
            ignoring("response_format"),
            {"json": "asked for in the prompt"},
            "log-probabilities, JSON asked for in the prompt, seed kept.",
        ),
        (
            thinking(),
            {
                "decisions": "printed word",
                "asked_with": ["max_completion_tokens in place of max_tokens", "no temperature"],
            },
            "printed word, JSON schema, seed kept; it was asked with: "
            "max_completion_tokens in place of max_tokens, no temperature.",
        ),
        (
            plain("seed"),
            {
                "decisions": "printed word",
                "seed": "refused",
                "asked_with": ["no names of messages", "the system's text in the user's message"],
            },
            "printed word, JSON schema, seed refused; it was asked with: ",
        ),
        (
            refusing("logprobs", "seed", "response_format"),
            {"decisions": "printed word", "seed": "refused", "json": "asked for in the prompt"},
            "printed word, JSON asked for in the prompt, seed refused.",
        ),
    ],
)
def test_a_whole_run_works_and_says_how_answers_were_read(
    pack: Path, tmp_path: Path, limit: Limit, differs: dict[str, str], line: str
) -> None:
    with limited_endpoint(limit) as url:
        said = run(pack, url, tmp_path)
    folder = RunFolder(tmp_path)
    held = folder.read_conversations()
    assert (said.code, said.err) == (0, "")
    assert [(one.chatbot, one.error) for one in held if one.stop_reason == "error"] == []
    assert len(held) == 5
    verdicts = folder.read_journals().verdicts
    assert [(one.detector, one.error) for one in verdicts if one.outcome == "failed"] == []
    assert len(verdicts) == 10
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["read_how"] == [ALL | differs]
    told = f"stub was read by: {line}"
    assert told in " ".join(said.out.split())
    assert told in (tmp_path / "report.html").read_text()


def test_a_decision_that_is_no_option_is_a_failure_with_a_reason(pack: Path, tmp_path: Path) -> None:
    """The receptionist's letters are read, the judges' questions answered neither Yes nor No."""

    def unsure(question: str) -> str:
        return printed_word(question) if question.endswith("Letter:") else "Hard to say."

    with limited_endpoint(ignoring("logprobs"), unsure) as url:
        said = run(pack, url, tmp_path, "--chatbots", "vanilla,fact-checker", "--detectors", "direct-judge")
    folder = RunFolder(tmp_path)
    assert said.code == 1  # no reply has a verdict
    errors = {one.chatbot: one.error for one in folder.read_conversations()}
    assert errors["vanilla"] is None
    assert "the model printed 'Hard to say.', none of Yes, No" in str(errors["fact-checker"])
    (verdict,) = [one for one in folder.read_journals().verdicts if one.outcome == "failed"]
    assert (verdict.score, verdict.flagged) == (None, None)
    assert "reply: the model printed 'Hard to say.', none of Yes, No" in str(verdict.error)


def test_what_was_found_out_is_replayed_and_nobody_is_asked(pack: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.jsonl"
    with limited_endpoint(refusing("logprobs", "response_format")) as url:
        assert run(pack, url, tmp_path / "one", "--record", recorded).code == 0
    said = run(pack, url, tmp_path / "two", "--replay", recorded)
    assert (said.code, said.err) == (0, "")
    reports = [json.loads((tmp_path / name / "report.json").read_text()) for name in ("one", "two")]
    assert reports[0]["read_how"] == reports[1]["read_how"]
    assert reports[0]["rows"] == reports[1]["rows"]


def test_a_recording_without_the_question_assumes_all(pack: Path, tmp_path: Path) -> None:
    recorded, older = tmp_path / "recorded.jsonl", tmp_path / "older.jsonl"
    with limited_endpoint(ignoring()) as url:
        assert run(pack, url, tmp_path / "one", "--record", recorded).code == 0
    lines = recorded.read_text().splitlines(keepends=True)
    older.write_text("".join(line for line in lines[4:] if not line.startswith('{"kind":"abilities"')))
    said = run(pack, url, tmp_path / "two", "--replay", older)
    assert (said.code, said.err) == (0, "")
    report = json.loads((tmp_path / "two" / "report.json").read_text())
    assert report["read_how"] == [ALL | {"asked": False}]
    assert "seed kept (assumed, the endpoint did not say)." in " ".join(said.out.split())


def test_a_model_that_is_read_in_two_ways_has_two_lines(pack: Path, tmp_path: Path) -> None:
    for limit in (ignoring(), ignoring("logprobs")):
        with limited_endpoint(limit) as url:
            assert run(pack, url, tmp_path, "--chatbots", "vanilla").code == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["read_how"] == [ALL, ALL | {"decisions": "printed word"}]


def test_a_share_of_printed_words_is_asked_for_in_the_experiment(pack: Path, tmp_path: Path) -> None:
    config = tmp_path / "experiment.yaml"
    config.write_text("decision_samples: 3\n")
    with limited_endpoint(ignoring("logprobs")) as url:
        said = run(pack, url, tmp_path / "run", "-c", config, "--chatbots", "vanilla")
    assert said.code == 0
    assert "stub was read by: share of 3 printed words, JSON schema" in " ".join(said.out.split())


def test_a_bot_that_refuses_an_argument_is_asked_without_it_and_the_report_says_so(
    pack: Path, tmp_path: Path
) -> None:
    config = tmp_path / "experiment.yaml"
    with limited_endpoint(ignoring()) as url, limited_endpoint(refusing("seed")) as bot:
        options = f"{{base_url: {bot}, model: theirs, max_tokens: 60, temperature: 0.0}}"
        config.write_text(f"chatbots: [{{name: mine, kind: endpoint, options: {options}}}]\n")
        said = run(pack, url, tmp_path / "run", "-c", config, "--detectors", "lexical")
    assert said.code == 0
    assert f"From here on, model 'theirs' at {bot} gets no seed" in said.err
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert ("theirs", ["no seed"], True) in [
        (one["model"], one["asked_with"], one["under_test"]) for one in report["read_how"]
    ]
    assert "theirs was asked with: no seed." in " ".join(said.out.split())
