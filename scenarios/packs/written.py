"""The files of a pack that a model wrote, as a person edits them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from scenarios.packs.pack import Persona
from scenarios.packs.pack_files import DEFAULT_SPECIALISTS
from scenarios.text.wording import one_line

_WIDTH = 110


def scenario_file(name: str, about: Mapping[str, Any], how: str) -> str:
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
        "title": one_line(about["title"]),
        "description": f"People ask about {one_line(about['domain'])}.",
        "domain": one_line(about["domain"]),
        "assistant": one_line(about["assistant"]),
        "functions": [one_line(line) for line in about["functions"]],
        "specialists": [{key: one_line(one[key]) for key in ("name", "title", "duty")} for one in unique]
        + [drafter.model_dump()],
        "documents": "documents",
        "personas": "personas.yaml",
    }
    return f"# Written {one_line(how)}: read and correct it.\n{_dumped(values)}"


def persona_block(persona: Persona, checks: Sequence[str]) -> str:
    """Return an entry of `personas.yaml`, with what the documents say about each goal in a comment."""
    values = {key: value for key, value in persona.described().items() if value is not None}
    said = "".join(f"# goal {number}: {one_line(check)}\n" for number, check in enumerate(checks, start=1))
    return textwrap.indent(said + _dumped([values]), "  ")


def personas_file(blocks: Sequence[str], how: str) -> str:
    """Return a `personas.yaml` of blocks by `persona_block`."""
    head = f"# Written {one_line(how)}: read and correct them. docs/scenario-packs.md describes the keys.\n"
    return head + "personas:\n" + "\n".join(blocks)


def _dumped(values: Any) -> str:
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=_WIDTH)
