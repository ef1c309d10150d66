"""Versions: which code counts, and what of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from hallulab.agents.models.prompt import Prompt
from hallulab.agents.versions import (
    CORE,
    compute_code_version,
    compute_version,
    digest_code,
    list_own_modules,
)
from tests.edited_code import forget_code

METARAG = "hallulab.detectors.metarag.detector"
ROOT = Path(__file__).parents[2]

RULE = '''"""A rule."""

LIMIT: int = 3
"""How many."""


def worst(scores: list[float]) -> float:
    """The worst."""
    return max(scores[:LIMIT])  # of the first


class Answer:
    """A model reads this."""

    first: int
    """The first."""
'''


@pytest.fixture
def digest_text(tmp_path: Path) -> Callable[[str], str]:
    """Hash a text as a module."""

    def digest(text: str) -> str:
        path = tmp_path / "rule.py"
        path.write_text(text)
        forget_code()
        return digest_code(path)

    return digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A rule."""', '"""Another description."""'),
        ('"""How many."""', '"""How many there are."""'),
        ('    """The worst."""\n', ""),
        ('"""The first."""', '"""The one."""'),
        ("  # of the first", ""),
        ("max(scores[:LIMIT])", "max(\n        scores[:LIMIT]\n    )"),
    ],
)
def test_what_decides_nothing_does_not_count(old: str, new: str, digest_text: Callable[[str], str]) -> None:
    assert old in RULE
    assert digest_text(RULE.replace(old, new)) == digest_text(RULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= 3", "= 4"),
        ("max(", "min("),
        ("[:LIMIT]", ""),
        ("A model reads", "Nobody reads"),
        ("first: int", "first: float"),
    ],
)
def test_every_edit_of_code_counts(old: str, new: str, digest_text: Callable[[str], str]) -> None:
    assert digest_text(RULE.replace(old, new)) != digest_text(RULE)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """A package of somebody: writes one of its modules, and gives the version of its `bot`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_bots", raising=False)
    forget_code()
    folder = tmp_path / "their_bots"
    folder.mkdir()
    for name, text in {
        "__init__": "",
        "bot": "import json\nfrom hallulab.scenarios.labelled import Level\nfrom their_bots import rules\n",
        "rules": "def late():\n    from their_bots.numbers import LIMIT\n    return LIMIT\n",
        "numbers": "LIMIT = 3\n",
        "other": "LIMIT = 3\n",
    }.items():
        (folder / f"{name}.py").write_text(text)

    def write(name: str, text: str) -> str:
        with (folder / f"{name}.py").open("a") as file:
            file.write(text)
        forget_code()
        return compute_code_version("their_bots.bot")

    return write


def test_own_code_is_what_a_component_imports_of_its_package(package: Callable[[str, str], str]) -> None:
    package("bot", "")
    assert list_own_modules("their_bots.bot") == ["their_bots.bot", "their_bots.numbers", "their_bots.rules"]


@pytest.mark.parametrize("module", ["bot", "rules", "numbers"])
def test_an_edited_line_is_another_version_and_an_edited_comment_is_not(
    module: str, package: Callable[[str, str], str]
) -> None:
    before = package(module, "")
    assert package(module, "# a remark\n") == before
    assert package(module, "EDITED = True\n") != before


def test_a_module_that_is_not_imported_may_be_edited(package: Callable[[str, str], str]) -> None:
    assert package("other", "") == package("other", "EDITED = True\n")


@pytest.mark.parametrize("module", ["no_such_package.module", "math"])
def test_what_has_no_source_is_refused(module: str) -> None:
    with pytest.raises(ValueError, match=rf"^the module {module} has no Python source$"):
        compute_code_version(module)


def test_the_own_code_of_a_detector_is_what_python_loads_of_its_floor_without_the_protocol() -> None:
    program = f"import sys, {METARAG}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    floor = {name for name in loaded if name.startswith("hallulab.detectors.")}
    modules = {name for name in floor if not (ROOT / name.replace(".", "/")).is_dir()}
    own = {name for name in list_own_modules(METARAG) if not (ROOT / name.replace(".", "/")).is_dir()}
    # That of the languages counts for every component (`CORE`).
    assert own == modules - {"hallulab.detectors.base.protocol", "hallulab.detectors.base.reading"}


def test_the_core_names_what_there_is() -> None:
    assert [name for name in CORE if find_spec(name) is None] == []


@pytest.mark.parametrize(
    "changed",
    [
        {"module": "hallulab.detectors.lexical.detector"},
        {"version": 2},
        {"options": {"tau": 0.4}},
        {"prompts": [Prompt("ask", "### user\nIs it so?")]},
        {"models": {"verifier": "other"}},
        {"seed": 1},
        {"learnt": [0.4]},
    ],
)
def test_all_that_a_result_follows_from_is_in_its_version(changed: dict[str, object]) -> None:
    given = {
        "module": METARAG,
        "version": 1,
        "options": {"tau": 0.5},
        "prompts": [Prompt("ask", "### user\nIs it?")],
        "models": {"verifier": "m"},
        "seed": 0,
        "learnt": None,
    }
    assert len(compute_version(**given)) == 16  # type: ignore[arg-type]
    assert compute_version(**{**given, **changed}) != compute_version(**given)  # type: ignore[arg-type]
