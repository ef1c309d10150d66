"""A detector's version follows its code and its seed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from detectors.base import rule_version as rules
from detectors.base.protocol import DetectorContext
from detectors.base.rule_version import rule_sources, rule_version
from detectors.registry import make_detector
from tests.places import ROOT
from tests.scripted import scripted_pool

METARAG = "detectors.metarag.detector"


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Adds a line to a module, as the versions see it."""
    source = rules.source_of

    def edited(module: str) -> None:
        monkeypatch.setattr(
            rules, "source_of", lambda name: source(name) + "\nEDITED = True" * (name == module)
        )
        rule_version.cache_clear()

    yield edited
    rule_version.cache_clear()


def version(kind: str, **context: Any) -> str:
    pool, _ = scripted_pool(lambda _: "")
    return make_detector(kind, kind, DetectorContext(models=pool, **context)).version


def test_the_code_of_a_detector_is_what_python_loads_for_it() -> None:
    """The same as a fresh interpreter has of ours, packages' own files aside."""
    program = f"import sys, {METARAG}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    ours = {name for name in loaded if name.split(".")[0] in {"scenarios", "agents", "detectors"}}
    packages = {name for name in ours if (ROOT / name.replace(".", "/")).is_dir()}
    assert rule_sources(METARAG).keys() == ours - packages


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("lexical", "detectors.lexical.detector"),
        ("lexical", "scenarios.text.spans"),
        ("metarag", "detectors.metarag.scoring"),
        ("metarag", "agents.models.model"),
        ("halludetect", "detectors.halludetect.user_said"),
        ("halludetect", "agents.retrieval.reformulation"),
    ],
)
def test_an_edited_rule_is_another_version(kind: str, module: str, edit: Callable[[str], None]) -> None:
    before = version(kind)
    assert version(kind) == before
    edit(module)
    assert version(kind) != before


def test_another_detectors_edit_is_not(edit: Callable[[str], None]) -> None:
    before = version("metarag")
    edit("detectors.halludetect.user_said")
    assert version("metarag") == before


@pytest.mark.parametrize(("kind", "versions"), [("halludetect", 2), ("metarag", 2), ("lexical", 1)])
def test_the_seed_counts_where_a_model_is_asked(kind: str, versions: int) -> None:
    assert len({version(kind, seed=seed) for seed in (0, 1)}) == versions
