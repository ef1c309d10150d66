"""Rows of the report recomputed from the two journals by plain loops, without any code of ours.

`recompute` reads JSON lines and knows the definitions only; nothing is imported from the packages that write
the report, so that an error there cannot hide here. `assert_recomputes` holds a whole run folder to it.
"""

from __future__ import annotations

import json
import math
import unicodedata
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import scipy.stats

COUNTS = ("conversations", "personas", "turns", "scored_turns", "hallucinations", "tokens", "calls",
          "prompt_tokens", "completion_tokens", "failed", "abstained", "unlocated")  # fmt: skip
NUMBERS = ("coverage", "hallucinated_chats", "calls_per_reply", "hpt_1", "hpt_2", "tokacc_1", "tokacc_2",
           "seconds")  # fmt: skip
SUMMED = ("turns", "scored_turns", "failed", "abstained", "hallucinations", "unlocated", "tokens",
          "clean_tokens", "bot_calls")  # fmt: skip
"""Counts that are added up over a row's conversations."""


def recompute(conversations_path: Path, verdicts_path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The numbers of each (chatbot, detector) from the two journals.

    For the intervals, `hpt_1_people` and `tokacc_1_people` hold (part, whole) of each persona that counts.

    Detectors without any verdict do not appear: the journals do not know of them.
    """
    chats = _lines(conversations_path)
    verdicts = _lines(verdicts_path)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for chatbot in sorted({chat["chatbot"] for chat in chats}):
        for detector in sorted({verdict["detector"] for verdict in verdicts}):
            own = [chat for chat in chats if chat["chatbot"] == chatbot]
            found[chatbot, detector] = _row(own, [v for v in verdicts if v["detector"] == detector])
    return found


def assert_recomputes(report_path: Path, conversations_path: Path, verdicts_path: Path) -> None:
    """Assert that every row of `report.json` is what the journals say."""
    rows = json.loads(report_path.read_text(encoding="utf-8"))["rows"]
    expected = recompute(conversations_path, verdicts_path)
    reported = {(row["chatbot"], row["detector"]): row for row in rows}
    assert expected.keys() <= reported.keys()
    for key, numbers in expected.items():
        for name in COUNTS:
            assert reported[key][name] == numbers[name], (key, name)
        for name in NUMBERS:
            if numbers[name] is None:
                assert reported[key][name] is None, (key, name)
            else:
                assert reported[key][name] == pytest.approx(numbers[name], abs=2e-6), (key, name)
        for metric in ("hpt_1", "tokacc_1"):
            expected_ci95 = _bound(numbers[f"{metric}_people"], share=metric == "tokacc_1")
            found = reported[key][f"{metric}_ci95"]
            close = None if expected_ci95 is None else pytest.approx(expected_ci95, abs=2e-6)
            assert found == close, (key, metric)


def _bound(people: list[tuple[int, int]], *, share: bool) -> tuple[float, float] | None:
    """Bounds by the jackknife and Student's t, in exact fractions as far as they go; at the end of the range
    those of no event at all. Fewer than six personas, or such as all have the same number, have none."""
    number = len(people)
    if number < 6:
        return None
    part, whole = (sum(column) for column in zip(*people, strict=True))
    t = float(scipy.stats.t.ppf(0.975, number - 1))
    if part == 0 or (share and part == whole):
        if not share:
            return 0.0, float(scipy.stats.chi2.ppf(0.975, 2)) / 2 * (t / 1.959964) ** 2 / whole
        bound = float(scipy.stats.beta.ppf(0.025, number, 1))
        return (bound, 1.0) if part else (0.0, 1 - bound)
    without = [Fraction(part - one, whole - all_) for one, all_ in people]
    mean = sum(without) / number
    variance = Fraction(number - 1, number) * sum((value - mean) ** 2 for value in without)
    if not variance:
        return None
    value, step = part / whole, t * math.sqrt(variance)
    if not share:
        return value * math.exp(-step / value), value * math.exp(step / value)
    at, step = math.log(value / (1 - value)), step / (value * (1 - value))
    return 1 / (1 + math.exp(step - at)), 1 / (1 + math.exp(-step - at))


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        if line.strip():
            lines.append(json.loads(line))
    return lines


def _row(chats: list[dict[str, Any]], verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    counted = [_chat(chat, [v for v in verdicts if v["conversation"] == chat["id"]]) for chat in chats]
    sums = {name: sum(one[name] for one in counted) for name in SUMMED}
    calls = [call for one in counted for call in one["calls"]]
    people = [(chat["scenario"], chat["persona"]) for chat in chats]
    hpt_chats = [(one["hallucinations"], one["scored_turns"]) for one in counted if one["scored_turns"]]
    tokacc_chats = [(one["clean_tokens"], one["tokens"]) for one in counted if one["tokens"]]
    hpt_people, tokacc_people = (
        _together(people, [(one[part], one[whole]) for one in counted])
        for part, whole in (("hallucinations", "scored_turns"), ("clean_tokens", "tokens"))
    )
    rates = [part / whole for part, whole in hpt_chats]
    accuracies = [part / whole for part, whole in tokacc_chats]
    return {
        **sums,
        "conversations": len(chats),
        "personas": len(hpt_people),
        "calls": len(calls),
        "prompt_tokens": _known([call["prompt_tokens"] for call in calls]),
        "completion_tokens": _known([call["completion_tokens"] for call in calls]),
        "seconds": sum(call["latency_s"] for call in calls),
        "coverage": _share(sums["scored_turns"], sums["turns"]),
        "hallucinated_chats": _share(sum(rate > 0 for rate in rates), len(rates)),
        "calls_per_reply": _share(sums["bot_calls"], sums["turns"]),
        "hpt_1": _share(sums["hallucinations"], sums["scored_turns"]),
        "hpt_2": _share(sum(rates), len(rates)),
        "tokacc_1": _share(sums["clean_tokens"], sums["tokens"]),
        "tokacc_2": _share(sum(accuracies), len(accuracies)),
        "hpt_1_people": hpt_people,
        "tokacc_1_people": tokacc_people,
    }


def _together(people: list[tuple[str, str]], numbers: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Add up (part, whole) of each persona; those without a whole do not count."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for person, (part, whole) in zip(people, numbers, strict=True):
        before = found.get(person, (0, 0))
        found[person] = (before[0] + part, before[1] + whole)
    return [(part, whole) for part, whole in found.values() if whole]


def _chat(chat: dict[str, Any], verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    """What one conversation adds to its row: the numbers in `SUMMED`, and the detector's calls."""
    counts: dict[str, Any] = {**dict.fromkeys(SUMMED, 0), "calls": []}
    for turn in chat["turns"]:
        counts["turns"] += 1
        for call in turn["calls"]:
            counts["bot_calls"] += call["purpose"].split(".")[0] == "chatbot"
        for verdict in verdicts:
            if verdict["turn"] == turn["index"]:
                _add_verdict(counts, turn["reply"], verdict)
    return counts


def _add_verdict(counts: dict[str, Any], reply: str, verdict: dict[str, Any]) -> None:
    counts["calls"] += verdict["calls"]
    counts["failed"] += verdict["outcome"] == "failed"
    counts["abstained"] += verdict["outcome"] == "abstained"
    if verdict["outcome"] != "scored" or verdict["spans"] is None:
        return
    counts["scored_turns"] += 1
    bad_characters = set()
    for span in verdict["spans"]:
        counts["hallucinations"] += 1
        if span["start"] is None:
            counts["unlocated"] += 1
        else:
            bad_characters.update(range(span["start"], span["end"]))
    for start, end in _tokens(reply):
        counts["tokens"] += 1
        counts["clean_tokens"] += not any(place in bad_characters for place in range(start, end))


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _known(counts: list[int | None]) -> int | None:
    total, known = 0, not counts
    for count in counts:
        if count is not None:
            total, known = total + count, True
    return total if known else None


def _tokens(text: str) -> list[tuple[int, int]]:
    """Words and single other characters, by walking over the characters."""
    found: list[tuple[int, int]] = []
    word_open = False
    for place, character in enumerate(text):
        in_word = (
            character.isalnum()
            or character == "_"
            or unicodedata.category(character)[0] == "M"
            or character in "\u200c\u200d"
        )
        if in_word and word_open:
            found[-1] = (found[-1][0], place + 1)
        elif in_word or not character.isspace():
            found.append((place, place + 1))
        word_open = in_word
    return found


def test_walking_over_characters_finds_the_tokens() -> None:
    assert _tokens("ab, c") == [(0, 2), (2, 3), (4, 5)]


def write_report(folder: Path, hostile: bool) -> tuple[Path, Path, Path]:
    """Write a run folder of the example run; its report and journals."""
    from tests.kit.run_folders import write_run
    from tests.simulator.example_run import example_run

    run = example_run(twins=2, seeds=2, hostile=hostile)
    made = write_run(folder, run.conversations, run.verdicts)
    made.report.write_text(run.report().text(), encoding="utf-8")
    return made.report, made.conversations, made.verdicts


@pytest.mark.parametrize("hostile", [False, True])
def test_every_row_recomputes_from_the_journals(tmp_path: Path, hostile: bool) -> None:
    report, *journals = write_report(tmp_path, hostile)
    assert len(recompute(*journals)) == 10
    assert_recomputes(report, *journals)


@pytest.mark.parametrize(("field", "less"), [("hpt_1", 0.2), ("tokacc_2", 0.00001)])
def test_a_wrong_interval_or_row_is_noticed(tmp_path: Path, field: str, less: float) -> None:
    report, *journals = write_report(tmp_path, hostile=False)
    found = json.loads(report.read_text())
    if field == "hpt_1":
        found["rows"][3]["hpt_1_ci95"][1] -= less
    else:
        found["rows"][3][field] -= less
    report.write_text(json.dumps(found))
    with pytest.raises(AssertionError, match=field):
        assert_recomputes(report, *journals)
