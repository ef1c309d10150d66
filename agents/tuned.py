"""Numbers tuned for a model of the catalogue: `tuned.yaml` of a package, by what they are of and model.

Which served model is one of the catalogue, `agents.served_model` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter

EVEN_ODDS = 0.5
"""The threshold of a one-token answer without any tuning: the printed word."""


def tuned_number(package: str, name: str, model: str | None) -> float | None:
    """What `tuned.yaml` of a package has under a name for a model; None where nothing was tuned.

    Args:
        model: the catalogue's name of it.
    """
    return _numbers(package).get(name, {}).get(model or "")


@cache
def _numbers(package: str) -> Mapping[str, Mapping[str, float]]:
    text = files(package).joinpath("tuned.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, float]]).validate_python(yaml.safe_load(text))
