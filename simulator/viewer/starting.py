"""The page on which runs are started, and what stops and resumes them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.recipients import Recipient
from hallulab.simulator.show.html import make_environment
from hallulab.simulator.viewer.asked_run import AskedRun, fill_form, read_asked_run
from hallulab.simulator.viewer.form import FormError
from hallulab.simulator.viewer.launching import MOST_RUNS, Launcher
from hallulab.simulator.viewer.requests import answer_json, answer_page, read_object, refuse
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns
from hallulab.simulator.viewer.standing import RunStanding, StandingKeeper

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


CONFIRMED = "confirmed"
"""The field of a form with the marks of recipients that a person has confirmed."""


class StartingPages:
    """What the addresses for starting, stopping and resuming runs answer.

    Args:
        runs: what the viewer shows.
        launcher: starts runs.
        render: renders a page of the viewer.
    """

    def __init__(self, runs: ShownRuns, launcher: Launcher, render: Callable[..., Response]) -> None:
        self._runs = runs
        self._launcher = launcher
        self._render = render
        self._standings = StandingKeeper(launcher)
        environment = make_environment("hallulab.simulator.viewer")
        self._standing = environment.get_template("standing.html")
        self._personas = environment.get_template("personas.html")

    def list_routes(self) -> list[Route]:
        """Return the addresses."""
        from starlette.routing import Route

        return [
            Route("/start", self.show, methods=["GET"]),
            Route("/start", self.start, methods=["POST"]),
            Route("/start/personas", self.show_personas, methods=["GET"]),
            Route("/start/check", self.check, methods=["POST"]),
            Route("/runs/{run}/standing", self.show_standing, methods=["GET"]),
            Route("/runs/{run}/stop", self.stop, methods=["POST"]),
            Route("/runs/{run}/resume", self.resume, methods=["POST"]),
        ]

    def find_standing(self, run: ShownRun) -> RunStanding | None:
        """Return where a run stands; None: it was not planned.

        Raises:
            UsageError: experiment.json is damaged.
            OperationalError: the index or a journal cannot be read or written.
        """
        return self._standings.of(run)

    def show(self, request: Request) -> Response:
        """Show the form."""
        source = self._launcher.source
        return self._render(
            "start.html",
            source=source,
            fields=fill_form(source),
            chosen=source.experiment.personas or (),
            personas=_read_personas(source.experiment.scenario),
            most_runs=MOST_RUNS,
        )

    def show_personas(self, request: Request) -> Response:
        """Show the personas of a pack that can be chosen."""
        scenario = request.query_params.get("scenario", "")
        if scenario not in self._launcher.source.scenarios:
            return refuse("There is no such scenario.", 404)
        return answer_page(self._personas.render(personas=_read_personas(scenario), chosen=()))

    async def check(self, request: Request) -> Response:
        """Say what a filled-in form would do, with its YAML; or which field is wrong."""
        given = await read_object(request)
        given.pop(CONFIRMED, None)
        try:
            asked = await asyncio.to_thread(read_asked_run, self._launcher.source, given)
        except FormError as error:
            return answer_json(_complain(error))
        return answer_json(_describe(asked))

    async def start(self, request: Request) -> Response:
        """Start the run of a filled-in form, and say where its page is; or which field is wrong."""
        given = await read_object(request)
        try:
            confirmed = given.pop(CONFIRMED, [])
            asked = await asyncio.to_thread(read_asked_run, self._launcher.source, given)
            _require_confirmed(asked.unnamed, confirmed)
            folder = await asyncio.to_thread(self._launcher.start, asked)
        except FormError as error:
            return answer_json(_complain(error), 400)
        except (UsageError, OperationalError) as error:
            return answer_json(_complain(FormError("", str(error))), 409)
        run = await asyncio.to_thread(self._runs.add, folder.path)
        return answer_json({"page": f"/runs/{run.id}"})

    def show_standing(self, request: Request) -> Response:
        """Show where a run stands; nothing, if that is what the page shows already."""
        from starlette.responses import Response

        run = self._runs.get(request.path_params["run"])
        if run is None:
            return refuse("There is no such run.", 404)
        standing = self.find_standing(run)
        if standing is None or standing.mark == request.query_params.get("seen"):
            return Response(status_code=204)
        return self._show_part(run, standing)

    def stop(self, request: Request) -> Response:
        """Stop a run that this viewer started; the second time, kill it."""
        run = self._runs.get(request.path_params["run"])
        launch = None if run is None else self._launcher.get(run.folder)
        if run is None or launch is None or launch.code is not None:
            return refuse("This viewer has no such run under way.", 404)
        launch.stop()
        return self._show_part(run, self.find_standing(run))

    async def resume(self, request: Request) -> Response:
        """Go on with a run that has ended, or was ended; `confirmed` are marks of recipients."""
        confirmed = parse_qs((await request.body()).decode(errors="replace")).get(CONFIRMED, [])
        return await asyncio.to_thread(self._resume, request.path_params["run"], confirmed)

    def _resume(self, id: str, confirmed: Collection[str]) -> Response:
        run = self._runs.get(id)
        experiment = None if run is None else self._standings.find_experiment(run)
        standing = None if run is None else self.find_standing(run)
        if run is None or experiment is None or standing is None:
            return refuse("There is no such run to go on with.", 404)
        refusal = self._standings.find_refusal(experiment)
        if refusal:
            return refuse(refusal, 403)
        lacking = _find_unconfirmed(self._standings.list_unnamed(experiment), confirmed)
        if lacking:
            return self._show_part(run, standing, lacking)
        try:
            self._launcher.resume(run.folder, experiment)
        except UsageError as error:
            return self._show_part(run, standing, str(error))
        return self._show_part(run, self.find_standing(run))

    def _show_part(self, run: ShownRun, standing: RunStanding | None, complaint: str = "") -> Response:
        return answer_page(self._standing.render(run=run, standing=standing, complaint=complaint))


def _read_personas(scenario: str) -> Sequence[Persona]:
    try:
        return load_without_documents(scenario).personas
    except UsageError:  # the form says so
        return ()


def _require_confirmed(unnamed: Sequence[Recipient], confirmed: Any) -> None:
    lacking = _find_unconfirmed(unnamed, confirmed if isinstance(confirmed, list) else [])
    if lacking:
        raise FormError(CONFIRMED, lacking)


def _find_unconfirmed(unnamed: Sequence[Recipient], confirmed: Collection[str]) -> str:
    """Return the first recipient that was not confirmed, in a sentence; empty: all were."""
    lacking = next((one for one in unnamed if one.mark not in confirmed), None)
    if lacking is None:
        return ""
    return f"Confirm first that {lacking.describe()}: the command line does not say so."


def _complain(error: FormError) -> dict[str, Any]:
    sentence = str(error)
    word = re.match(r"[a-z_]+", sentence)
    if word is not None and word[0] not in Experiment.model_fields:
        sentence = sentence[0].upper() + sentence[1:]
    return {"field": error.field, "sentence": sentence}


def _describe(asked: AskedRun) -> dict[str, Any]:
    return {
        "yaml": asked.yaml,
        "conversations": asked.conversations,
        "sentences": asked.sentences,
        "recipients": [{"mark": one.mark, "sentence": one.describe()} for one in asked.unnamed],
    }
