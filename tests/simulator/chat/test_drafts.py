"""Replies while they are made: what each chatbot is said to do, and which text is said to be the reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.watching import CallProgress
from hallulab.simulator.chat.drafts import DraftFollower, ReplyDraft
from hallulab.simulator.chat.live import LiveChat, ReplyFailed, begin_chat, open_live_models, open_live_run
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.records.experiment import Component
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.endpoint import instance
from hallulab.testing.scripted import ScriptedModel, last_user

SAID = "Water boils at 100 degrees."
BETTER = "It boils at 100."


def script(body: dict[str, Any]) -> Any:
    """An answer to each step of our chatbots; FactChecker's only claim is not supported."""
    asked = body.get("response_format", {}).get("json_schema")
    if asked is not None:
        made = instance(asked["schema"], asked["schema"].get("$defs", {}))
        known = {
            "EditedReply": {"problems": [], "reply": BETTER},
            "SplitReply": {"claims": [SAID], "other": []},
        }
        return json.dumps(known.get(asked["name"], made))
    if body.get("logprobs"):
        letter = body["messages"][-1]["content"].endswith("Letter:")
        return {"A": 0.9, "B": 0.05} if letter else {"No": 0.9, "Yes": 0.05}
    return BETTER if "- Water boils" in str(body["messages"]) else SAID


@asynccontextmanager
async def chatting(
    pack: Path,
    model: ScriptedModel,
    bot: object,
    folder: Path | None = None,
    settings: RunSettings | None = None,
) -> AsyncIterator[LiveChat]:
    """A conversation with that chatbot, kept in `folder`."""
    given = {"scenario": str(pack), "chatbots": [bot], "detectors": []}
    experiment = load_experiment(None, {**given, "model": model.name, "base_url": model.base_url})
    name, kept = experiment.chatbots[0].name, folder or pack.parent / "run"
    async with (
        open_live_models(experiment, settings or RunSettings(quiet=True)) as models,
        open_live_run(models, str(pack)) as run,
    ):
        with begin_chat(run, name, [], kept, "a test") as chat:
            yield chat


async def hear(
    pack: Path, kind: str, message: str = "How hot is it?", options: Mapping[str, Any] | None = None
) -> tuple[str, list[ReplyDraft]]:
    """The reply of a chatbot, and what was told while it was made."""
    told: list[ReplyDraft] = []
    bot = {"name": kind, "kind": kind, "options": dict(options or {})}
    with ScriptedModel(script) as model:
        async with chatting(pack, model, bot) as chat:
            turn = await chat.say(message, told.append)
    return turn.reply, told


def shorten(told: list[ReplyDraft]) -> list[tuple[str, str, bool]]:
    """What was told, without the texts that still grow."""
    wholes = ("", SAID, BETTER)
    return [(one.doing, one.text, one.is_reply) for one in told if one.text in wholes]


SEARCHES = ("Searching the documents", "", False)


@pytest.mark.parametrize(
    ("kind", "reply", "told"),
    [
        ("vanilla", SAID, [SEARCHES, ("Writing", "", False), ("Writing", "", True), ("Writing", SAID, True)]),
        (
            "editor",
            BETTER,
            [SEARCHES, ("Writing", "", False), ("Writing", SAID, False), ("Editing the draft", SAID, False)],
        ),
        (
            "fact-checker",
            BETTER,
            [
                *[SEARCHES, ("Writing", "", False), ("Writing", SAID, False)],
                ("Listing the claims of the draft", SAID, False),
                ("Checking claims", SAID, False),
                ("Correcting the draft", SAID, False),
                ("Correcting the draft", "", True),
                ("Correcting the draft", BETTER, True),
            ],
        ),
        ("endpoint", SAID, [("Writing", "", False), ("Writing", "", True), ("Writing", SAID, True)]),
    ],
)
async def test_each_chatbot_is_followed_to_its_reply(
    pack: Path, kind: str, reply: str, told: list[tuple[str, str, bool]]
) -> None:
    said, drafts = await hear(pack, kind)
    assert said == reply
    assert shorten(drafts) == told


async def test_an_agent_first_chooses_who_answers(pack: Path) -> None:
    scenario = pack / "scenario.yaml"
    scenario.write_text(
        f"{scenario.read_text()}specialists:\n  - {{name: maid, title: Maid, duty: makes tea}}\n"
        "  - {name: cook, title: Cook, duty: cooks}\n"
    )
    said, drafts = await hear(pack, "agent")
    assert said == SAID
    assert [one.doing for one in drafts][:2] == ["Searching the documents", "Choosing who answers"]
    assert drafts[-1] == ReplyDraft("Writing", SAID, True)


async def test_thanks_are_answered_at_once_by_every_chatbot(pack: Path) -> None:
    said, drafts = await hear(pack, "editor", "Thank you!")
    assert said == SAID
    assert drafts[-1] == ReplyDraft("Writing", SAID, True)


async def test_the_steps_to_a_conclusion_are_not_the_reply_yet(pack: Path) -> None:
    _, drafts = await hear(pack, "vanilla", options={"strategy": "verify"})
    assert drafts[-1] == ReplyDraft("Writing", SAID, False)


def follow(kind: str, *told: CallProgress) -> list[ReplyDraft]:
    found: list[ReplyDraft] = []
    follower = DraftFollower(Component(name="bot", kind=kind), found.append)
    for one in told:
        follower.follow(one)
    return found


def test_a_model_that_reasons_is_thinking_until_it_speaks() -> None:
    step = "chatbot.generate"
    told = [
        CallProgress(step),
        CallProgress(step, "<think>Is it 7? "),
        CallProgress(step, "<think>7</think> At 7."),
    ]
    assert follow("vanilla", *told) == [
        ReplyDraft("Writing"),
        ReplyDraft("Thinking", "", True),
        ReplyDraft("Writing", "At 7.", True),
    ]


def test_what_a_guard_asks_and_other_peoples_steps_are_told_without_being_the_reply() -> None:
    told = [
        CallProgress("chatbot.generate", "At 7."),
        CallProgress("halludetect.question"),
        CallProgress("halludetect.question", "When?"),
        CallProgress("chatbot.polish"),
        CallProgress("chatbot.polish", "At seven."),
    ]
    assert follow("guarded", *told) == [
        ReplyDraft("Writing", "At 7."),
        ReplyDraft("Judging the draft", "At 7."),
        ReplyDraft("Working: polish", "At 7."),
        ReplyDraft("Working: polish", "At seven."),
    ]


class EndsNever(ScriptedModel):
    """Writes one word of a reply, and then nothing."""

    async def wait_for_piece(self, body: dict[str, Any], number: int) -> None:
        if number == 2 and "Endless?" in last_user(body):
            await asyncio.Event().wait()


async def test_a_reply_that_is_stopped_in_mid_stream_is_not_kept_and_the_conversation_goes_on(
    pack: Path, tmp_path: Path
) -> None:
    with EndsNever(lambda _: SAID) as model:
        async with chatting(pack, model, "endpoint") as chat:
            begun = asyncio.Event()
            saying = asyncio.create_task(
                chat.say("Endless?", lambda draft: begun.set() if draft.text else None)
            )
            await asyncio.wait_for(begun.wait(), 120)
            saying.cancel()
            await asyncio.wait([saying])
            assert saying.cancelled()
            assert (await chat.say("And now?", lambda draft: None)).reply == SAID
    [held] = RunFolder(tmp_path / "run").read_conversations()
    assert [turn.user for turn in held.turns] == ["And now?"]


async def test_a_message_that_is_not_recorded_is_told_and_the_conversation_goes_on(
    pack: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "recording.jsonl"
    with ScriptedModel(script) as model:
        replies = []
        for settings in (RunSettings(record=recording), RunSettings(replay=recording)):
            folder = tmp_path / ("again" if settings.replay else "first")
            async with chatting(pack, model, "vanilla", folder, settings) as chat:
                if settings.replay:
                    with pytest.raises(ReplyFailed, match="has no answer to this request"):
                        await chat.say("And the pot?", lambda draft: None)
                    assert not chat.is_saved
                replies.append((await chat.say("How hot is it?", lambda draft: None)).reply)
    assert replies == [SAID, SAID]
