"""Rows of the report recomputed from the two journals by plain loops, without any code of ours.

`recompute` reads JSON lines and knows the definitions only; nothing is imported from the packages that write
the report, so that an error there cannot hide here. `assert_recomputes` holds a whole run folder to it.
"""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest

COUNTS = ("conversations", "turns", "scored_turns", "hallucinations", "tokens", "calls",
          "prompt_tokens", "completion_tokens", "failed", "abstained", "unlocated")  # fmt: skip
NUMBERS = ("coverage", "hallucinated_chats", "calls_per_reply", "hpt_1", "hpt_2", "tokacc_1", "tokacc_2",
           "seconds")  # fmt: skip


def recompute(conversations_path: Path, verdicts_path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The numbers of each (chatbot, detector) from the two journals.

    For the intervals, `hpt_1_chats` and `tokacc_1_chats` hold (part, whole) of each conversation that counts.

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
            _assert_interval(reported[key][f"{metric}_ci95"], numbers[f"{metric}_chats"], (key, metric))


def _assert_interval(interval: list[float] | None, chats: list[tuple[int, int]], where: Any) -> None:
    """Each end leaves 2.5% of resampled values outside, as far as a resampling of our own can tell."""
    if len(chats) < 2:
        assert interval is None, where
        return
    assert interval is not None, where
    chance = random.Random(1)
    values = []
    for _ in range(2000):
        drawn = [chats[chance.randrange(len(chats))] for _ in chats]
        values.append(sum(part for part, _ in drawn) / sum(whole for _, whole in drawn))
    low, high = interval
    rounding, luck = 2e-6, 0.016  # four standard errors of a share of 2.5% in 2,000
    assert sum(value < low - rounding for value in values) / 2000 <= 0.025 + luck, where
    assert sum(value <= low + rounding for value in values) / 2000 >= 0.025 - luck, where
    assert sum(value > high + rounding for value in values) / 2000 <= 0.025 + luck, where
    assert sum(value >= high - rounding for value in values) / 2000 >= 0.025 - luck, where


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        if line.strip():
            lines.append(json.loads(line))
    return lines


def _row(chats: list[dict[str, Any]], verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    turns = scored_turns = hallucinations = unlocated = tokens = clean_tokens = bot_calls = 0
    failed = abstained = calls = 0
    prompts: list[int | None] = []
    completions: list[int | None] = []
    seconds = 0.0
    rates, accuracies, has_any = [], [], []
    hpt_chats: list[tuple[int, int]] = []
    tokacc_chats: list[tuple[int, int]] = []
    for chat in chats:
        chat_scored = chat_hallucinations = chat_tokens = chat_clean = 0
        for turn in chat["turns"]:
            turns += 1
            for call in turn["calls"]:
                if call["purpose"].split(".")[0] == "chatbot":
                    bot_calls += 1
            for verdict in verdicts:
                if verdict["conversation"] != chat["id"] or verdict["turn"] != turn["index"]:
                    continue
                failed += verdict["outcome"] == "failed"
                abstained += verdict["outcome"] == "abstained"
                for call in verdict["calls"]:
                    calls += 1
                    prompts.append(call["prompt_tokens"])
                    completions.append(call["completion_tokens"])
                    seconds += call["latency_s"]
                if verdict["outcome"] != "scored" or verdict["spans"] is None:
                    continue
                chat_scored += 1
                bad_characters = set()
                for span in verdict["spans"]:
                    chat_hallucinations += 1
                    if span["start"] is None:
                        unlocated += 1
                    else:
                        bad_characters.update(range(span["start"], span["end"]))
                for start, end in _tokens(turn["reply"]):
                    chat_tokens += 1
                    if not any(place in bad_characters for place in range(start, end)):
                        chat_clean += 1
        scored_turns += chat_scored
        hallucinations += chat_hallucinations
        tokens += chat_tokens
        clean_tokens += chat_clean
        if chat_scored:
            hpt_chats.append((chat_hallucinations, chat_scored))
            rates.append(chat_hallucinations / chat_scored)
            has_any.append(chat_hallucinations > 0)
        if chat_tokens:
            tokacc_chats.append((chat_clean, chat_tokens))
            accuracies.append(chat_clean / chat_tokens)
    return {
        "conversations": len(chats),
        "turns": turns,
        "scored_turns": scored_turns,
        "failed": failed,
        "abstained": abstained,
        "hallucinations": hallucinations,
        "unlocated": unlocated,
        "tokens": tokens,
        "calls": calls,
        "prompt_tokens": _known(prompts),
        "completion_tokens": _known(completions),
        "seconds": seconds,
        "coverage": _share(scored_turns, turns),
        "hallucinated_chats": _share(sum(has_any), len(has_any)),
        "calls_per_reply": _share(bot_calls, turns),
        "hpt_1": _share(hallucinations, scored_turns),
        "hpt_2": _share(sum(rates), len(rates)),
        "tokacc_1": _share(clean_tokens, tokens),
        "tokacc_2": _share(sum(accuracies), len(accuracies)),
        "hpt_1_chats": hpt_chats,
        "tokacc_1_chats": tokacc_chats,
    }


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


def write_run(folder: Path, hostile: bool) -> None:
    """A run folder of the example run, with its report."""
    from simulator.report.document import build_report, write_report
    from tests.simulator.example_run import CHATBOTS, DETECTORS, example_run

    run = example_run(seeds=2, hostile=hostile)
    for name, journal in (("conversations", run.conversations), ("verdicts", run.verdicts)):
        lines = [item.model_dump_json() for item in journal]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = build_report(
        run.conversations, run.verdicts, chatbots=CHATBOTS, detectors=DETECTORS, flaws=run.flaws
    )
    write_report(report, folder / "report.json")


@pytest.mark.parametrize("hostile", [False, True])
def test_every_row_recomputes_from_the_journals(tmp_path: Path, hostile: bool) -> None:
    write_run(tmp_path, hostile)
    journals = (tmp_path / "conversations.jsonl", tmp_path / "verdicts.jsonl")
    assert len(recompute(*journals)) == 10
    assert_recomputes(tmp_path / "report.json", *journals)


def test_a_wrong_interval_is_noticed(tmp_path: Path) -> None:
    write_run(tmp_path, hostile=False)
    report = json.loads((tmp_path / "report.json").read_text())
    report["rows"][3]["hpt_1_ci95"][1] -= 0.2
    (tmp_path / "report.json").write_text(json.dumps(report))
    with pytest.raises(AssertionError, match="hpt_1"):
        assert_recomputes(
            tmp_path / "report.json", tmp_path / "conversations.jsonl", tmp_path / "verdicts.jsonl"
        )


def test_a_wrong_row_is_noticed(tmp_path: Path) -> None:
    write_run(tmp_path, hostile=False)
    report = json.loads((tmp_path / "report.json").read_text())
    report["rows"][3]["tokacc_2"] -= 0.00001
    (tmp_path / "report.json").write_text(json.dumps(report))
    with pytest.raises(AssertionError, match="tokacc_2"):
        assert_recomputes(
            tmp_path / "report.json", tmp_path / "conversations.jsonl", tmp_path / "verdicts.jsonl"
        )
