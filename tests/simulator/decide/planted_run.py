"""Runs until they are decided, between chatbots that make statements up at known rates."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hallulab
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import Script, ScriptedModel
from hallulab.testing.tiny_pack import words_for_vectors
from tests.kit.planted_rates import describe_bots, make_crowd, make_planted_script


def experiment_between(rates: Mapping[str, float], pack: Path, **fields: Any) -> dict[str, Any]:
    """The fields of an experiment between chatbots of these rates, of one turn a conversation."""
    return {
        "scenario": str(pack),
        "chatbots": describe_bots(rates),
        "detectors": ["lexical"],
        "min_turns": 1,
        "max_turns": 1,
        "timed": False,
        **fields,
    }


def run_planted(
    folder: Path,
    rates: Mapping[str, float],
    until: dict[str, Any],
    personas: int = 12,
    script: Script | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Run until it is decided, in `run` of a folder, and return the decision of report.json."""
    pack = folder / "pack"
    if not pack.exists():
        make_crowd(pack, personas)
    asked = experiment_between(rates, pack, until_decided=until, **fields)
    with words_for_vectors(), ScriptedModel(script or make_planted_script(rates)) as model:
        hallulab.run(asked, model=model.name, base_url=model.base_url, out=folder / "run", quiet=True)
    return read_decision(folder / "run")


def read_decision(run: Path) -> dict[str, Any]:
    """The decision of report.json."""
    found: dict[str, Any] = json.loads((run / "report.json").read_text())["decision"]
    return found


def count_talks(run: Path) -> dict[str, int]:
    """How many personas each chatbot talked to."""
    return dict(Counter(held.chatbot for held in RunFolder(run).read_journals().conversations))
