"""The pages on which people label turns, compare their labels, and settle what differs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.datasets.annotations import TurnPlace
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.data_files import check_record, read_text
from hallulab.scenarios.files.json_text import digest, parse_json
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.annotate.desk import Desk, find_guideline, read_drawn, read_standing_lines
from hallulab.simulator.annotate.marks import read_marks
from hallulab.simulator.annotate.sheet import DrawOptions, draw_turns
from hallulab.simulator.metrics.annotations import compare_annotators, describe_left_out, list_conflicts
from hallulab.simulator.viewer.conversation_page import show_passages
from hallulab.simulator.viewer.labels import (
    AskedKey,
    Key,
    Labelling,
    address_conflict,
    describe_decision,
    describe_next,
    describe_turn,
    find_conflicts,
    name_annotator,
    read_key,
    show_lanes,
)
from hallulab.simulator.viewer.responses import answer_json, answer_page, find_run, missing_page
from hallulab.simulator.viewer.results import CorrectedNumbers, read_labels
from hallulab.simulator.viewer.runs import ShownRun, ShownRuns, read_with_evidence

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

A_DRAW = 20
"""Turns that the page draws at a time: fewer say too little about where the detector errs."""


class LabelPages:
    """Answers the addresses for labelling."""

    def __init__(self, runs: ShownRuns, labelling: Labelling) -> None:
        self._runs = runs
        self._labelling = labelling
        self._numbers = CorrectedNumbers()
        self._guideline = None if labelling.guideline is None else read_text(labelling.guideline)

    def list_routes(self) -> list[Route]:
        """Return the addresses."""
        from starlette.routing import Route

        return [
            Route("/runs/{run}/labels", self.show_labels),
            Route("/runs/{run}/settle/{chat}/{turn:turn}", self.show_conflict),
            Route("/runs/{run}/settle/{chat}/{turn:turn}/marks", self.send_decision),
            Route("/runs/{run}/numbers", self.send_numbers),
            Route("/runs/{run}/conversations/{chat}/marks", self.send_marks),
            Route("/runs/{run}/marks", self.take_key, methods=["POST"]),
            Route("/runs/{run}/draw", self.draw, methods=["POST"]),
        ]

    def show_labels(self, request: Request) -> Response:
        """Show who labelled what, how far they agree, and what is next."""
        run = find_run(self._runs, request.path_params["run"])
        replies = self._read_replies(run)
        labels = read_labels(run.folder, replies)
        turns = labels.turns
        by: dict[tuple[str, str | None], int] = {}
        for turn in (one for one in turns if not one.line.adjudicates):
            who = turn.line.annotator, turn.line.guideline
            by[who] = by.get(who, 0) + 1
        conflicts = list_conflicts(turns)
        return answer_page(
            "labels.html",
            run=run,
            annotators=by,
            pairs=compare_annotators(turns),
            conflicts=conflicts,
            left_out=describe_left_out(labels.left_out),
            opened=sum(one.decision is None for one in conflicts),
            guideline=self._find_guideline(run),
            address=lambda place: address_conflict(run, place),
            drawn=len(read_drawn(run.folder)),
            labelling=self._labelling,
            a_draw=A_DRAW,
        )

    def show_conflict(self, request: Request) -> Response:
        """Show what each annotator found in a turn, to settle it."""
        run = find_run(self._runs, request.path_params["run"], update=False)
        place = request.path_params["chat"], request.path_params["turn"]
        chat, _ = run.index.read_chat(place[0]) or (None, ())
        turn = None if chat is None else next((one for one in chat.turns if one.index == place[1]), None)
        if chat is None or turn is None:
            raise missing_page()
        labels = self._open_desk(run, self._labelling.annotator).read_labels(place)
        return answer_page(
            "settle.html",
            run=run,
            chat=chat,
            turn=turn,
            depth=chat.depth(turn.index),
            history=chat.history(turn.index),
            lanes=show_lanes(turn, labels),
            passages=show_passages(turn),
            labelling=self._labelling,
            marks=f"{address_conflict(run, place)}/marks",
            settling=True,
        )

    def send_decision(self, request: Request) -> Response:
        """Send the decision on a turn, and which conflict is next."""
        place = request.path_params["chat"], request.path_params["turn"]
        return self._answer(request, lambda run: self._describe_decision(run, place, _name(request)))

    def send_marks(self, request: Request) -> Response:
        """Send what somebody said of the turns of a conversation, and which turn is next."""
        return self._answer(
            request, lambda run: self._describe(run, request.path_params["chat"], _name(request))
        )

    def send_numbers(self, request: Request) -> Response:
        """Send the corrected numbers of a run."""

        def describe(run: ShownRun) -> dict[str, Any]:
            detector = request.query_params.get("detector")
            found = self._numbers.compute(run.folder, detector, run.index.count().conversations)
            rows = [row.model_dump(mode="json") for row in found.rows]
            return {"detector": found.detector, "detectors": found.detectors, "rows": rows}

        return self._answer(request, describe)

    async def take_key(self, request: Request) -> Response:
        """Write what a key says."""
        body = await request.body()
        return await asyncio.to_thread(self._answer, request, lambda run: self._press(run, body))

    async def draw(self, request: Request) -> Response:
        """Draw the turns to label next."""
        body = await request.body()
        return await asyncio.to_thread(self._answer, request, lambda run: self._draw(run, body))

    def _press(self, run: ShownRun, body: bytes) -> dict[str, Any]:
        key = check_record(_parse(body), Key, "the request", "docs/viewer.md")
        who = name_annotator(key.annotator)
        desk = self._open_desk(run, who)
        self._keep_guideline(run)
        if key.kind == "undo":
            undone = desk.undo()
            there = undone is not None and run.index.read_chat(undone.conversation) is not None
            place = undone.place if undone is not None and there else (key.conversation, key.turn)
            settling = bool(undone.adjudicates) if undone is not None and there else key.adjudicate
            return {
                **self._describe_either(run, place, who, settling),
                "undone": None if undone is None else undone.kind,
                "at": address_conflict(run, place) if settling else _address(run, place),
                "turn": place[1] if there else None,
            }
        place = key.conversation, key.turn
        desk.press(place, read_key(key, run.index.read_chat(key.conversation)), key.adjudicate)
        return self._describe_either(run, place, who, key.adjudicate)

    def _describe_either(self, run: ShownRun, place: TurnPlace, who: str, settling: bool) -> dict[str, Any]:
        return self._describe_decision(run, place, who) if settling else self._describe(run, place[0], who)

    def _describe_decision(self, run: ShownRun, place: TurnPlace, who: str) -> dict[str, Any]:
        guideline = self._find_guideline(run)
        desk = self._open_desk(run, who)
        marks = read_marks(run.folder.marks, (who, guideline))
        conflicts = find_conflicts(run, self._read_replies(run))
        return {
            "annotator": who,
            "guideline": guideline,
            "turns": [describe_decision(desk, marks, place)],
            "takes": list(desk.read_labels(place)),
            "next": describe_next(run, conflicts, guideline, place),
        }

    def _draw(self, run: ShownRun, body: bytes) -> dict[str, Any]:
        who = name_annotator(check_record(_parse(body), AskedKey, "the request", "docs/viewer.md").annotator)
        desk = self._open_desk(run, who)
        waiting = desk.list_next()
        if waiting:
            raise UsageError(f"{len(waiting)} drawn turns wait. Label them first.")
        self._keep_guideline(run)
        hash_of = self._find_guideline(run)
        kept = run.folder.path / f"guideline-{hash_of}.md"
        draw_turns(run.folder, DrawOptions(A_DRAW, annotator=who, guideline=kept if kept.is_file() else None))
        return {"next": self._describe_next(run, desk)}

    def _describe(self, run: ShownRun, chat_id: str, who: str) -> dict[str, Any]:
        chat, verdicts = run.index.read_chat(chat_id) or (None, [])
        if chat is None:
            raise UsageError("There is no such conversation.")
        guideline = self._find_guideline(run)
        desk = self._open_desk(run, who)
        marks = [
            mark
            for mark in read_marks(run.folder.marks, (who, guideline))
            if mark.conversation == chat_id and not mark.adjudicates
        ]
        lines, drawn = desk.read_lines(), read_drawn(run.folder)
        return {
            "annotator": who,
            "guideline": guideline,
            "labelled": len(lines),
            "turns": [
                {
                    **describe_turn(
                        [mark for mark in marks if mark.turn == turn.index],
                        [one for one in verdicts if one.turn == turn.index],
                        lines.get((chat_id, turn.index)),
                    ),
                    "turn": turn.index,
                    "drawn": (chat_id, turn.index) in drawn,
                }
                for turn in chat.turns
            ],
            "next": self._describe_next(run, desk),
        }

    def _describe_next(self, run: ShownRun, desk: Desk) -> dict[str, Any]:
        waiting = desk.list_next()
        first = waiting[0].place if waiting else None
        return {"left": len(waiting), "address": None if first is None else _address(run, first)}

    def _open_desk(self, run: ShownRun, who: str) -> Desk:
        return Desk(run.folder, lambda chat: _read_chat(run, chat), (who, self._find_guideline(run)))

    def _find_guideline(self, run: ShownRun) -> str | None:
        return find_guideline(run.folder) if self._guideline is None else digest(self._guideline)[:12]

    def _keep_guideline(self, run: ShownRun) -> None:
        """Write the guideline beside the labels that have its hash."""
        if self._guideline is None:
            return
        path = run.folder.path / f"guideline-{digest(self._guideline)[:12]}.md"
        run.folder.refuse_links_out([path])
        if not path.is_file():
            write_atomically(path, self._guideline)

    def _read_replies(self, run: ShownRun) -> dict[TurnPlace, str]:
        chats = sorted({line.conversation for line in read_standing_lines(run.folder)})
        found = [run.index.read_chat(chat) for chat in chats]
        return {
            (chat.id, turn.index): turn.reply
            for chat, _ in (one for one in found if one is not None)
            for turn in chat.turns
        }

    def _find(self, request: Request) -> ShownRun:
        run = self._runs.get(request.path_params["run"])
        if run is None:
            raise UsageError("There is no such run.")
        run.updater.update()
        return run

    def _answer(self, request: Request, describe: Callable[[ShownRun], dict[str, Any]]) -> Response:
        try:
            return answer_json(describe(self._find(request)))
        except UsageError as error:
            return answer_json({"error": str(error)}, 400)
        except OperationalError as error:
            return answer_json({"error": str(error)}, 500)


def _read_chat(run: ShownRun, chat: str) -> tuple[Conversation, list[Verdict]] | None:
    """Read a conversation and the verdicts on it; None: it does not count.

    Raises:
        UsageError: it may be among the lines that the index has not read yet.
    """
    found = read_with_evidence(run, chat)
    if found is not None:
        return found
    if run.index.grow():
        raise UsageError("The journals of this run are still being read. Try again in a moment.")
    return read_with_evidence(run, chat)


def _name(request: Request) -> str:
    return name_annotator(request.query_params.get("annotator", ""))


def _parse(body: bytes) -> Any:
    try:
        return parse_json(body.decode())
    except ValueError as error:
        raise UsageError(f"The request is no JSON: {error}.") from error


def _address(run: ShownRun, place: TurnPlace) -> str:
    return f"{run.address_chat(place[0])}#turn-{place[1]}"
