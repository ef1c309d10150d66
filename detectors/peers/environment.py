"""The peers' Python environments: pinned in requirements.yaml, made once in the cache folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from hallulab.agents.machine.cache import locate_cache
from hallulab.agents.machine.environments import is_made, python_environment
from hallulab.agents.machine.progress_events import Listener, silent


def read_peer_requirements(peer: str) -> tuple[str, ...]:
    """Return the pinned packages of a peer, `name==version`."""
    return _read_requirements()[peer]


def locate_peer_python(peer: str, *, cache: Path | None = None, on_progress: Listener = silent) -> Path:
    """Return the interpreter of a peer's environment; make it if there is no whole one.

    Peers with the same packages share one, named after the first of them.

    Raises:
        OperationalError: it cannot be made (pip's reason is given) or the disk is full.
    """
    pins = read_peer_requirements(peer)
    return python_environment(
        _target(peer, cache or locate_cache()),
        "\n".join(pins),
        ["--only-binary=:all:", *pins],
        owner=peer,
        total=None,
        on_progress=on_progress,
    )


def is_installed(peer: str) -> bool:
    """Return whether a peer's environment is there already."""
    return is_made(_target(peer, locate_cache()), "\n".join(read_peer_requirements(peer)))


def _target(peer: str, cache: Path) -> Path:
    pins = read_peer_requirements(peer)
    shared = next(name for name, others in _read_requirements().items() if others == pins)
    return cache / "peers" / shared


@cache
def _read_requirements() -> Mapping[str, tuple[str, ...]]:
    text = files("hallulab.detectors.peers").joinpath("requirements.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, tuple[str, ...]]).validate_python(yaml.safe_load(text))
