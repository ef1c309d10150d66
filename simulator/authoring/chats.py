"""Read personas from reference chats, and summarize such chats.

Make a persona of each real chat, with what the documents say about what its user wanted.
Source: HalluDetect, section 4.3, B.9 and D.7: chats between people and a chatbot are summarized, and each
simulated user gets the situation of one chat. The paper gives its users the summary. Ours ask by goals, too,
so these and the facts are read off the summary, and the manner off the chat. The person's name is drawn: the
chat's own is nobody's business.

A chat's goals are not chosen, so none is refused for what the documents say about it: that is found out. One
with several questions is answered if the documents tell all of them, in part if they tell some.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from hallulab.agents.models.answers import ModelError, UnparseableAnswer
from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.users.chats import (
    MAX_TOKENS,
    ChatCase,
    parts,
    read_case,
    read_manner,
    summarize,
    told_in,
)
from hallulab.agents.users.personas import MANNERS, names
from hallulab.scenarios.chats.formats import format_of, read_chats, without_mapping
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import replace_surrogates
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.scenarios.text.wording import render_one_line
from hallulab.scenarios.transcript import Message
from hallulab.simulator.authoring.personas import TRIES, Goal, Made, PersonaBatch, find_answering_passage
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.records.experiment import Experiment


@dataclass(frozen=True)
class Chat:
    """A chat of a real user."""

    place: str
    """Its file, without the folder, and line."""
    messages: tuple[Message, ...]
    """Empty: nobody replied."""


def load_chat_file(path: Path, most: int | None) -> list[Chat]:
    """Read the chats of a file, in any format that `hallulab import` finds out.

    Args:
        most: the first so many; None: all.

    Raises:
        UsageError: something in it is wrong, or no chat has a reply; names file, line and remedy.
    """
    with without_mapping():
        read = islice(read_chats(path, format_of(path)), most)
        chats = [
            Chat(
                replace_surrogates(place.replace(str(path), path.name, 1)), tuple(one.history(len(one.turns)))
            )
            for place, one in read
        ]
    if not any(chat.messages for chat in chats):
        raise UsageError(f"{path}: no conversation in it has a reply, so there is nothing to summarize.")
    return chats


class ChatPersonas:
    """Makes personas of chats.

    Args:
        session: asks the model; makes a fresh one for each persona.
        domain: the assistant's domain, in the words of a prompt.
        seed: draws names, and manners where none fits.
    """

    def __init__(
        self, session: Callable[[], Session], knowledge: KnowledgeBase, domain: str, seed: int
    ) -> None:
        self._session = session
        self._knowledge = knowledge
        self._domain = domain
        self._seed = seed
        self._result = PersonaBatch()

    async def make(self, chats: Sequence[Chat], on_done: Callable[[], None] = lambda: None) -> PersonaBatch:
        """Make a persona of each chat; failures are reported with the chat's place.

        Args:
            on_done: called when a persona is there, or has failed.
        """
        people = names(len(chats), self._seed)

        async def make_one(number: int) -> Made | None:
            try:
                return await self._make_persona(number, chats[number], people[number])
            except ModelError as error:
                self._result.failed.append(f"{chats[number].place}: {error}")
                return None
            finally:
                on_done()

        made = await asyncio.gather(*(make_one(number) for number in range(len(chats))))
        self._result.made += [found for found in made if found is not None]
        return self._result

    async def _make_persona(self, number: int, chat: Chat, name: str) -> Made | None:
        if not chat.messages:
            self._result.failed.append(f"{chat.place}: nobody replied, so there is nothing to summarize.")
            return None
        session = self._session()
        summary = await summarize(session, chat.messages, self._domain)
        if session.calls[-1].finish_reason == "length":
            self._result.doubtful.append(f"{chat.place}: the summary was cut off at {MAX_TOKENS} tokens")
        case = await self._read_case(session, chat, name, summary)
        goals = tuple(await asyncio.gather(*(self._check_goal(session, goal) for goal in case.goals)))
        manner, note = await self._read_manner(session, chat, number)
        persona = Persona(
            id=f"chat-{number + 1:03d}",
            name=name,
            grievance=case.grievance,
            goals=case.goals,
            labels=tuple(goal.label for goal in goals),
            facts=case.facts,
            manner=manner,
            summary=render_one_line(summary),
        )
        return Made(persona, goals, (f"from {chat.place}", note))

    async def _read_case(self, session: Session, chat: Chat, name: str, summary: str) -> ChatCase:
        """Return the user's case, without facts that the user did not tell.

        Raises:
            ModelError: no answer has the form.
        """
        for attempt in range(TRIES):
            try:
                case = await read_case(session, self._domain, name, summary, attempt)
                break
            except UnparseableAnswer as error:
                self._result.refused.append(f"{chat.place}: {error}")
                last = error
        else:
            raise last
        said = "\n".join(message.text for message in chat.messages if message.role == "user")
        facts = [fact for fact in case.facts if told_in(said, fact)]
        self._result.doubtful += [
            f"{chat.place}: left out, for the user did not tell it: {fact!r}"
            for fact in case.facts
            if fact not in facts
        ]
        return case.model_copy(update={"facts": tuple(facts)})

    async def _check_goal(self, session: Session, text: str) -> Goal:
        """Find out what the documents say about a goal."""
        found = [await find_answering_passage(session, self._knowledge, part) for part in parts(text)]
        passage = next((one for one in found if one is not None), None)
        if passage is None:
            return Goal(text, "not answered", None)
        return Goal(text, "answered" if None not in found else "in part", passage)

    async def _read_manner(self, session: Session, chat: Chat, number: int) -> tuple[str, str]:
        """Return the user's manner, drawn where none fits, and a note on where it comes from."""
        try:
            manner = await read_manner(session, chat.messages)
        except UnparseableAnswer:
            manner = None
        if manner is not None:
            return manner, "manner: the chat's"
        drawn = random.Random(self._seed + number).choice(MANNERS)  # noqa: S311 - a seeded choice of data
        return drawn, "manner: drawn, for none of the known ones fits the chat"


@dataclass(frozen=True)
class Summary:
    """The summarizer's answer."""

    text: str
    cut: bool
    """True if the model was stopped before its end."""


async def summarize_chat(chat: Sequence[Message], experiment: Experiment, settings: RunSettings) -> Summary:
    """Let the simulated user's model summarize a chat.

    Args:
        chat: see `hallulab.agents.users.chats.summarize`.
        experiment: its models are used, and its scenario says what the assistant is for.

    Raises:
        UsageError: there is no such scenario, or the models do not fit together.
        OperationalError: server, endpoint or model failed.
    """
    domain = load_without_documents(experiment.scenario).domain
    async with open_pool(experiment, open_recording(settings)) as pool, serve_models(pool, settings):
        session = pool.session("summarizer", experiment.seed, experiment.roles.get("user"))
        text = await summarize(session, chat, domain)
    return Summary(text, cut=session.calls[-1].finish_reason == "length")
