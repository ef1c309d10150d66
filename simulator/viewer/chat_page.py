"""The page on which a person talks to a chatbot."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.errors import HallulabError, ReplayMiss
from hallulab.scenarios.transcript import Turn, Verdict
from hallulab.simulator.chat.drafts import ReplyDraft
from hallulab.simulator.chat.live import LiveChat, ReplyFailed, begin_chat
from hallulab.simulator.engine.conversation import build_ended_conversation
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.report.scores import LaneScore
from hallulab.simulator.show.html import render_part
from hallulab.simulator.viewer.conversation_page import show_turns
from hallulab.simulator.viewer.lent_runs import LentRuns
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.responses import (
    answer_json,
    answer_nothing,
    answer_page,
    missing_page,
    read_object,
    refuse,
)
from hallulab.simulator.viewer.runs import ShownRuns

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


COMMAND = "hallulab view"
"""Where the person talked, in experiment.json."""

MOST_CONVERSATIONS = 20
"""Conversations under way at once."""

LOOK_S = 1.0
"""Seconds between two signs of life of a conversation in which nothing happens."""


class ChatPages:
    """Answers the addresses under `/talk`."""

    def __init__(self, runs: ShownRuns, offer: Offer) -> None:
        self._runs = runs
        self._offer = offer
        self._lent_runs = LentRuns(offer.experiment, RunSettings(quiet=True))
        self._talks: dict[str, LiveConversation] = {}
        self._holding: set[asyncio.Task[None]] = set()

    def list_routes(self) -> list[Route]:
        """Return the addresses."""
        from starlette.routing import Route

        return [
            Route("/talk", self.show, methods=["GET"]),
            Route("/talk", self.begin, methods=["POST"]),
            Route("/talk/{talk}/{order}", self.obey, methods=["POST"]),
            Route("/talk/{talk}/events", self.stream, methods=["GET"]),
            Route("/talk/{talk}/run", self.lead, methods=["GET"]),
        ]

    def show(self, request: Request) -> Response:
        """Show the page."""
        return answer_page("talk.html", offer=self._offer)

    async def begin(self, request: Request) -> Response:
        """Begin a conversation: `scenario`, `chatbot` and `detectors`, all among those that can be chosen."""
        asked = await read_object(request)
        if not self._offer.can_chat:
            return refuse("Nothing can be talked to here: start the viewer with --experiment or --model.")
        experiment = self._offer.experiment
        scenario, chatbot = asked.get("scenario"), asked.get("chatbot")
        detectors = asked.get("detectors")
        known = {one.name for one in experiment.detectors}
        if (
            scenario not in self._offer.scenarios
            or chatbot not in [bot.name for bot in experiment.chatbots]  # not a set: it may be a list
            or not isinstance(detectors, list)
            or any(not isinstance(name, str) or name not in known for name in detectors)
        ):
            return refuse("Scenario, chatbot or detectors are not among those of the experiment.")
        if sum(not talk.ended for talk in self._talks.values()) >= MOST_CONVERSATIONS:
            return refuse(f"{MOST_CONVERSATIONS} conversations are under way. End one of them.")
        talk = LiveConversation(self._offer, str(chatbot), detectors)
        self._talks[talk.id] = talk
        task = asyncio.create_task(talk.hold(self._lent_runs, str(scenario)))
        self._holding.add(task)
        task.add_done_callback(self._holding.discard)
        return answer_json({"talk": talk.id})

    async def obey(self, request: Request) -> Response:
        """Say something in a conversation, stop what is under way in it, or end it."""
        talk, order = self._find(request), request.path_params["order"]
        if order not in ("say", "stop", "end"):
            raise missing_page()
        if order == "say":
            said = (await read_object(request)).get("text")
            if not isinstance(said, str) or not said.strip():
                return refuse("A message must have a text.")
            talk.say(said.strip())
        elif order == "stop":
            talk.stop()
        else:
            talk.end()
        return answer_nothing()

    async def stream(self, request: Request) -> Response:
        """Send the events of a conversation, from its beginning or behind the last one that was sent."""
        from starlette.responses import StreamingResponse

        talk = self._find(request)
        last = request.headers.get("last-event-id", "")
        sent = int(last) + 1 if last.isdecimal() and len(last) < 9 else 0
        return StreamingResponse(_follow(talk, sent, request), media_type="text/event-stream")

    def lead(self, request: Request) -> Response:
        """Lead to the run of a conversation."""
        from starlette.responses import RedirectResponse

        talk = self._find(request)
        for run in self._runs.list():
            if run.folder.path.resolve() == talk.folder.resolve():
                return RedirectResponse(f"/runs/{run.id}/conversations", 303)
        return refuse("Nothing of it is saved yet.", 404)

    def _find(self, request: Request) -> LiveConversation:
        talk = self._talks.get(request.path_params["talk"])
        if talk is None:
            raise missing_page()
        return talk


async def _follow(talk: LiveConversation, sent: int, request: Request) -> AsyncIterator[str]:
    draft: ReplyDraft | None = None
    while not await request.is_disconnected():
        for number, (kind, value) in enumerate(talk.events[sent:], start=sent):
            sent = number + 1
            yield f"id: {number}\nevent: {kind}\ndata: {json.dumps(value)}\n\n"
        if talk.ended and sent == len(talk.events):
            return
        if talk.draft is not draft:
            draft = talk.draft
            if draft is not None:
                yield f"event: draft\ndata: {json.dumps(asdict(draft))}\n\n"
        await talk.wait(sent, draft, LOOK_S)
        yield ": \n\n"


class LiveConversation:
    """One conversation of the page."""

    def __init__(self, offer: Offer, chatbot: str, detectors: Sequence[str]) -> None:
        self.id = secrets.token_hex(8)
        self.folder = offer.make_folder().path
        self.events: list[tuple[str, Any]] = []
        """Kinds and values, in the order in which they happened."""
        self.draft: ReplyDraft | None = None
        self.ended = False
        self._chatbot, self._detectors = chatbot, detectors
        self._messages: asyncio.Queue[str | None] = asyncio.Queue()
        self._replying: asyncio.Task[Turn] | None = None
        self._judging: set[asyncio.Task[None]] = set()
        self._happened = asyncio.Event()

    def say(self, message: str) -> None:
        """Say something; it is answered when what was said before it has been."""
        self._messages.put_nowait(message)

    def stop(self) -> None:
        """Stop the reply under way; where there is none, the judging."""
        if self._replying is not None:
            self._replying.cancel()
        else:
            for task in self._judging:
                task.cancel()

    def end(self) -> None:
        """End the conversation behind what was said."""
        self._messages.put_nowait(None)

    async def wait(self, seen: int, draft: ReplyDraft | None, seconds: float) -> None:
        """Wait until there are more events than `seen` or another draft, at most so many seconds."""
        if len(self.events) <= seen and self.draft is draft and not self.ended:
            self._happened.clear()
            try:
                await asyncio.wait_for(self._happened.wait(), seconds)
            except TimeoutError:
                return

    async def hold(self, runs: LentRuns, scenario: str) -> None:
        """Hold the conversation until its end."""
        try:
            async with runs.lend(scenario) as run:
                with begin_chat(run, self._chatbot, self._detectors, self.folder, COMMAND) as chat:
                    self._add_event("ready", chat.key.id)
                    while chat.over is None and (message := await self._messages.get()) is not None:
                        await self._exchange(chat, message)
                    await asyncio.gather(*self._judging)
                    self._add_event("over", chat.over or "The conversation has ended.")
        except (HallulabError, ReplayMiss, OSError) as error:
            self._add_event("over", str(error))
        finally:
            with suppress(OSError):  # nothing was said in it, or it has been removed
                self.folder.rmdir()
            self.ended = True
            self._happened.set()

    async def _exchange(self, chat: LiveChat, message: str) -> None:
        self._add_event("replying", message)
        self._replying = asyncio.create_task(chat.say(message, self._draw))
        try:
            await asyncio.wait([self._replying])
            if self._replying.cancelled():
                self._add_event("unanswered", "Stopped. This message has no reply and is not kept.")
                return
            turn = self._replying.result()
        except ReplyFailed as error:
            self._add_event("unanswered", str(error))
            return
        finally:
            self._replying.cancel()
            self._replying = self.draft = None
        judging = asyncio.create_task(self._judge(chat, turn))
        self._judging.add(judging)
        judging.add_done_callback(self._judging.discard)

    async def _judge(self, chat: LiveChat, turn: Turn) -> None:
        verdicts: list[Verdict] = []
        self._show(chat, turn, verdicts, bool(chat.detectors))
        try:
            async for verdict in chat.judge(turn):
                verdicts.append(verdict)
                self._show(chat, turn, verdicts, len(verdicts) < len(chat.detectors))
        except asyncio.CancelledError:
            self._show(chat, turn, verdicts, False)
        except (HallulabError, ReplayMiss) as error:
            self._show(chat, turn, verdicts, False)
            self._add_event("note", str(error))

    def _draw(self, draft: ReplyDraft) -> None:
        self.draft = draft
        self._happened.set()

    def _show(self, chat: LiveChat, turn: Turn, verdicts: Sequence[Verdict], judged: bool) -> None:
        so_far = build_ended_conversation(chat.key, "unknown", chat.turns)
        scores = [LaneScore(one.name, one.KIND or "", one.threshold) for one in chat.detectors]
        shown = show_turns(so_far, verdicts, scores)[turn.index]
        self._add_event(
            "turn",
            {
                "turn": turn.index,
                "html": render_part(__package__, "talk_turn.html", shown=shown, judged=judged),
            },
        )

    def _add_event(self, kind: str, value: Any) -> None:
        self.events.append((kind, value))
        self._happened.set()
