"""The command of a benchmark that replays the default model's answers, or asks for those that are missing."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from hallulab.agents.models.recording import Recording
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.scenarios.errors import HallulabError, UsageError
from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.experiment.config import Experiment, load_experiment

Measured = Callable[[Recording, Experiment], Coroutine[Any, Any, str]]
"""Measures by recorded answers, with the models of an experiment, and returns what is printed."""


def run_recorded(
    name: str, description: str | None, recording: Path, measured: Measured, arguments: Sequence[str] | None
) -> int:
    """Measure and print; return the exit code, as of `hallulab`.

    Args:
        name: of the module under `benchmarks`.
        description: what the command does.
        recording: the packed answers.
        measured: makes the output.
        arguments: of the command; None: those of the process.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the model's answers in FILE.jsonl")
    parser.add_argument("--base-url", help="where the default model is served, to record")
    given = parser.parse_args(arguments)
    try:
        if (given.record is None) != (given.base_url is None):
            raise UsageError("--record and --base-url are given together.")
        answers = Recording.record(given.record) if given.record else Recording.replay(recording)
        experiment = load_experiment(None, {"model": DEFAULT_CPU_MODEL, "base_url": given.base_url})
        print(asyncio.run(measured(answers, experiment)), end="")
    except HallulabError as error:
        print(clean_for_terminal(f"error: {error}"), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0
