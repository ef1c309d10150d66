"""What identifies a result: which code counts, and what of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from hallulab.agents import identity as identities
from hallulab.agents.identity import PLUMBING, collect_code, compute_code_version, identity, strip_code
from hallulab.agents.models.prompt import Prompt

METARAG = "hallulab.detectors.metarag.detector"
ROOT = Path(__file__).parents[2]

RULE = '''"""A rule."""

from __future__ import annotations

LIMIT: int = 3
"""How many."""


def worst(scores: list[float]) -> float:
    """The worst."""
    return max(scores[:LIMIT])  # of the first
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A rule."""', '"""Another description."""'),
        ('"""How many."""', '"""How many there are."""'),
        ('    """The worst."""\n', ""),
        ("  # of the first", ""),
        ("LIMIT: int = 3", "LIMIT = 3"),
        ("scores: list[float]) -> float", "scores)"),
        ("max(scores[:LIMIT])", "max(\n        scores[:LIMIT]\n    )"),
        ("LIMIT: int", "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import os\nLIMIT: int"),
    ],
)
def test_what_decides_nothing_does_not_count(old: str, new: str) -> None:
    assert old in RULE
    kept = strip_code(RULE.replace(old, new)).replace("from typing import TYPE_CHECKING\n", "")
    assert kept == strip_code(RULE)


@pytest.mark.parametrize(("old", "new"), [("= 3", "= 4"), ("max(", "min("), ("[:LIMIT]", "")])
def test_every_edit_of_code_counts(old: str, new: str) -> None:
    assert strip_code(RULE.replace(old, new)) != strip_code(RULE)


def test_only_what_runs_is_left() -> None:
    assert strip_code(RULE) == "LIMIT = 3\n\ndef worst(scores):\n    return max(scores[:LIMIT])"


def test_a_fields_annotation_counts_as_pydantic_reads_it() -> None:
    assert strip_code("class A(Frozen):\n    x: int = 3") != strip_code("class A(Frozen):\n    x: float = 3")


@pytest.mark.parametrize(("called", "counts"), [("structured", True), ("text", False)])
def test_the_docstring_of_an_answers_class_counts_as_the_model_reads_it(called: str, counts: bool) -> None:
    source = (
        'class Item:\n    "One."\n\nclass Answer:\n    "All."\n    items: list[Item]\n\n'
        f'session.{called}("step", messages, Answer)\n'
    )
    edited = [source.replace("One.", "Each."), source.replace("All.", "Every one.")]
    assert [strip_code(text) != strip_code(source) for text in edited] == [counts, counts]


def forget() -> None:
    identities._READ.clear()
    for remembered in (identities._find_file, identities._is_package):
        remembered.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """A package of somebody: writes one of its modules, and gives the version of its `bot`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_bots", raising=False)
    forget()
    folder = tmp_path / "their_bots"
    folder.mkdir()
    for name, text in {
        "__init__": "",
        "bot": "import json\nfrom hallulab.scenarios.text.spans import words\nfrom their_bots import rules\n",
        "rules": "def late():\n    from their_bots.numbers import LIMIT\n    return LIMIT\n",
        "numbers": "LIMIT = 3\n",
        "other": "LIMIT = 3\n",
    }.items():
        (folder / f"{name}.py").write_text(text)

    def written(name: str, text: str) -> str:
        with (folder / f"{name}.py").open("a") as file:
            file.write(text)
        forget()
        return compute_code_version("their_bots.bot")

    return written


def test_the_code_of_a_component_is_what_it_imports_of_its_own_and_of_ours(
    package: Callable[[str, str], str],
) -> None:
    package("bot", "")
    assert sorted(collect_code("their_bots.bot")) == [
        "hallulab.scenarios.text.abbreviations",
        "hallulab.scenarios.text.spans",
        "their_bots",
        "their_bots.bot",
        "their_bots.numbers",
        "their_bots.rules",
    ]


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


def test_the_code_of_a_detector_is_what_python_loads_for_it_without_the_plumbing() -> None:
    """The same as a fresh interpreter has of ours, packages' own files aside."""
    program = f"import sys, {METARAG}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    ours = {name for name in loaded if name.split(".")[0] == identities.OURS}
    modules = {name for name in ours if not (ROOT / name.replace(".", "/")).is_dir()}
    assert collect_code(METARAG).keys() == {name for name in modules if not identities._is_of(name, PLUMBING)}


def test_plumbing_names_what_there_is() -> None:
    assert [name for name in PLUMBING if find_spec(name) is None] == []


@pytest.mark.parametrize(
    "changed",
    [
        {"code": "hallulab.detectors.lexical.detector"},
        {"code": [METARAG, "hallulab.agents.retrieval.knowledge"]},
        {"options": {"tau": 0.4}},
        {"prompts": [Prompt("ask", "### user\nIs it so?")]},
        {"models": {"verifier": "other"}},
        {"seed": 1},
        {"learnt": [0.4]},
    ],
)
def test_all_that_a_result_follows_from_is_in_its_identity(changed: dict[str, object]) -> None:
    given = {
        "code": METARAG,
        "options": {"tau": 0.5},
        "prompts": [Prompt("ask", "### user\nIs it?")],
        "models": {"verifier": "m"},
        "seed": 0,
        "learnt": None,
    }
    assert len(identity(**given)) == 16  # type: ignore[arg-type]
    assert identity(**{**given, **changed}) != identity(**given)  # type: ignore[arg-type]
