"""The viewer as an application: its addresses, and what each shows."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.simulator.metrics.results import mark
from hallulab.simulator.show.html import load_asset, make_environment
from hallulab.simulator.viewer.annotating import ANYBODY, Labelling, LabellingPages
from hallulab.simulator.viewer.conversation import show_turns
from hallulab.simulator.viewer.findings import Findings
from hallulab.simulator.viewer.guard import Access, Guard, build_policy
from hallulab.simulator.viewer.index import Rate
from hallulab.simulator.viewer.launching import Launcher
from hallulab.simulator.viewer.offers import NOTHING_OFFERED
from hallulab.simulator.viewer.requests import answer_page, refuse, refuse_address, register_turns
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns, look_at_files, read_with_evidence
from hallulab.simulator.viewer.side_pages import list_side_routes
from hallulab.simulator.viewer.starting import StartingPages
from hallulab.simulator.viewer.talking import TalkingPages
from hallulab.simulator.viewer.talks import TalkSource

if TYPE_CHECKING:
    from jinja2 import Template
    from starlette.requests import Request
    from starlette.responses import Response

_PACKAGE = "hallulab.simulator.viewer"

A_PAGE = 50
"""Conversations on a page of the list."""
MOST_NAMES = 500
"""Personas up to which they are listed to choose from; of more, a name is typed."""

LOOK_S = 1.0
"""Seconds between two looks at a run that somebody watches."""

READ_S = 0.5
"""Seconds in which the page of all runs reads what was added to them; the rest is read in the background."""

_SCRIPTS = ("htmx.min.js", "viewer.js", "beside.js", "annotate.js", "talk.js", "start.js")


def make_app(
    runs: ShownRuns,
    access: Access,
    labelling: Labelling = ANYBODY,
    talked: TalkSource | None = None,
    launcher: Launcher | None = None,
) -> Guard:
    """Make the application.

    Args:
        runs: what it shows.
        access: what requests must bring.
        labelling: who labels, and how.
        talked: what can be talked to; None: nothing.
        launcher: starts runs; None: none can be started.
    """
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect
    from starlette.routing import Route

    register_turns()
    starting = StartingPages(runs, launcher or Launcher(NOTHING_OFFERED), _render)
    pages = Pages(runs, labelling, starting)
    app = Starlette(
        routes=[
            Route("/", pages.show_runs),
            Route("/runs/{run}", pages.show_run),
            Route("/runs/{run}/live", pages.show_live),
            Route("/runs/{run}/conversations", pages.show_list),
            Route("/runs/{run}/conversations/{chat}", pages.show_conversation),
            Route("/runs/{run}/conversations/{chat}/{direction}/{turn:turn}", pages.find_flagged),
            Route("/runs/{run}/events", pages.stream_events),
            *LabellingPages(runs, labelling, _render).list_routes(),
            *list_side_routes(runs, _render),
            *TalkingPages(runs, talked, _render).list_routes(),
            *starting.list_routes(),
        ],
        exception_handlers={
            UsageError: _tell,
            OperationalError: _tell,
            OSError: _tell_system_error,
            ClientDisconnect: _leave,
        },
    )
    policy = build_policy([*_read_scripts().values()], [_style()])
    return Guard(app, access, policy)


@cache
def _read_scripts() -> dict[str, str]:
    return {name: load_asset(_PACKAGE, name) for name in _SCRIPTS}


@cache
def _style() -> str:
    parts = [
        ("hallulab.simulator.show", "page.css"),
        *((_PACKAGE, name) for name in ("viewer.css", "annotate.css", "talk.css", "start.css")),
    ]
    return "".join(load_asset(package, name) for package, name in parts)


async def _tell(request: Request, error: Exception) -> Response:
    return refuse(str(error), 500)


async def _tell_system_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OSError)
    return refuse(f"{error.filename or 'A file'}: {error.strerror or error}.", 500)


async def _leave(request: Request, error: Exception) -> Response:
    return refuse("The request was not sent to its end.")


class Pages:
    """What each address shows.

    Args:
        runs: the runs.
        labelling: who labels.
        starting: says where runs stand.
    """

    def __init__(self, runs: ShownRuns, labelling: Labelling, starting: StartingPages) -> None:
        self._runs = runs
        self._labelling = labelling
        self._starting = starting
        self._findings = Findings()
        self._watch = Watch(self._findings)

    def show_runs(self, request: Request) -> Response:
        """Show the runs."""
        shown: list[dict[str, Any]] = []
        until = time.monotonic() + READ_S
        for run in self._runs.list():
            try:
                shown.append(_describe_row(run, at_once=time.monotonic() < until))
            except (UsageError, OperationalError) as error:  # the others can be shown
                shown.append({"run": run, "problem": str(error)})
        reading = sum(one["run"].growth.is_working for one in shown)
        return _render("runs.html", shown=shown, reading=reading)

    def show_run(self, request: Request) -> Response:
        """Show a run."""
        run = self._find(request, grow=False)
        if run is None:
            return refuse_address()
        seen = _tell_state(run, self._findings)  # before the page is made, which may then know more
        standing = self._starting.find_standing(run)
        return _render("run.html", seen=seen, standing=standing, **self._describe(run))

    def show_live(self, request: Request) -> Response:
        """Show the part of a run's page that changes while it grows."""
        run = self._find(request)
        return refuse_address() if run is None else _render("live.html", **self._describe(run))

    def show_list(self, request: Request) -> Response:
        """Show some conversations of a run."""
        run = self._find(request)
        if run is None:
            return refuse_address()
        asked = request.query_params
        chatbot, persona, flagged = asked.get("chatbot", ""), asked.get("persona", ""), "flagged" in asked
        page = max(1, int(asked["page"])) if re.fullmatch("[0-9]{1,8}", asked.get("page", "")) else 1
        number, chats = run.index.list_chats(chatbot, persona, flagged, (page - 1) * A_PAGE, A_PAGE)
        return _render(
            "list.html",
            run=run,
            chats=chats,
            number=number,
            page=page,
            pages=-(-number // A_PAGE),
            asked={"chatbot": chatbot, "persona": persona, **({"flagged": "1"} if flagged else {})},
            chatbots=run.index.list_names("chatbot", MOST_NAMES),
            personas=run.index.list_names("persona", MOST_NAMES),
        )

    def show_conversation(self, request: Request) -> Response:
        """Show a conversation."""
        run = self._find(request)
        found = None if run is None else read_with_evidence(run, request.path_params["chat"])
        if run is None or found is None:
            return refuse_address()
        chat, verdicts = found
        return _render(
            "conversation.html",
            run=run,
            chat=chat,
            turns=show_turns(chat, verdicts, _name_detectors(run, [one.detector for one in verdicts])),
            others=run.index.list_case(chat.id),
            labelling=self._labelling,
            marks=f"{run.address_chat(chat.id)}/marks",
            settling=False,
        )

    def find_flagged(self, request: Request) -> Response:
        """Lead to the next or the previous flagged turn."""
        from starlette.responses import RedirectResponse

        run = self._find(request)
        asked = request.path_params
        if run is None or asked["direction"] not in ("next", "previous"):
            return refuse_address()
        found = run.index.find_flagged(asked["chat"], asked["turn"], asked["direction"] == "next")
        if found is None:
            where = "end" if asked["direction"] == "next" else "start"
            return RedirectResponse(f"/runs/{run.id}/conversations/{asked['chat']}#{where}", 303)
        return RedirectResponse(f"/runs/{run.id}/conversations/{found.chat}#turn-{found.turn}", 303)

    async def stream_events(self, request: Request) -> Response:
        """Say when a run has grown, until the browser leaves."""
        from starlette.responses import StreamingResponse

        run = self._find(request, grow=False)
        if run is None:
            return refuse_address()
        return StreamingResponse(_watch(run, self._watch, request), media_type="text/event-stream")

    def _find(self, request: Request, grow: bool = True) -> ShownRun | None:
        run = self._runs.get(request.path_params["run"])
        if run is not None and grow:
            run.growth.catch_up()
        return run

    def _describe(self, run: ShownRun) -> dict[str, Any]:
        findings = self._findings.of(run)
        return {
            "run": run,
            "counts": run.growth.count(),
            "rates": () if run.growth.is_working else run.index.rate(),
            "findings": findings,
        }


@dataclass(frozen=True)
class Fewest:
    """The chatbot with the fewest hallucinations per turn by a detector."""

    detector: str
    chatbot: str
    hpt: float
    """Its hallucinations per scored turn."""


def find_fewest(rates: Sequence[Rate]) -> list[Fewest]:
    """Return for each detector that scored a turn the chatbot with the fewest hallucinations per turn."""
    found: dict[str, Fewest] = {}
    for rate in rates:
        if not rate.turns:
            continue
        hpt = rate.hallucinations / rate.turns
        if rate.detector not in found or hpt < found[rate.detector].hpt:
            found[rate.detector] = Fewest(rate.detector, rate.chatbot, hpt)
    return list(found.values())


class Watch:
    """Looks at runs for all that follow them: once in `LOOK_S`, however many they are.

    Args:
        findings: makes the reports of runs.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._looks: dict[str, tuple[float, asyncio.Task[str]]] = {}
        """When the last look at a run began, and what was seen."""

    async def look(self, run: ShownRun) -> str:
        """Return the state of a run now or a moment ago (`_tell_state`)."""
        now = time.monotonic()
        begun, looking = self._looks.get(run.id, (0.0, None))
        if looking is None or (looking.done() and now >= begun + LOOK_S):
            looking = asyncio.create_task(asyncio.to_thread(_tell_state, run, self._findings))
            looking.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._looks[run.id] = now, looking
        return await asyncio.shield(looking)  # whoever leaves ends nobody else's look


async def _watch(run: ShownRun, watch: Watch, request: Request) -> AsyncIterator[str]:
    """Yield an event when the run has grown or its report is made, else a comment: so a closed line shows."""
    before = None
    while not await request.is_disconnected():
        state = await watch.look(run)
        if state != before:
            before = state
            yield f"event: grown\ndata: {state}\n\n"
        else:
            yield ": nothing new\n\n"
        await asyncio.sleep(LOOK_S)


def _tell_state(run: ShownRun, findings: Findings) -> str:
    """Bring a run up to date and return what its page follows, as JSON.

    A page is out of date if it was made at another state.
    """
    files = look_at_files(run.folder)  # before they are read: what comes meanwhile is another state
    run.growth.catch_up()
    return json.dumps(
        {
            **asdict(run.growth.count()),
            "files": digest(files),
            "more": run.growth.is_working,
            "making": findings.is_making(run),
        }
    )


def _describe_row(run: ShownRun, at_once: bool) -> dict[str, Any]:
    """Return what the page of all runs says of a run."""
    run.growth.catch_up(at_once)
    saved = run.folder.read_experiment()
    rates = () if run.growth.is_working else run.index.rate()
    best, counts = find_fewest(rates), run.growth.count()
    return {"run": run, "counts": counts, "best": best, "saved": saved, "problem": ""}


def _name_detectors(run: ShownRun, found: list[str]) -> list[str]:
    """Return the run's detectors, in its order, then others that judged."""
    saved = run.folder.read_experiment()
    return list(dict.fromkeys([*(saved.detectors if saved else ()), *sorted(found)]))


def _render(template: str, **values: Any) -> Response:
    return answer_page(_load(template).render(values, style=_style(), scripts=_read_scripts()))


@cache
def _load(name: str) -> Template:
    environment = make_environment(_PACKAGE)
    environment.globals.update(mark=mark)
    return environment.get_template(name)
