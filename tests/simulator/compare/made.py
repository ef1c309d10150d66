"""Summaries of runs in short hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.compare.setup import ComponentSetup, RunSetup
from hallulab.simulator.compare.summary import RunSummary, summarize_conversation
from hallulab.simulator.metrics.hallucinations import index_by_detector
from tests.builders import conversation, judge

Found = Mapping[tuple[str, int], Sequence[int | None]]
"""Persona and seed → hallucinations of each turn; None: the detector failed."""


def summarized(
    conversations: Sequence[Conversation], verdicts: Sequence[Verdict], name: str = "run", **setup: Any
) -> RunSummary:
    """The summary of conversations and verdicts; `setup` are fields of `RunSetup`."""
    made = tuple(
        summarize_conversation(
            one, index_by_detector(verdict for verdict in verdicts if verdict.conversation == one.id)
        )
        for one in conversations
    )
    versions = {verdict.detector: ComponentSetup(version=verdict.version) for verdict in verdicts}
    given = {"scenario": conversations[0].scenario, "detectors": versions, **setup}
    return RunSummary(name=name, setup=RunSetup.model_validate(given), conversations=made)


def found(bots: Mapping[str, Found], name: str = "run", reply: str = "one two", **setup: Any) -> RunSummary:
    """A run in which detector `d` found so many hallucinations, each in the first word of the reply."""
    chats, verdicts = [], []
    for chatbot, users in bots.items():
        for (persona, seed), turns in users.items():
            id = f"{name}-{chatbot}-{persona}-{seed}"
            chats.append(conversation(id, [reply] * len(turns), chatbot, persona, seed))
            verdicts += judge(id, *turns)
    return summarized(chats, verdicts, name, **setup)
