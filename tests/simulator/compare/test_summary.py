from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Passage, Span, Turn
from hallulab.simulator.compare.summary import (
    CostSummary,
    RunSummary,
    VerdictSummary,
    hash_text,
    read_summary,
    summarize_conversation,
    summarize_run,
)
from hallulab.simulator.metrics.hallucinations import count_verdicts, index_by_detector
from hallulab.simulator.metrics.spending import Spent
from hallulab.simulator.records.folder import RunFolder
from tests.builders import branched, call, conversation, scored, unscored
from tests.simulator.compare.made import found


def test_a_conversation_is_summarized_without_texts() -> None:
    chat = conversation("c", ["Rs 500.", "Yes."], calls=[call("chatbot.generate"), call("user.message")])
    verdicts = [
        scored("c", 0, [(3, 6), None], calls=[call("detector.ask", 7, 1)]),
        unscored("c", 1, "abstained"),
    ]
    made = summarize_conversation(chat, index_by_detector(verdicts))
    first, second = made.turns
    assert (first.user, first.reply, first.tokens) == (hash_text("Hi there"), hash_text("Rs 500."), 3)
    assert first.verdicts == {"d": VerdictSummary(flagged=True, spans=2, unlocated=1, tokens=1)}
    assert second.verdicts == {"d": VerdictSummary(outcome="abstained")}
    assert made.cost == CostSummary(calls=2, prompt_tokens=20, completion_tokens=4, seconds=1.0)
    assert made.judging == {"d": CostSummary(calls=1, prompt_tokens=7, completion_tokens=1, seconds=0.5)}
    assert "Rs 500" not in made.model_dump_json()


def test_severities_are_those_that_the_detector_rates_highest_first() -> None:
    chat = conversation("c", ["one two three"])
    spans = tuple(
        Span(start=at, end=at + 3, text=text, severity=severity)
        for at, text, severity in ((0, "one", 2.0), (4, "two", None), (8, "thr", 5.0))
    )
    verdict = scored("c", 0, [(0, 3)]).model_copy(update={"spans": spans})
    made = summarize_conversation(chat, index_by_detector([verdict])).turns[0].verdicts["d"]
    assert (made.severities, made.severity, made.spans) == ((5.0, 2.0), 5.0, 3)


def test_a_reply_flagged_without_places_is_hallucinated_and_not_counted() -> None:
    chat = conversation("c", ["one"])
    verdict = scored("c", 0, None).model_copy(update={"flagged": True})
    made = summarize_conversation(chat, index_by_detector([verdict]))
    assert made.turns[0].verdicts["d"].hallucinated
    assert (made.tally("d").not_localised, made.tally("d").scored_turns) == (1, 0)


def test_the_passages_are_part_of_a_turn() -> None:
    turns = [
        Turn(index=0, user="u", reply="r", passages=(Passage(id="p#0", document="p", text=text),))
        for text in ("old", "new")
    ]
    one, other = (summarize_conversation(conversation("c", [], turns=(turn,)), {}).turns[0] for turn in turns)
    assert (one.reply, one.user) == (other.reply, other.user)
    assert one.passages != other.passages


def test_a_branched_conversation_keeps_its_place() -> None:
    made = summarize_conversation(branched("b", "one two", 2), index_by_detector([scored("b", 0)]))
    assert made.tally("d").branched_at == 2


def test_the_demos_tallies_are_those_of_the_report(demo_replay: RunFolder) -> None:
    summary = {one.id: one for one in summarize_run(demo_replay).conversations}
    journals = demo_replay.read_journals()
    for chat, verdicts in journals.judged():
        for detector, own in index_by_detector(verdicts).items():
            expected, made = count_verdicts(chat, own), summary[chat.id].tally(detector)
            brief = Spent(
                calls=expected.spent.calls,
                prompt_tokens=expected.spent.prompt_tokens,
                completion_tokens=expected.spent.completion_tokens,
                seconds=round(expected.spent.seconds, 3),
                untold=expected.spent.untold,
            )
            untold = {"chatbot_tokens": 0, "chatbot_untold": expected.chatbot_calls}
            assert made == dataclasses.replace(expected, spent=brief, **untold)
    assert len(summary) == 10


def test_a_baseline_is_small_readable_and_says_the_same(demo_replay: RunFolder, tmp_path: Path) -> None:
    summary = summarize_run(demo_replay)
    path = tmp_path / "baseline.json"
    path.write_text(summary.text(), encoding="utf-8")
    assert read_summary(path) == read_summary(demo_replay.path) == summary
    assert path.stat().st_size < 20_000
    assert len([line for line in summary.text().splitlines() if line.startswith('{"id":')]) == 10
    assert str(demo_replay.path) not in summary.text()
    assert summary.detectors == ["halludetect", "metarag"]
    assert summary.chatbots == ["vanilla", "prompt-engineered", "editor", "fact-checker", "agent"]


def test_conversations_stand_in_an_order_that_no_version_decides(demo_replay: RunFolder) -> None:
    held = summarize_run(demo_replay).conversations
    places = [(one.persona, one.chatbot) for one in held]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema": 2}, "field `schema`: input should be 1"),
        ({"name": None}, "field `name`: input should be a valid string"),
        ({"more": 1}, "unknown field `more`"),
    ],
)
def test_a_wrong_baseline_says_what_is_wrong(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    path = tmp_path / "b.json"
    value = json.loads(found({"vanilla": {("asha", 0): [1]}}).text())
    path.write_text(json.dumps({**value, **change}))
    with pytest.raises(UsageError) as caught:
        read_summary(path)
    assert str(caught.value).startswith(f"{path}: {complaint}"), str(caught.value)
    assert str(caught.value).endswith("Give a run folder, or a file of `hallulab compare RUN --save FILE`.")


def test_more_flagged_tokens_than_the_reply_has_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(found({"vanilla": {("asha", 0): [1]}}).text().replace('"tokens":2', '"tokens":0'))
    with pytest.raises(UsageError, match="the verdict of 'd' has more under its spans than there is"):
        read_summary(path)


def test_what_is_no_json_and_what_is_not_there_say_so(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    with pytest.raises(UsageError, match="cannot be read"):
        read_summary(path)
    path.write_text("no json")
    with pytest.raises(UsageError, match="it is not valid JSON"):
        read_summary(path)
    with pytest.raises(UsageError, match="is no run folder"):
        read_summary(tmp_path)


def test_a_summary_of_names_from_elsewhere_is_read_again(tmp_path: Path) -> None:
    summary = found({"бот <b>": {("p", 0): [0, None]}}, name="é\n")
    path = tmp_path / "b.json"
    path.write_text(summary.text(), encoding="utf-8")
    assert read_summary(path) == RunSummary.model_validate(summary.model_dump(by_alias=True)) == summary
