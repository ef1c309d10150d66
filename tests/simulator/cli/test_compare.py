"""`hallulab compare`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hallulab.simulator.compare.runs import RunsCompared
from hallulab.simulator.compare.summary import summarize_run
from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation
from tests.kit.run_folders import write_run
from tests.simulator.command_line import CommandLine
from tests.simulator.compare.altered import altered
from tests.simulator.compare.made import found


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_changed_turns_come_before_the_tables(
    hallulab: CommandLine, demo_replay: RunFolder, changed_demo: RunFolder
) -> None:
    ended = hallulab("compare", demo_replay.path, changed_demo.path)
    lines = lines_of(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert lines[0] == "B (after) beside A (demo), the reference:"
    assert "Changed between the runs: prompt chatbots/generation of chatbot vanilla." in lines
    at = lines.index("new (1):")
    assert at < lines.index("gone (2):")
    assert lines[at + 1 : at + 3] == [
        "- editor, refrigerator-stops-cooling, seed 0, turn 1, by metarag: clean → 2 hallucinations; the "
        "reply is the",
        "same: the detector's noise",
    ]
    row = next(line for line in lines[at:] if line.startswith("vanilla"))
    assert " ".join(row.split()) == "vanilla halludetect 2 paired 1.00 0.25 -0.75 1 – +26.3 1"


def test_files_hold_what_was_found(
    hallulab: CommandLine, demo_replay: RunFolder, changed_demo: RunFolder, tmp_path: Path
) -> None:
    made = {flag: tmp_path / f"made.{flag}" for flag in ("json", "markdown", "html")}
    flags = [part for flag, path in made.items() for part in (f"--{flag}", path)]
    ended = hallulab("compare", demo_replay.path, changed_demo.path, *flags)
    assert ended.code == 0
    assert lines_of(ended.out)[-1].startswith("written: ")
    compared = RunsCompared.model_validate_json(made["json"].read_text(encoding="utf-8"))
    assert [turn.kind for turn in compared.runs[0].turns.turns] == ["new"] + ["gone"] * 2
    comment = made["markdown"].read_text(encoding="utf-8")
    assert comment.startswith("### hallulab compare: B (after) beside A (demo)\n")
    page = made["html"].read_text(encoding="utf-8")
    assert "&lt;b&gt;Ask&lt;/b&gt;" in page
    assert "<b>Ask" not in page
    assert "<script" not in page
    assert re.search(
        r'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src', page
    )


def test_a_baseline_stands_for_its_run(
    hallulab: CommandLine, demo_replay: RunFolder, changed_demo: RunFolder, tmp_path: Path
) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(summarize_run(demo_replay).text(), encoding="utf-8")
    values = []
    for reference in (demo_replay.path, baseline):
        hallulab("compare", reference, changed_demo.path, "--json", tmp_path / "made.json")
        value = json.loads((tmp_path / "made.json").read_text(encoding="utf-8"))
        for turn in value["runs"][0]["turns"]["turns"]:
            del turn["texts"]
        values.append(value)
    assert values[0] == values[1]


def judge_anew(value: dict[str, Any]) -> None:
    value["version"] = "0"


def name_new_version(value: dict[str, Any]) -> None:
    value["detectors"] = dict.fromkeys(value["detectors"], "0")


def test_runs_that_cannot_be_compared_say_why_with_code_3(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path
) -> None:
    other = altered(demo_replay, tmp_path / "other", None, judge_anew, name_new_version)
    ended = hallulab("compare", demo_replay.path, other.path, "--json", tmp_path / "made.json")
    assert ended.code == 3
    assert ended.err == (
        "error: B (other) cannot be compared with A (demo): no detector in the same version (halludetect and "
        "metarag changed; `hallulab detect` judges a run again).\n"
    )
    assert "Changed between the runs: version of detector halludetect and metarag." in lines_of(ended.out)
    assert json.loads((tmp_path / "made.json").read_text())["runs"][0]["not_comparable"]


def test_the_others_are_compared_all_the_same(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path
) -> None:
    other = altered(demo_replay, tmp_path / "other", None, judge_anew, name_new_version)
    ended = hallulab("compare", demo_replay.path, other.path, demo_replay.path)
    assert ended.code == 3
    assert "C (demo) beside A (demo), the reference:" in lines_of(ended.out)
    assert "Every reply that both runs have is the same, and so is every verdict (40)." in lines_of(ended.out)


def test_bad_input_is_a_usage_error(hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path) -> None:
    none = tmp_path / "none"
    assert hallulab.code_and_error("compare", demo_replay.path) == (
        2,
        "error: 1 run: give 2 to 26, the reference first.\n",
    )
    code, error = hallulab.code_and_error("compare", demo_replay.path, none)
    assert code == 2
    assert error.startswith(f"error: {none}: cannot be read")
    code, error = hallulab.code_and_error(
        "compare", demo_replay.path, demo_replay.path, "--json", demo_replay.experiment
    )
    assert (code, "a file of the input would be lost" in error) == (2, True)


def test_runs_without_a_reply_and_without_verdicts_say_what_is_missing(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    chat = conversation("c", [], stop_reason="error", error="no answer")
    folders = [write_run(tmp_path / name, [chat]).path for name in ("one", "other")]
    assert hallulab.code_and_error("compare", *folders) == (
        3,
        "error: B (other) cannot be compared with A (one): no common detector (none in one, none in the "
        "other).\n",
    )


def test_what_a_terminal_would_obey_is_not_printed(hallulab: CommandLine, tmp_path: Path) -> None:
    name = "\x1b[31m[bold]bot\u202e"
    paths = []
    for number, spans in enumerate(([0], [1])):
        paths.append(tmp_path / f"{number}.json")
        run = found({name: {(name, 0): spans}}, name, scenario=name, documents={name: str(number)})
        paths[-1].write_text(run.text(), encoding="utf-8")
    ended = hallulab("compare", *paths)
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert "[bold]bot" in ended.out
