"""The pages that hold conversations, and runs, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hallulab.simulator.compare.document import build_document
from hallulab.simulator.compare.runs import RunCompared
from hallulab.simulator.compare.turns import ChangedTurn
from hallulab.simulator.viewer.beside import JudgedConversation, lay_out_beside
from hallulab.simulator.viewer.comparing import KeptComparisons
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

MOST_BESIDE = 12
"""Conversations that are shown side by side at most."""


@dataclass(frozen=True)
class ChatbotColumn:
    """A conversation of a page."""

    run: ShownRun
    """Its run."""
    judged: JudgedConversation
    """It, with the verdicts on it."""


def list_side_routes(runs: ShownRuns, render: Callable[..., Response]) -> list[Route]:
    """Return the addresses of what is side by side.

    Args:
        runs: the runs.
        render: renders a template.
    """
    from starlette.routing import Route

    pages = SidePages(runs, render)
    return [
        Route("/runs/{run}/beside/{chat}", pages.show_case),
        Route("/beside", pages.show_pair),
        Route("/compare", pages.compare),
    ]


class SidePages:
    """What each address shows.

    Args:
        runs: the runs.
        render: renders a template.
    """

    def __init__(self, runs: ShownRuns, render: Callable[..., Response]) -> None:
        self._runs = runs
        self._render = render
        self._comparisons = KeptComparisons()

    def show_case(self, request: Request) -> Response:
        """Show a persona and seed with several chatbots of a run; `bot` in the address chooses them."""
        run = self._find(request.path_params["run"])
        others = run.index.list_case(request.path_params["chat"])
        wanted = request.query_params.getlist("bot")
        chosen = [one for one in others if not wanted or one.chatbot in wanted] or others
        columns = [self._read(run, one.id) for one in chosen[:MOST_BESIDE]]
        names = [column.judged.chat.chatbot for column in columns]
        if not columns:
            raise _missing()
        return self._show(columns, run=run, bots=[(one.chatbot, one.chatbot in names) for one in others])

    def show_pair(self, request: Request) -> Response:
        """Show conversations of any runs: each `run` in the address with the `chat` at the same place."""
        asked = request.query_params
        places = list(zip(asked.getlist("run"), asked.getlist("chat"), strict=False))[:MOST_BESIDE]
        if not places:
            raise _missing()
        return self._show([self._read(self._find(run), chat) for run, chat in places], run=None, bots=[])

    def compare(self, request: Request) -> Response:
        """Show what `hallulab compare` says of runs beside a reference."""
        asked = request.query_params
        reference = asked.get("reference", "")
        ids = [id for id in dict.fromkeys(asked.getlist("run")) if id != reference]
        runs = [self._find(id) for id in [reference, *ids] if id]
        if not reference or not ids:
            return self._render("comparison.html", document=None, reason=_CHOOSE)
        found = self._comparisons.of(runs)
        if found.compared is None:
            return self._render("comparison.html", document=None, reason=found.reason)
        letters = {one.run.letter: run for one, run in zip(found.compared.runs, runs[1:], strict=True)}

        def lead_to_both(run: RunCompared, turn: ChangedTurn) -> str:
            return _lead_beside(runs[0], letters[run.run.letter], turn)

        return self._render(
            "comparison.html", document=build_document(found.compared, lead_to_both).of("page")
        )

    def _show(self, columns: Sequence[ChatbotColumn], **values: Any) -> Response:
        judged = [column.judged for column in columns]
        detectors = _name_detectors(columns)
        several = len({column.run.id for column in columns}) > 1
        return self._render(
            "beside.html",
            columns=columns,
            detectors=detectors,
            several=several,
            turns=lay_out_beside(judged, detectors),
            **values,
        )

    def _find(self, id: str) -> ShownRun:
        run = self._runs.get(id)
        if run is None:
            raise _missing()
        run.growth.catch_up()
        return run

    def _read(self, run: ShownRun, chat: str) -> ChatbotColumn:
        found = run.index.read_chat(chat)
        if found is None:
            raise _missing()
        return ChatbotColumn(run, JudgedConversation(*found))


_CHOOSE = "Choose a reference and at least one other run on the page of the runs."


def _missing() -> Exception:
    from starlette.exceptions import HTTPException

    return HTTPException(404, "There is no such page.\n")


def _lead_beside(reference: ShownRun, run: ShownRun, turn: ChangedTurn) -> str:
    asked = [
        ("run", reference.id),
        ("chat", turn.conversation_before),
        ("run", run.id),
        ("chat", turn.conversation_after),
    ]
    return f"/beside?{urlencode(asked)}#turn-{turn.turn}"


def _name_detectors(columns: Sequence[ChatbotColumn]) -> list[str]:
    """Return the detectors of the runs, in their order, then others that judged."""
    saved = [column.run.folder.read_experiment() for column in columns]
    named = [name for one in saved if one is not None for name in one.detectors]
    judged = sorted({verdict.detector for column in columns for verdict in column.judged.verdicts})
    return list(dict.fromkeys([*named, *judged]))
