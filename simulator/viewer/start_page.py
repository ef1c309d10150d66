"""The page that starts runs, with an experiment file as text, and what stops and resumes them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from hallulab.agents.models.model import DEFAULT_MODEL
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.yaml_text import YamlText
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.engine.plan import load_attacked, plan
from hallulab.simulator.records.choices import ensure_model
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import build_experiment, write_yaml
from hallulab.simulator.records.recipients import collect_endpoints
from hallulab.simulator.report.forecast import find_past_run, forecast
from hallulab.simulator.viewer.launcher import MOST_RUNS, Launcher
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.responses import answer_nothing, answer_page, find_run, missing_page, read_form
from hallulab.simulator.viewer.runs import ShownRuns

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_TEMPLATE = """\
scenario: consumer-grievance-india
chatbots: [vanilla, editor]
detectors: [lexical]
limit: 2
# model: NAME
# base_url: http://127.0.0.1:8000/v1
"""


def plan_run(offer: Offer, text: str) -> tuple[Experiment, tuple[str, ...]]:
    """Return what an experiment file would run, and its plan in sentences.

    Raises:
        UsageError: it has a mistake, or names what only the command line may name.
    """
    name = Path("experiment.yaml")  # what errors call the text
    file = YamlText(name, text, schema="docs/experiment.md")
    # Before the experiment is built, which looks for a pack at any path.
    scenario = file.data.get("scenario", Experiment().scenario)
    if scenario not in offer.scenarios:
        near = suggest_name(str(scenario), offer.scenarios)
        known = ", ".join(offer.scenarios)
        raise UsageError(
            f"{file.place(['scenario'])}: there is no such scenario here{near}. There are: {known}."
        )
    experiment = build_experiment(file, name, {})
    offer.require_allowed(experiment)
    experiment = ensure_model(experiment)
    if experiment.base_url is not None:
        collect_endpoints(experiment)[DEFAULT_MODEL].read_credentials()
    scenario, _ = load_attacked(experiment)
    number = format_count(len(plan(experiment, scenario)), "conversation")
    most = "At most " if experiment.until_decided else ""
    bots = format_count(len(experiment.chatbots), "chatbot")
    turns = format_count(experiment.max_turns, "turn")
    judges = format_count(len(experiment.detectors), "detector") if experiment.detectors else "no detector"
    past = find_past_run(experiment, () if offer.folder is None else offer.folder.glob("*"))
    where = f"at {experiment.base_url}" if experiment.base_url else "which hallulab starts on this machine"
    return experiment, (
        f"{most}{number} of {bots}, of at most {turns}, judged by {judges}.",
        f"{forecast(experiment, scenario, earlier=past).describe()}.",
        f"The model is {experiment.model}, {where}.",
        f"The run is written to a new folder in {offer.folder}, named by the time.",
    )


class StartPages:
    """Answers the addresses that start, stop and resume runs."""

    def __init__(self, runs: ShownRuns, launcher: Launcher) -> None:
        self._runs, self._launcher = runs, launcher

    def list_routes(self) -> list[Route]:
        """Return the addresses."""
        from starlette.routing import Route

        return [
            Route("/start", self.show, methods=["GET"]),
            *(Route(address, self.submit, methods=["POST"]) for address in ("/start", "/start/plan")),
            Route("/runs/{run}/stop", self.stop, methods=["POST"]),
            Route("/runs/{run}/resume", self.resume, methods=["POST"]),
        ]

    def show(self, request: Request) -> Response:
        """Show the text field: with the experiment of a run, the command line's, or an example."""
        run = self._runs.get(request.query_params.get("run", ""))
        experiment = None if run is None else self._launcher.find_experiment(run)
        text = write_yaml(experiment or self._launcher.offer.experiment) or _TEMPLATE
        return answer_page("start.html", text=text, folder=self._launcher.offer.folder, most=MOST_RUNS)

    async def submit(self, request: Request) -> Response:
        """Show what an experiment file would run, or start it and lead to its page; or show what is wrong."""
        text = "".join((await read_form(request)).get("yaml", []))
        return await asyncio.to_thread(self._plan, text, starts=request.url.path == "/start")

    def _plan(self, text: str, starts: bool) -> Response:
        try:
            experiment, sentences = plan_run(self._launcher.offer, text)
            if starts:
                run = self._runs.add(self._launcher.start(experiment, text).path)
                return answer_nothing({"HX-Redirect": f"/runs/{run.id}"})
        except (UsageError, OperationalError) as error:
            return answer_page("plan.html", problem=str(error))
        return answer_page("plan.html", sentences=sentences)

    def stop(self, request: Request) -> Response:
        """Stop a run that this viewer started. The page learns of it by its events."""
        launch = self._launcher.get(find_run(self._runs, request.path_params["run"]).folder)
        if launch is None or launch.code is not None:
            raise missing_page()
        launch.stop()
        return answer_nothing()

    def resume(self, request: Request) -> Response:
        """Go on with a run that has ended, or was ended."""
        run = find_run(self._runs, request.path_params["run"])
        experiment = self._launcher.find_experiment(run)
        if experiment is None:
            raise missing_page()
        try:
            self._launcher.start(experiment, write_yaml(experiment), run.folder)
        except UsageError as error:
            return answer_page("plan.html", problem=str(error))
        return answer_nothing()
