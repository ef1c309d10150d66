"""The experiment runner: journals, resuming, and failures that stay data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.users.user import UserMove
from hallulab.chatbots.protocol import Chatbot, Reply
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import OperationalError, ReplayMiss
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Judgement, Message, Turn
from hallulab.scenarios.turn_views import Origin, TurnView
from hallulab.simulator.engine.conversation import ConversationKey
from hallulab.simulator.engine.execution import TurnLine, read_turns
from hallulab.simulator.engine.executors import ConversationDone, Event, TurnDone, VerdictDone
from hallulab.simulator.engine.plan import Job
from hallulab.simulator.records.experiment import Component
from hallulab.simulator.records.folder import RunFolder
from tests.simulator.engine.cast import Cast, execute

PERSONA = Persona(id="p", name="P", grievance="g", goals=("a goal",), manner="m", summary="s")


class Listener:
    def __init__(self) -> None:
        self.expected_verdicts = 0
        self.turns = 0
        self.verdicts = 0

    def expect(self, conversations: int, verdicts: int) -> None:
        self.expected_verdicts += verdicts

    def update(self, event: Event) -> None:
        match event:
            case TurnDone():
                self.turns += 1
            case ConversationDone(_, lacking):
                self.expected_verdicts += len(lacking)
            case VerdictDone():
                self.verdicts += 1


class Asker:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    async def next(self, history: Sequence[Message]) -> UserMove:
        if self.error is not None:
            raise self.error
        return UserMove(text=f"Question number {len(history) // 2 + 1} is this one?")


class Answerer:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    async def reply(self, history: Sequence[Message]) -> Reply:
        if self.error is not None:
            raise self.error
        return Reply(text=f"Answer after {len(history)} messages.")


class Breaking:
    """Answers like `Answerer`, `after` times, and then raises."""

    def __init__(self, after: int) -> None:
        self.after = after

    async def reply(self, history: Sequence[Message]) -> Reply:
        if len(history) // 2 >= self.after:
            raise ValueError("out of order")
        return Reply(text=f"Answer after {len(history)} messages.")


class Judge(Detector):
    name = "judge"
    threshold = 0.5

    def __init__(self, version: str = "1", error: BaseException | None = None) -> None:
        self.version = version
        self.error = error
        self.seen: list[TurnView] = []

    async def detect(self, view: TurnView) -> Judgement:
        self.seen.append(view)
        if self.error is not None:
            raise self.error
        return Judgement(outcome="scored", score=0.0, flagged=False, spans=())


def job(name: str) -> Job:
    return Job(ConversationKey(name, "s", "p", "bot", "m", 0), PERSONA, Component(name="bot", kind="bot"))


def cast(*judges: Detector, **given: Any) -> Cast:
    made = {"make_user": lambda job: Asker(), "build_chatbot": lambda chosen, seed, conversation: Answerer()}
    return Cast(judges, **{**made, **given})


def bot(chatbot: Chatbot, *judges: Detector) -> Cast:
    """A cast with that chatbot."""
    return cast(*judges, build_chatbot=lambda chosen, seed, conversation: chatbot)


async def test_every_turn_of_every_conversation_gets_a_verdict(tmp_path: Path) -> None:
    folder, listener = RunFolder(tmp_path), Listener()
    await execute(cast(Judge()), [job("a"), job("b")], folder, listener)
    assert sorted(line.id for line in folder.read_conversations()) == ["a", "b"]
    found = sorted((line.conversation, line.turn) for line in folder.read_journals().verdicts)
    assert found == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert (listener.turns, listener.expected_verdicts, listener.verdicts) == (4, 4, 4)


async def test_a_second_start_does_nothing(folder: RunFolder) -> None:
    await execute(cast(Judge()), [job("a")], folder, Listener())
    before = (folder.conversations.read_bytes(), folder.verdicts.read_bytes())
    judge = Judge()
    await execute(cast(judge), [job("a")], folder, Listener())
    assert (folder.conversations.read_bytes(), folder.verdicts.read_bytes()) == before
    assert judge.seen == []


async def test_only_missing_verdicts_are_made(folder: RunFolder) -> None:
    await execute(cast(Judge()), [job("a")], folder, Listener())
    lines = folder.verdicts.read_text().splitlines(keepends=True)
    folder.verdicts.write_text(lines[0] + lines[1][:10])
    judge = Judge()
    await execute(cast(judge), [job("a")], folder, Listener())
    assert len(judge.seen) == 1
    assert sorted(line.turn for line in folder.read_journals().verdicts) == [0, 1]


async def test_a_new_version_of_a_detector_judges_again(folder: RunFolder) -> None:
    await execute(cast(Judge("1")), [job("a")], folder, Listener())
    await execute(cast(Judge("2")), [job("a")], folder, Listener())
    assert sorted(line.version for line in folder.read_journals().verdicts) == ["1", "1", "2", "2"]


async def test_a_detector_sees_the_turn_and_nothing_of_the_chatbot(tmp_path: Path) -> None:
    judge = Judge()
    await execute(cast(judge), [job("a")], RunFolder(tmp_path), Listener())
    second = max(judge.seen, key=lambda view: len(view.history))
    assert [message.text for message in second.history] == [
        "Question number 1 is this one?",
        "Answer after 1 messages.",
    ]
    assert (second.question, second.reply) == ("Question number 2 is this one?", "Answer after 3 messages.")
    fields = {"history", "question", "passages", "earlier", "reply", "knowledge", "origin"}
    assert set(type(second).model_fields) == fields
    assert second.origin == Origin()


async def test_whatever_a_detector_raises_is_a_failed_verdict(folder: RunFolder) -> None:
    await execute(cast(Judge(error=ZeroDivisionError("oops"))), [job("a")], folder, Listener())
    assert [(line.outcome, line.spans, line.error) for line in folder.read_journals().verdicts] == [
        ("failed", None, "ZeroDivisionError: oops")
    ] * 2


async def test_a_failed_conversation_is_held_again_and_the_new_one_counts(folder: RunFolder) -> None:
    await execute(bot(Breaking(after=1)), [job("a"), job("b")], folder, Listener())
    held = {line.id: (line.stop_reason, len(line.turns)) for line in folder.read_conversations()}
    assert held == {"a": ("error", 1), "b": ("error", 1)}
    before = folder.conversations.read_text()
    listener = Listener()
    await execute(cast(Judge()), [job("a")], folder, listener)
    held = {line.id: (line.stop_reason, len(line.turns)) for line in folder.read_conversations()}
    assert held == {"a-try2": ("loop", 2), "b": ("error", 1)}
    assert (listener.turns, listener.expected_verdicts) == (2, 3)
    assert folder.conversations.read_text().startswith(before)


async def test_a_conversation_that_was_held_anew_is_judged_anew(folder: RunFolder) -> None:
    await execute(bot(Breaking(after=1), Judge()), [job("a")], folder, Listener())
    judge = Judge()
    await execute(cast(judge), [job("a")], folder, Listener())
    assert [view.reply for view in judge.seen] == ["Answer after 1 messages.", "Answer after 3 messages."]
    found = [(line.conversation, line.turn) for line in folder.read_journals().verdicts]
    assert found == [("a", 0), ("a-try2", 0), ("a-try2", 1)]


async def test_a_conversation_may_fail_twice_before_it_ends_well(folder: RunFolder) -> None:
    for broken in (Breaking(after=1), Breaking(after=0)):
        await execute(bot(broken), [job("a")], folder, Listener())
    await execute(cast(Judge()), [job("a")], folder, Listener())
    assert [(line.id, line.stop_reason) for line in folder.read_conversations()] == [("a-try3", "loop")]


async def test_a_failure_that_comes_again_is_written_once(folder: RunFolder) -> None:
    broken = bot(Breaking(after=1), Judge(error=ZeroDivisionError("oops")))
    await execute(broken, [job("a")], folder, Listener())
    before = (folder.conversations.read_bytes(), folder.verdicts.read_bytes())
    await execute(broken, [job("a")], folder, Listener())
    assert (folder.conversations.read_bytes(), folder.verdicts.read_bytes()) == before


async def test_a_failed_verdict_is_tried_again_and_the_new_one_counts(folder: RunFolder) -> None:
    await execute(cast(Judge(error=ZeroDivisionError("oops"))), [job("a")], folder, Listener())
    await execute(cast(Judge()), [], folder, Listener())
    assert [(line.turn, line.outcome) for line in folder.read_journals().verdicts] == [
        (0, "scored"),
        (1, "scored"),
    ]


async def test_a_detector_that_gives_no_judgement_is_a_failed_verdict(folder: RunFolder) -> None:
    class Silent(Judge):
        async def detect(self, view: TurnView) -> Judgement:
            return None  # type: ignore[return-value]

    await execute(cast(Silent()), [job("a")], folder, Listener())
    assert [(line.outcome, line.error) for line in folder.read_journals().verdicts] == [
        ("failed", "the detector gave a NoneType, no Judgement")
    ] * 2


MISS = ReplayMiss("the recording has no answer.")


@pytest.mark.parametrize(
    ("asker", "answerer", "judge", "held"),
    [
        (Asker(MISS), Answerer(), Judge(), 0),
        (Asker(), Answerer(MISS), Judge(), 0),
        (Asker(), Answerer(), Judge(error=MISS), 1),
    ],
)
async def test_a_stale_recording_ends_the_run_and_is_no_failed_reply(
    folder: RunFolder, asker: Asker, answerer: Answerer, judge: Judge, held: int
) -> None:
    stale = Cast([judge], lambda job: asker, lambda chosen, seed, conversation: answerer)
    with pytest.raises(ReplayMiss, match=r"^the recording has no answer\.$"):
        await execute(stale, [job("a")], folder, Listener())
    assert (len(folder.read_conversations()), len(folder.read_journals().verdicts)) == (held, 0)


async def test_a_chatbot_whose_file_cannot_be_opened_ends_the_run_with_the_systems_reason(
    tmp_path: Path,
) -> None:
    def opens_a_policy(chosen: object, seed: int, conversation: str) -> Chatbot:
        raise OSError(24, "Too many open files", "policy.yaml")

    unopened = cast(build_chatbot=opens_a_policy)
    with pytest.raises(OSError, match=r"Too many open files: 'policy\.yaml'"):
        await execute(unopened, [job("a"), job("b")], RunFolder(tmp_path), Listener())


async def test_a_full_disk_stops_the_run_and_keeps_what_was_written(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = LineWriter.append

    def full_after_one(self: LineWriter, line: str) -> None:
        if self.path == folder.verdicts and folder.verdicts.stat().st_size > 0:
            raise OperationalError("cannot write verdicts.jsonl: No space left on device.")
        append(self, line)

    monkeypatch.setattr(LineWriter, "append", full_after_one)
    with pytest.raises(OperationalError, match="No space left on device"):
        await execute(cast(Judge()), [job("a")], folder, Listener())
    assert len(folder.read_conversations()) == 1
    assert len(folder.read_journals().verdicts) == 1


def cut_off(folder: RunFolder, *turns: Turn) -> None:
    """Leave what a killed run leaves of conversation `a`."""
    lines = (TurnLine(conversation="a", turn=turn).model_dump_json() for turn in turns)
    folder.turns.write_text("".join(f"{line}\n" for line in lines))


FIRST = Turn(index=0, user="Is it?", reply="It is.")


async def test_a_conversation_that_was_cut_off_goes_on_and_its_turns_are_judged(tmp_path: Path) -> None:
    folder, listener = RunFolder(tmp_path), Listener()
    cut_off(folder, FIRST)
    await execute(cast(Judge()), [job("a")], folder, listener)
    [held] = folder.read_conversations()
    assert [turn.reply for turn in held.turns] == ["It is.", "Answer after 3 messages."]
    assert (listener.turns, listener.verdicts) == (2, 2)
    assert not folder.turns.exists()


async def test_turns_of_a_conversation_that_is_not_wanted_now_stay(folder: RunFolder) -> None:
    cut_off(folder, FIRST)
    await execute(cast(), [job("b")], folder, Listener())
    assert read_turns(folder.turns) == {"a": [FIRST]}


async def test_a_chatbot_that_remembers_the_conversation_itself_begins_anew(folder: RunFolder) -> None:
    class Remembering(Answerer):
        remembers = True

    cut_off(folder, FIRST)
    await execute(bot(Remembering()), [job("a")], folder, Listener())
    [held] = folder.read_conversations()
    assert [turn.reply for turn in held.turns] == ["Answer after 1 messages.", "Answer after 3 messages."]
    assert not folder.turns.exists()


async def test_a_run_that_is_stopped_keeps_the_turns_under_way(folder: RunFolder) -> None:
    class Stopping(Breaking):
        async def reply(self, history: Sequence[Message]) -> Reply:
            if len(history) > 1:
                raise ReplayMiss("no answer")
            return await super().reply(history)

    with pytest.raises(ReplayMiss):
        await execute(bot(Stopping(after=9)), [job("a")], folder, Listener())
    assert {name: [turn.index for turn in held] for name, held in read_turns(folder.turns).items()} == {
        "a": [0]
    }
    assert not [*folder.read_conversations()]
    await execute(cast(), [job("a")], folder, Listener())
    [held] = folder.read_conversations()
    assert len(held.turns) == 2


async def test_a_failed_try_leaves_no_turns(folder: RunFolder) -> None:
    for _ in range(2):  # the second time it fails as before, so that nothing new is journalled
        await execute(bot(Breaking(after=1)), [job("a")], folder, Listener())
        assert not folder.turns.exists()
    [held] = folder.read_conversations()
    assert (held.stop_reason, len(held.turns)) == ("error", 1)


def test_conversations_of_one_seed_are_told_apart_for_their_chatbots() -> None:
    told: list[str] = []

    def make(chosen: Component, seed: int, conversation: str) -> Answerer:
        told.append(conversation)
        return Answerer()

    people = cast(build_chatbot=make)
    key = ConversationKey("id", "s", "ann", "theirs", "m", 0)
    updated = replace(key, id="of other code", version="2")
    others = replace(key, persona="bob"), replace(key, seed=1), replace(key, chatbot="ours")
    for one in (key, updated, *others):
        people.make_chatbot(Component(name="theirs", kind="endpoint"), one)
    assert told[0] == told[1]
    assert len(set(told)) == 4
