"""`hallulab list` and `init-scenario`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from simulator.config import DEFAULT_SCENARIO

Kind = Literal["scenarios", "personas", "chatbots", "detectors", "models"]


def list_things(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    scenario: Annotated[str, typer.Option(help="The pack whose personas to list.")] = DEFAULT_SCENARIO,
) -> None:
    """List scenarios, personas, chatbots, detectors or models."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    headings, rows = _TABLES[kind](scenario)
    table = Table(*headings, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def init_scenario(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
) -> None:
    """Write a working scenario pack to start your own from."""
    from scenarios.skeleton import init_scenario as write

    write(directory)
    typer.echo(
        f"{directory}: edit scenario.yaml, documents/ and personas.yaml, then "
        f"`hallulab run --scenario {directory}`"
    )


_Content = tuple[list[str], list[tuple[str, ...]]]


def _scenarios(scenario: str) -> _Content:
    from scenarios.pack_files import built_in_packs, load_scenario

    packs = [load_scenario(name) for name in built_in_packs()]
    rows = [
        (pack.name, str(len(pack.documents)), str(len(pack.personas)), pack.description) for pack in packs
    ]
    return ["scenario", "documents", "personas", "what it is about"], rows


def _personas(scenario: str) -> _Content:
    from scenarios.pack_files import load_scenario

    personas = load_scenario(scenario).personas
    return ["persona", "sector", "grievance"], [(p.id, p.sector or "", p.grievance) for p in personas]


def _chatbots(scenario: str) -> _Content:
    from chatbots.registry import describe_chatbots

    return ["chatbot", "what it does"], list(describe_chatbots().items())


def _detectors(scenario: str) -> _Content:
    from detectors.registry import describe_detectors

    return ["detector", "what it does"], list(describe_detectors().items())


def _models(scenario: str) -> _Content:
    from simulator.serving.catalogue import CATALOGUE

    return ["model", "licence", "from"], [
        (name, entry.licence, entry.origin) for name, entry in CATALOGUE.items()
    ]


_TABLES: dict[Kind, Callable[[str], _Content]] = {
    "scenarios": _scenarios,
    "personas": _personas,
    "chatbots": _chatbots,
    "detectors": _detectors,
    "models": _models,
}
