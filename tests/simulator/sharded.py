"""A run folder with one journal of each kind, or in shards."""

from __future__ import annotations

from pathlib import Path

from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import LARGEST
from hallulab.simulator.records.journals import Journals
from tests.builders import call, conversation, scored

CHATBOTS = ("vanilla", "agent")
DETECTORS = ("lexical", "first")
PERSONAS = tuple(f"p{number}" for number in range(9))


def make_run(folder: Path, seeds: int, *, in_shards: bool) -> RunFolder:
    """Each of nine personas and each seed with two chatbots, two replies that two detectors judge."""
    run = RunFolder(folder)
    planned = LARGEST + 1 if in_shards else 1
    with run.open_journals(Journals([], []), planned) as journals:
        for place, persona in enumerate(PERSONAS):
            for seed in range(seeds):
                for bot in CHATBOTS:
                    id = f"{bot}-{persona}-{seed}"
                    replies = [f"{persona} asks {bot} a question.", "No, " * (seed + 1)]
                    journals.add_conversation(conversation(id, replies, bot, persona=persona, seed=seed))
                    for turn in range(2):
                        for detector in DETECTORS:
                            wrong = (place + seed + turn + len(bot) + len(detector)) % 3 == 0
                            spans = [(0, 2)] if wrong else []
                            calls = (call("detector.judge", seconds=0.1 * place),)
                            journals.add_verdict(scored(id, turn, spans, detector=detector, calls=calls))
    return run
