"""Modules of which the versions see another text than the one that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from hallulab.agents import versions

Edit = Callable[[str, Callable[[str], str]], None]
"""Takes a module, and what changes its text."""


def forget_code() -> None:
    """Have all code read again, and new packages found."""
    for remembered in (versions.compute_code_version, versions._list_core, versions._locate):
        remembered.cache_clear()


@pytest.fixture
def edit_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[Edit]:
    """Changes a module's text, as the versions see it, until the test ends."""
    edited: dict[Path, Callable[[str], str]] = {}

    def read(path: Path) -> str:
        text = path.read_text(encoding="utf-8")
        change = edited.get(path.resolve())
        return text if change is None else change(text)

    def edit(module: str, change: Callable[[str], str]) -> None:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        edited[Path(spec.origin).resolve()] = change
        forget_code()

    monkeypatch.setattr(versions, "_read_source", read)
    yield edit
    forget_code()
