"""The files of a pack that a model wrote, as a person edits them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.packs.pack_files import DEFAULT_SPECIALISTS
from hallulab.scenarios.text.wording import render_one_line

_WIDTH = 110


def render_scenario_file(name: str, about: Mapping[str, Any], how: str) -> str:
    """Return a `scenario.yaml`.

    Args:
        name: the pack's identifier.
        about: title, domain, assistant, functions and specialists. A drafter is added, who writes letters.
        how: by what the pack was made, for a comment.
    """
    drafter = DEFAULT_SPECIALISTS[-1]
    specialists = [one for one in about["specialists"] if one["name"] != drafter.name]
    unique = list({one["name"]: one for one in specialists}.values())
    values = {
        "schema": 1,
        "name": name,
        "title": render_one_line(about["title"]),
        "description": f"People ask about {render_one_line(about['domain'])}.",
        "domain": render_one_line(about["domain"]),
        "assistant": render_one_line(about["assistant"]),
        "functions": [render_one_line(line) for line in about["functions"]],
        "specialists": [
            {key: render_one_line(one[key]) for key in ("name", "title", "duty")} for one in unique
        ]
        + [drafter.model_dump()],
        "documents": "documents",
        "personas": "personas.yaml",
    }
    return f"# Written {render_one_line(how)}: read and correct it.\n{_dump_yaml(values)}"


def render_persona_block(persona: Persona, notes: Sequence[str], goals: Sequence[str]) -> str:
    """Return an entry of `personas.yaml` under comments: notes, then one on each goal."""
    values = {key: value for key, value in persona.described().items() if value is not None}
    lines = [*notes, *(f"goal {number}: {said}" for number, said in enumerate(goals, start=1))]
    return textwrap.indent(
        "".join(f"# {render_one_line(line)}\n" for line in lines) + _dump_yaml([values]), "  "
    )


def render_personas_file(blocks: Sequence[str], how: str) -> str:
    """Return a `personas.yaml` of blocks by `render_persona_block`."""
    written = f"# Written {render_one_line(how)}: read and correct them."
    head = f"{written} docs/scenario-packs.md describes the keys.\n"
    return head + "personas:\n" + "\n".join(blocks)


def _dump_yaml(values: Any) -> str:
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=_WIDTH)
