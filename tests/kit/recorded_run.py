"""A small recorded run, to be killed or hindered: three chatbots of which one is guarded, two detectors."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.kit import forked_runs
from tests.kit.faulty_endpoint import faulty_endpoint

KEY = "sk-canary-0123456789-abcdef"
"""The key that is sent. It is in small letters, as the endpoint reads headers."""

_EXPERIMENT = """
scenario: PACK
model: stub
chatbots:
  - vanilla
  - agent
  - {name: guarded, kind: guarded, options: {detector: lexical}}
detectors: [halludetect, lexical]
min_turns: 1
max_turns: 2
"""
"""Its guarded chatbot keeps an audit log."""


@contextmanager
def make_workspace() -> Iterator[Path]:
    """Make a folder to `work_in`, which is deleted behind the block."""
    with tempfile.TemporaryDirectory() as directory, work_in(Path(directory)):
        yield Path(directory)


@contextmanager
def work_in(folder: Path) -> Iterator[None]:
    """Put a small pack into `pack` of a folder. In the block no weights are loaded; its cache is there."""
    with (
        words_for_vectors(),
        patch.dict(os.environ, {"HALLULAB_CACHE": f"{folder}/cache", "CANARY_KEY": KEY}),
    ):
        make_pack(folder / "pack")
        yield


def record_run(folder: Path) -> tuple[str, ...]:
    """Record the run in a workspace; return the arguments that replay it.

    Raises:
        RuntimeError: it fails.
    """
    experiment = folder / "recorded.yaml"
    experiment.write_text(_EXPERIMENT.replace("PACK", str(folder / "pack")))
    recording = folder / "recorded.jsonl"
    command = ("run", "-c", str(experiment), "--repeats", "2", "--quiet")
    with faulty_endpoint(0.0) as endpoint:
        at_endpoint = (*command, "--base-url", endpoint.url, "--record", str(recording))
        ended = forked_runs.run_here(at_endpoint, folder / "recorded")
    if ended.code != 0:
        raise RuntimeError(f"the recorded run ended with code {ended.code}: {ended.err}")
    return (*command, "--replay", str(recording))
