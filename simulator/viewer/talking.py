"""The page on which a person talks to a chatbot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from hallulab.simulator.chat.drafts import ReplyDraft
from hallulab.simulator.show.html import make_environment
from hallulab.simulator.viewer.conversation import ShownTurn
from hallulab.simulator.viewer.lent_runs import LentRuns
from hallulab.simulator.viewer.requests import answer_json, read_object, refuse
from hallulab.simulator.viewer.runs import ShownRuns
from hallulab.simulator.viewer.talks import Talk, TalkSource

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

MOST_TALKS = 20
"""Conversations under way at once."""

LOOK_S = 1.0
"""Seconds between two signs of life of a conversation in which nothing happens."""


class TalkingPages:
    """What the addresses under `/talk` do.

    Args:
        runs: what the viewer shows.
        source: what can be talked to; None: nothing, and the page says how.
        render: renders a page of the viewer.
    """

    def __init__(self, runs: ShownRuns, source: TalkSource | None, render: Callable[..., Response]) -> None:
        self._runs = runs
        self._source = source
        self._render = render
        self._lent_runs = None if source is None else LentRuns(source.experiment, source.settings)
        self._talks: dict[str, Talk] = {}
        self._holding: set[asyncio.Task[None]] = set()
        self._turn = make_environment("hallulab.simulator.viewer").get_template("talk_turn.html")

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
        return self._render("talk.html", source=self._source)

    async def begin(self, request: Request) -> Response:
        """Begin a conversation: `scenario`, `chatbot` and `detectors`, all among those that can be chosen."""
        asked = await read_object(request)
        if self._source is None or self._lent_runs is None:
            return refuse("Nothing can be talked to here: start the viewer with --experiment or --model.")
        experiment = self._source.experiment
        scenario, chatbot = asked.get("scenario"), asked.get("chatbot")
        detectors = asked.get("detectors")
        known = {one.name for one in experiment.detectors}
        if (
            scenario not in self._source.scenarios
            or chatbot not in [bot.name for bot in experiment.chatbots]  # not a set: it may be a list
            or not isinstance(detectors, list)
            or any(not isinstance(name, str) or name not in known for name in detectors)
        ):
            return refuse("Scenario, chatbot or detectors are not among those of the experiment.")
        if sum(not talk.ended for talk in self._talks.values()) >= MOST_TALKS:
            return refuse(f"{MOST_TALKS} conversations are under way. End one of them.")
        talk = Talk(self._source, str(chatbot), detectors, self._render_turn)
        self._talks[talk.id] = talk
        task = asyncio.create_task(talk.hold(self._lent_runs, str(scenario)))
        self._holding.add(task)
        task.add_done_callback(self._holding.discard)
        return answer_json({"talk": talk.id})

    async def obey(self, request: Request) -> Response:
        """Say something in a conversation, stop what is under way in it, or end it."""
        from starlette.responses import Response

        talk = self._talks.get(request.path_params["talk"])
        order = request.path_params["order"]
        if talk is None or order not in ("say", "stop", "end"):
            return refuse("There is no such conversation.", 404)
        if order == "say":
            said = (await read_object(request)).get("text")
            if not isinstance(said, str) or not said.strip():
                return refuse("A message must have a text.")
            talk.say(said.strip())
        elif order == "stop":
            talk.stop()
        else:
            talk.end()
        return Response(status_code=204)

    async def stream(self, request: Request) -> Response:
        """Tell what happens in a conversation, from its beginning or behind the last event that was told."""
        from starlette.responses import StreamingResponse

        talk = self._talks.get(request.path_params["talk"])
        if talk is None:
            return refuse("There is no such conversation.", 404)
        last = request.headers.get("last-event-id", "")
        told = int(last) + 1 if last.isdecimal() and len(last) < 9 else 0
        return StreamingResponse(_follow(talk, told, request), media_type="text/event-stream")

    def lead(self, request: Request) -> Response:
        """Lead to the run of a conversation."""
        from starlette.responses import RedirectResponse

        talk = self._talks.get(request.path_params["talk"])
        if talk is None:
            return refuse("There is no such conversation.", 404)
        for run in self._runs.list():
            if run.folder.path.resolve() == talk.folder.resolve():
                return RedirectResponse(f"/runs/{run.id}/conversations", 303)
        return refuse("Nothing of it is saved yet.", 404)

    def _render_turn(self, shown: ShownTurn, judged: bool) -> str:
        return self._turn.render(shown=shown, judged=judged)


async def _follow(talk: Talk, told: int, request: Request) -> AsyncIterator[str]:
    draft: ReplyDraft | None = None
    while not await request.is_disconnected():
        for number, (kind, value) in enumerate(talk.events[told:], start=told):
            told = number + 1
            yield f"id: {number}\nevent: {kind}\ndata: {json.dumps(value)}\n\n"
        if talk.ended and told == len(talk.events):
            return
        if talk.draft is not draft:
            draft = talk.draft
            if draft is not None:
                yield f"event: draft\ndata: {json.dumps(asdict(draft))}\n\n"
        await talk.wait(told, draft, LOOK_S)
        yield ": \n\n"
