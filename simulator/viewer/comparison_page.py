"""Conversations side by side, turn by turn, and runs beside a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.annotate.marks import identify_flag
from hallulab.simulator.compare.document import build_document
from hallulab.simulator.compare.runs import RunCompared
from hallulab.simulator.compare.turns import ChangedTurn
from hallulab.simulator.report.reader import cut_segments, name_state
from hallulab.simulator.viewer.conversation_page import (
    ReplyPiece,
    ShownFinding,
    ShownPassage,
    find_citation,
    list_detectors,
    show_passages,
)
from hallulab.simulator.viewer.responses import answer_page, find_run, missing_page
from hallulab.simulator.viewer.results import RunComparisons
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


MOST_BESIDE = 12
"""Conversations that are shown side by side at most."""


@dataclass(frozen=True)
class BesideColumn:
    """A conversation of a page, with the verdicts on it."""

    run: ShownRun
    chat: Conversation
    verdicts: Sequence[Verdict]


class ComparisonPages:
    """Answers the addresses of what is side by side."""

    def __init__(self, runs: ShownRuns) -> None:
        self._runs = runs
        self._comparisons = RunComparisons()

    def list_routes(self) -> list[Route]:
        """Return the addresses."""
        from starlette.routing import Route

        return [
            Route("/runs/{run}/beside/{chat}", self.show_case),
            Route("/beside", self.show_pair),
            Route("/compare", self.compare),
        ]

    def show_case(self, request: Request) -> Response:
        """Show a persona and seed with several chatbots of a run; `bot` in the address chooses them."""
        run = find_run(self._runs, request.path_params["run"])
        others = run.index.list_case(request.path_params["chat"])
        wanted = request.query_params.getlist("bot")
        chosen = [one for one in others if not wanted or one.chatbot in wanted] or others
        columns = [self._read(run, one.id) for one in chosen[:MOST_BESIDE]]
        names = [column.chat.chatbot for column in columns]
        if not columns:
            raise missing_page()
        return self._show(columns, run=run, bots=[(one.chatbot, one.chatbot in names) for one in others])

    def show_pair(self, request: Request) -> Response:
        """Show conversations of any runs: each `run` in the address with the `chat` at the same place."""
        asked = request.query_params
        places = list(zip(asked.getlist("run"), asked.getlist("chat"), strict=False))[:MOST_BESIDE]
        if not places:
            raise missing_page()
        return self._show(
            [self._read(find_run(self._runs, run), chat) for run, chat in places], run=None, bots=[]
        )

    def compare(self, request: Request) -> Response:
        """Show what `hallulab compare` says of runs beside a reference."""
        asked = request.query_params
        reference = asked.get("reference", "")
        ids = [id for id in dict.fromkeys(asked.getlist("run")) if id != reference]
        runs = [find_run(self._runs, id) for id in [reference, *ids] if id]
        if not reference or not ids:
            reason = "Choose a reference and at least one other run on the page of the runs."
            return answer_page("comparison.html", document=None, reason=reason)
        found = self._comparisons.compare(runs)
        if found.compared is None:
            return answer_page("comparison.html", document=None, reason=found.reason)
        letters = {one.run.letter: run for one, run in zip(found.compared.runs, runs[1:], strict=True)}

        def lead_to_both(run: RunCompared, turn: ChangedTurn) -> str:
            before = [("run", runs[0].id), ("chat", turn.conversation_before)]
            after = [("run", letters[run.run.letter].id), ("chat", turn.conversation_after)]
            return f"/beside?{urlencode([*before, *after])}#turn-{turn.turn}"

        document = build_document(found.compared, lead_to_both).of("page")
        return answer_page("comparison.html", document=document)

    def _show(self, columns: Sequence[BesideColumn], **values: Any) -> Response:
        folders = [column.run.folder for column in columns]
        saved = [one for folder in folders if (one := folder.read_experiment()) is not None]
        detectors = list_detectors(saved, [verdict for column in columns for verdict in column.verdicts])
        return answer_page(
            "beside.html",
            columns=columns,
            detectors=detectors,
            several=len({column.run.id for column in columns}) > 1,
            turns=lay_out_beside(columns, detectors),
            **values,
        )

    def _read(self, run: ShownRun, chat: str) -> BesideColumn:
        found = run.index.read_chat(chat)
        if found is None:
            raise missing_page()
        return BesideColumn(run, *found)


@dataclass(frozen=True)
class BesideFinding:
    """A hallucination, and who found it."""

    detector: int
    """Place of the detector, which chooses the colour."""
    shown: ShownFinding


@dataclass(frozen=True)
class BesideCell:
    """A turn of one conversation."""

    index: int
    user: str
    pieces: tuple[ReplyPiece, ...]
    """The reply, cut where the flagging by any detector changes."""
    findings: tuple[BesideFinding, ...]
    states: tuple[str, ...]
    """`Lane.state` of each detector."""
    passages: tuple[ShownPassage, ...]

    @property
    def flagging(self) -> list[int]:
        """Places of the detectors that flag it."""
        return [place for place, state in enumerate(self.states) if state == "flagged"]


@dataclass(frozen=True)
class BesideTurn:
    """The same turn of each conversation."""

    depth: int
    cells: tuple[BesideCell | None, ...]
    """One for each conversation; None: it has no such turn."""

    @property
    def flagging(self) -> list[int]:
        """Places of the detectors that flag it in some conversation."""
        return sorted({place for cell in self.cells if cell is not None for place in cell.flagging})


def lay_out_beside(columns: Sequence[BesideColumn], detectors: Sequence[str]) -> list[BesideTurn]:
    """Lay conversations out beside each other, by the number of exchanges before each turn."""
    shown = [_show_cells(column.chat, column.verdicts, detectors) for column in columns]
    depths = sorted({depth for cells in shown for depth in cells})
    return [BesideTurn(depth, tuple(cells.get(depth) for cells in shown)) for depth in depths]


def _show_cells(
    chat: Conversation, judged: Sequence[Verdict], detectors: Sequence[str]
) -> dict[int, BesideCell]:
    """Return the turns of a conversation by the number of exchanges before each."""
    by_turn = {(verdict.turn, verdict.detector): verdict for verdict in judged}
    cells = {}
    for turn in chat.turns:
        verdicts = [by_turn.get((turn.index, name)) for name in detectors]
        passages = show_passages(turn)
        found = [
            (place, span)
            for place, verdict in enumerate(verdicts)
            for span in (verdict.spans if verdict is not None else None) or ()
        ]
        cells[chat.depth(turn.index)] = BesideCell(
            index=turn.index,
            user=turn.user,
            pieces=tuple(
                ReplyPiece(text, covering)
                for text, covering in cut_segments(turn.reply, [span for _, span in found])
            ),
            findings=tuple(
                BesideFinding(place, ShownFinding(span, flag.id, turn.index, *find_citation(span, passages)))
                for place, span in found
                for flag in [identify_flag(detectors[place], span)]
            ),
            states=tuple("missing" if one is None else name_state(one) for one in verdicts),
            passages=passages,
        )
    return cells
