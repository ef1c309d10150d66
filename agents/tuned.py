"""Numbers tuned for models of the catalogue, from a package's `tuned.yaml`: number's name → model → value.

`hallulab.agents.served_model` tells which model of the catalogue is served.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter

EVEN_ODDS = 0.5
"""The untuned threshold of a one-token answer: it decides as the printed word does."""


def read_tuned_number(package: str, name: str, model: str | None) -> float | None:
    """Return a tuned number from a package's `tuned.yaml`; None if it was not tuned for the model.

    Args:
        package: the import package with the file.
        name: name of the number.
        model: the model's name in the catalogue; None: it is not there.
    """
    return _read_numbers(package).get(name, {}).get(model or "")


@cache
def _read_numbers(package: str) -> Mapping[str, Mapping[str, float]]:
    text = files(package).joinpath("tuned.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, float]]).validate_python(yaml.safe_load(text))
