"""What `import hallulab` offers, and what it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hallulab

HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "sklearn",
    "scipy",
    "pandas",
    "numpy",
    "lancedb",
    "pyarrow",
    "openai",
    "autogen_core",
    "autogen_agentchat",
    "httpx2",
    "pydantic",
}


def modules_after(code: str) -> set[str]:
    """Top-level modules in memory after some code."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ended.stdout.split()}


def test_importing_it_loads_nothing_heavy() -> None:
    assert modules_after("import hallulab") & HEAVY == set()


def test_the_vocabulary_of_a_detector_loads_no_model_library() -> None:
    loaded = modules_after("from hallulab import Judgement, Message, Passage, Span, TurnView, Unit")
    assert loaded & HEAVY == {"pydantic"}


def read_by_type_checkers() -> dict[str, set[str]]:
    """Module → names that `hallulab` imports from it for type checkers."""
    tree = ast.parse(Path(hallulab.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        str(node.module): {name.name for name in node.names}
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }


def test_type_checkers_and_python_find_each_name_in_the_same_module() -> None:
    assert read_by_type_checkers() == {home: set(names) for home, names in hallulab._HOMES.items()}


def test_every_name_is_there() -> None:
    assert {name for name in hallulab.__all__ if getattr(hallulab, name, None) is None} == set()
    assert set(hallulab.__all__) == set().union(*read_by_type_checkers().values())
    assert set(hallulab.__all__) <= set(dir(hallulab))


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match=r"^module 'hallulab' has no attribute 'Rum'$"):
        hallulab.Rum  # noqa: B018
