"""Tiny wheels in a local folder, and a pip that sees nothing else."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest


def make_wheel(folder: Path, distribution: str, members: Mapping[str, bytes], version: str = "1.0") -> Path:
    """Write a valid wheel with these members into `folder`."""
    name = f"{distribution.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    everything = {
        **members,
        f"{name}.dist-info/METADATA": metadata.encode(),
        f"{name}.dist-info/WHEEL": wheel.encode(),
        f"{name}.dist-info/RECORD": b"",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in everything.items():
            archive.writestr(member, content)
    return path


def only_wheels_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip find the wheels of `folder` and nothing else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
