"""Names of functions and classes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.naming import FLOORS, ROOT, compute_verb_share, find_functions, find_shared_class_names

CODE = """
class Line: ...
class _Line:
    @property
    def text(self): ...
    def __len__(self): ...
    def joined(self): ...
def read_text(): ...
async def _fetch(): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rooms.py").write_text(CODE, encoding="utf-8")
    return tmp_path


def test_properties_and_dunder_methods_are_left_out(folder: Path) -> None:
    assert sorted(one.name for one in find_functions(folder)) == ["_fetch", "joined", "read_text"]


def test_the_share_is_of_functions_that_begin_with_a_verb(folder: Path) -> None:
    assert compute_verb_share(list(find_functions(folder))) == 2 / 3
    assert math.isnan(compute_verb_share([]))


def test_a_private_class_has_the_name_of_a_public_one(folder: Path) -> None:
    assert find_shared_class_names([folder]) == {"Line": [folder / "rooms.py"] * 2}


def test_a_class_name_of_ours_means_one_thing() -> None:
    assert find_shared_class_names([ROOT / floor for floor in FLOORS]).keys() == {"Worker"}


@pytest.mark.parametrize("floor", FLOORS)
def test_half_of_the_functions_of_a_floor_begin_with_a_verb(floor: str) -> None:
    assert compute_verb_share(list(find_functions(ROOT / floor))) >= 0.5
