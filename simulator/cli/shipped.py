"""Files that are installed with hallulab beside its code: the examples, and the recording of the demo."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal

RECORDED_MODEL = "qwen2.5-coder-1.5b"
"""The model whose answers the recording has."""


def locate_shipped(name: Literal["examples", "demo.jsonl.gz"]) -> Path:
    """Return the folder of the examples, or the recording that replays `examples/demo.yaml`."""
    return Path(str(files("hallulab").joinpath("shipped", name)))
