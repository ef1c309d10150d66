"""Thresholds tuned for a model of the catalogue, where the paper's does not fit it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter


def find_tuned_threshold(detector: str, reading: str, model: str | None) -> float | None:
    """Return the threshold in `thresholds.yaml`, or None where the paper's holds.

    Args:
        model: `hallulab.agents.served_model.find_catalogue_name`.
    """
    return _load_thresholds().get(detector, {}).get(reading, {}).get(model or "")


@cache
def _load_thresholds() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    text = files("hallulab.detectors.base").joinpath("thresholds.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, dict[str, float]]]).validate_python(yaml.safe_load(text) or {})
