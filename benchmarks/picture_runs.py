"""Runs that pictures of the viewer show: replayed from recordings, and labelled by two people."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.simulator.annotate.desk import Desk
from hallulab.simulator.annotate.marks import MarkedFlag, list_flags
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.runs import ShownRun

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "tests" / "recordings"
ANNOTATORS = ("person:Asha", "person:Ben")


def make_runs(folder: Path) -> dict[str, RunFolder]:
    """Replay the demo, and a bot before and after it was changed; return the runs by name.

    `labelled` is a copy of the demo.
    """
    runs = {name: RunFolder(folder / name) for name in ("demo", "labelled", "before", "after")}
    _replay(runs["demo"], "demo", {})
    shutil.copytree(runs["demo"].path, runs["labelled"].path)
    for name, kind in (("before", "agent"), ("after", "vanilla")):
        bot = {"chatbots": [{"name": "bot", "kind": kind}], "detectors": ["halludetect"]}
        _replay(runs[name], "headline", bot)
    return runs


def _replay(folder: RunFolder, name: str, fields: dict[str, Any]) -> None:
    experiment = load_experiment(ROOT / "examples" / f"{name}.yaml", {"model": DEFAULT_CPU_MODEL, **fields})
    settings = RunSettings(replay=RECORDINGS / f"{name}.jsonl.gz", quiet=True)
    asyncio.run(run_experiment(experiment, folder, settings, simulate=True))


def label_run(run: ShownRun) -> None:
    """Label every turn of a run at the desk, as two people who differ on some of its flags."""
    _, listed = run.index.list_chats()
    read = [found for one in listed if (found := run.index.read_chat(one.id)) is not None]
    for annotator in ANNOTATORS:
        desk = Desk(run.folder, run.index.read_chat, (annotator, None))
        for number, (chat, verdicts) in enumerate(read):
            agrees = (number % 3 == 0) == (annotator == ANNOTATORS[1] and number % 5 == 4)
            for turn in chat.turns:
                place, flags = (chat.id, turn.index), list_flags(verdicts, turn.index)
                for flag in flags:
                    stands = flag.start is not None and turn.reply[flag.start : flag.end] == flag.text
                    desk.press(place, _describe(flag, "right" if stands and agrees else "wrong"))
                if not flags:
                    desk.press(place, {"kind": "clean"})


def _describe(flag: MarkedFlag, kind: str) -> dict[str, Any]:
    return {"kind": kind, **flag._asdict()}
