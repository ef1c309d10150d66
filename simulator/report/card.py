"""Parts of a data card (README.md): its head, licences, and texts of others as plain Markdown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any

import yaml

from hallulab.agents.serving.catalogue import CATALOGUE
from hallulab.scenarios.text.wording import render_one_line

_UNKNOWN = "not known; see its model card"
_HUB = {"Apache-2.0": "apache-2.0", "MIT": "mit", "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-4.0": "cc-by-sa-4.0"}
"""SPDX identifier → the hub's name for it."""


def render_data_card(head: Mapping[str, Any], package: str, template: str, **values: Any) -> str:
    """Return the text of a card: its head in YAML, and a template of a package in Markdown.

    The filters `plain` and `code` keep texts of others from being Markdown.
    """
    from jinja2 import Environment, StrictUndefined

    cards = Environment(  # noqa: S701 - Markdown, in which templates escape by those filters
        trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    cards.filters |= {"plain": escape_text, "code": format_code}
    text = files(package).joinpath(template).read_text(encoding="utf-8")
    body = cards.from_string(text).render(values)
    return f"---\n{yaml.safe_dump(dict(head), sort_keys=False)}---\n\n{body}"


def find_model_licence(model: str) -> str:
    """Return the licence of a model by the catalogue, or that it is not known."""
    known = CATALOGUE.get(model.lower())
    return _UNKNOWN if known is None else known.licence


def choose_hub_licence(licences: Collection[str]) -> str:
    """Return the hub's name for the licence of all parts; `other` if they differ or the hub names none.

    >>> choose_hub_licence({"Apache-2.0"}), choose_hub_licence({"Apache-2.0", "MIT"})
    ('apache-2.0', 'other')
    """
    return _HUB.get(next(iter(licences)), "other") if len(licences) == 1 else "other"


def escape_text(text: str) -> str:
    """Return a text as one line in which nothing is Markdown or HTML."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#|!" else sign for sign in render_one_line(text))


def format_code(text: str) -> str:
    """Return a text as one line of code in Markdown."""
    return f"`{render_one_line(text).replace('`', chr(39))}`"
