"""What `import hallulab` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hallulab
from tests.heavy_libraries import HEAVY


def modules_after(code: str) -> set[str]:
    """Top-level modules in memory after some code."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ended.stdout.split()}


def test_importing_it_loads_nothing_heavy() -> None:
    assert modules_after("import hallulab") & {*HEAVY, "pydantic"} == set()


def test_the_vocabulary_of_a_detector_loads_no_model_library() -> None:
    loaded = modules_after("from hallulab import Judgement, Message, Passage, Span, TurnView, Unit")
    assert loaded & HEAVY == set()


def test_every_name_of_the_stub_is_there() -> None:
    assert [name for name in hallulab.__all__ if getattr(hallulab, name, None) is None] == []
    assert set(hallulab.__all__) <= set(dir(hallulab))


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"^No hallulab attribute Rum$"):
        hallulab.Rum  # noqa: B018
