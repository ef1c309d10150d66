"""Conversations that branch off from others: which are held, and what chatbots and detectors are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hallulab.chatbots.protocol import Reply
from hallulab.scenarios.transcript import Conversation, Message
from hallulab.simulator.engine.conversation import GivenMessage, converse
from hallulab.simulator.engine.plan import Job, PrefixSource, branch_jobs
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.experiment_json import ComponentVersions
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.provenance import identify_makers
from tests.builders import branched, conversation
from tests.simulator.engine.cast import execute
from tests.simulator.engine.test_execution import Answerer, Judge, Listener, cast
from tests.simulator.engine.test_plan import scenario

MAKERS = ComponentVersions(user="u", chatbots={"vanilla": "v", "editor": "e"})


def jobs(
    *conversations: Conversation,
    turns: set[int] | None = None,
    made_by: ComponentVersions = MAKERS,
    **fields: Any,
) -> list[Job]:
    """The branches of Vanilla's conversations, held with `vanilla` and `editor` unless told otherwise."""
    values = {"chatbots": ["vanilla", "editor"], "model": "m"} | fields
    prefixes = PrefixSource("vanilla", conversations, None if turns is None else frozenset(turns))
    return branch_jobs(prefixes, load_experiment(None, values), scenario(), made_by)


def test_every_chatbot_answers_after_every_history() -> None:
    held = jobs(conversation("c", ["One.", "Two."], seed=7))
    assert [(job.key.branch.turn, job.chatbot.name, job.key.seed) for job in held if job.key.branch] == [
        (0, "vanilla", 7),
        (0, "editor", 7),
        (1, "vanilla", 7),
        (1, "editor", 7),
    ]
    assert {job.user for job in held} == {GivenMessage("Hi there")}


def test_only_the_turns_asked_for_are_held_anew() -> None:
    short, long = conversation("a", ["One."]), conversation("b", ["One.", "Two."], persona="dev")
    held = jobs(short, long, turns={1}, chatbots=["editor"])
    assert [(job.key.persona, job.key.branch) for job in held] == [
        (
            "dev",
            branched("x", "", 1).branch.model_copy(
                update={"conversation": "b", "history": long.history(1), "passages": ((),)}
            ),
        )  # type: ignore[union-attr]
    ]


def test_another_history_makes_another_conversation() -> None:
    same = [jobs(conversation("c", ["One.", "Two."]))[2].key.id for _ in range(2)]
    others = [
        jobs(conversation("c", ["Uno.", "Two."]))[2],
        jobs(conversation("d", ["One.", "Two."]))[2],
        jobs(conversation("c", ["One.", "Two."], seed=1))[2],
        jobs(conversation("c", ["One.", "Two."]))[3],
        jobs(
            conversation("c", ["One.", "Two."]),
            made_by=ComponentVersions(user="u", chatbots={"vanilla": "w", "editor": "e"}),
        )[2],
        jobs(conversation("c", ["One.", "Two."]), top_k=9)[2],
    ]
    assert same[0] == same[1]
    assert len({same[0], *(job.key.id for job in others)}) == 7


def test_what_the_chatbot_said_at_that_turn_does_not_matter() -> None:
    one, other = (jobs(conversation("c", ["One.", reply]))[2] for reply in ("Two.", "Three."))
    assert one.key.id == other.key.id


def test_the_texts_of_the_run_are_its_identity() -> None:
    one, other = (
        PrefixSource("vanilla", [conversation("c", ["One.", reply])], None).identity()
        for reply in ("Two.", "Three.")
    )
    assert one.keys() == other.keys()
    assert sorted(name for name in one if one[name] != other[name]) == [
        "conversation with persona asha, seed 0"
    ]


def test_no_simulated_user_makes_branched_conversations() -> None:
    one, other = (
        load_experiment(
            None,
            {"chatbots": ["vanilla"], "model": "m", "roles": {"user": "u"}, "models": {"u": {"model": name}}},
        )
        for name in ("small", "large")
    )
    assert identify_makers(one) != identify_makers(other)
    assert identify_makers(one, branched=True) == identify_makers(other, branched=True)
    assert identify_makers(one, branched=True).chatbots == identify_makers(one).chatbots


class Keeping:
    """Keeps the histories that it is given."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    async def reply(self, history: Sequence[Message]) -> Reply:
        self.seen.append(tuple(message.text for message in history))
        return Reply(text="My own.")


async def test_a_chatbot_is_given_the_history_and_the_message() -> None:
    bot = Keeping()
    [job] = jobs(conversation("c", ["One.", "Two.", "Three."]), turns={2}, chatbots=["editor"])
    assert isinstance(job.user, GivenMessage)
    held = await converse(job.key, job.user, bot, 1)
    assert bot.seen == [("Hi there", "One.", "Hi there", "Two.", "Hi there")]
    assert held.branch == job.key.branch
    assert [(turn.index, turn.user, turn.reply, turn.calls) for turn in held.turns] == [
        (0, "Hi there", "My own.", ())
    ]
    assert (held.stop_reason, held.version) == ("max_turns", "u-e")


async def test_a_detector_sees_the_given_history_and_judges_the_new_reply_alone(tmp_path: Path) -> None:
    judge = Judge()
    [job] = jobs(conversation("c", ["One.", "Two."]), turns={1}, chatbots=["editor"])
    given = cast(judge, make_user=lambda job: GivenMessage("Hi there"), max_turns=1)
    await execute(given, [job], RunFolder(tmp_path), Listener())
    [view] = judge.seen
    assert [message.text for message in view.history] == ["Hi there", "One."]
    assert (view.question, view.reply) == ("Hi there", "Answer after 3 messages.")


async def test_a_failed_reply_is_tried_again(folder: RunFolder) -> None:
    [job] = jobs(conversation("c", ["One."]), chatbots=["editor"])
    user = {"make_user": lambda job: GivenMessage("Hi there"), "max_turns": 1}
    given = cast(**user)
    broken = cast(**user, build_chatbot=lambda chosen, seed, conversation: Answerer(ValueError("no")))
    await execute(broken, [job], folder, Listener())
    await execute(given, [job], folder, Listener())
    [held] = folder.read_conversations()
    assert (held.id, held.branch, len(held.turns)) == (f"{job.key.id}-try2", job.key.branch, 1)
